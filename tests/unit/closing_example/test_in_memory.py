"""The example in memory: what a developer writes first, without a server. The tables are three functions to replace."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from closing_example import rows
from closing_example.workflow import MONTHLY_CLOSING
from everest.errors import Conflict
from everest.workflow import control
from everest.workflow.inline import InlineRun, run_inline

AUGUST = {"bulan": "2026-08"}


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warehouses; what is noted lands in `run.effects`."""
    warehouses = ["GD-A", "GD-B", "GD-C"]
    monkeypatch.setattr(rows, "active_warehouses", lambda tx: warehouses)
    monkeypatch.setattr(rows, "movements", lambda tx, warehouse, first, last: {"GD-A": 10, "GD-B": 5}.get(warehouse, 0))
    monkeypatch.setattr(rows, "open_documents", lambda tx, warehouse, first, last: int(warehouse == "GD-B"))
    monkeypatch.setattr(rows, "note", lambda tx, action, run, reason, detail: tx.write((action, reason)))
    return warehouses


def approved(run: InlineRun) -> InlineRun:
    run.approve("kepala")
    run.approve("manajer")
    return run


def actions(run: InlineRun) -> list[str]:
    return [action for action, _ in run.effects]


def test_it_looks_at_every_warehouse_and_then_waits_for_the_first_approval() -> None:
    run = run_inline(MONTHLY_CLOSING, AUGUST)

    assert (run.status, run.row.current_step) == ("waiting_for_signal", "warehouse_head_approves")
    assert (run.state["mutasi"], run.state["belum_diposting"]) == (15, ["GD-B"])
    assert actions(run) == ["closing_opened", *["warehouse_checked"] * 3]


def test_two_approvals_in_a_row_and_a_reviewer_who_accepts_close_the_month() -> None:
    run = approved(run_inline(MONTHLY_CLOSING, AUGUST))
    assert run.row.current_step == "reviewer_decides"

    run.approve("auditor")

    assert run.status == "completed"
    assert run.state["nomor"].startswith("TUTUP/2026-08/")
    assert actions(run)[-3:] == ["report_drafted", "report_filed", "closing_finished"]


def test_a_rejected_draft_is_drafted_again_with_the_reason_in_it() -> None:
    run = approved(run_inline(MONTHLY_CLOSING, AUGUST))

    run.reject("auditor", "tambah catatan GD-B")
    assert (run.status, run.row.current_step) == ("waiting_for_signal", "reviewer_decides")
    assert run.state["laporan"] | {"versi": 2, "catatan": "tambah catatan GD-B"} == run.state["laporan"]
    run.approve("auditor")

    assert run.status == "completed"
    assert actions(run).count("report_drafted") == 2


def test_a_draft_that_is_rejected_too_often_fails_the_closing() -> None:
    run = approved(run_inline(MONTHLY_CLOSING, AUGUST))

    for _ in range(6):
        run.reject("auditor", "belum")

    assert (run.status, run.row.current_step) == ("failed", "until_accepted")


def test_an_approver_who_says_no_fails_it_with_403() -> None:
    run = run_inline(MONTHLY_CLOSING, AUGUST)

    run.reject("kepala", "stok belum dihitung")

    assert (run.status, run.row.error_code) == ("failed", 403)
    assert "stok belum dihitung" in str(run.row.error)


def test_an_approval_that_nobody_gives_times_out() -> None:
    run = run_inline(MONTHLY_CLOSING, AUGUST)

    run.pass_time(timedelta(days=5))

    assert (run.status, run.row.error_code) == ("failed", 504)


def test_a_cancel_takes_back_what_was_done_newest_first() -> None:
    run = approved(run_inline(MONTHLY_CLOSING, AUGUST))
    before = actions(run)

    run.do(control.cancel, "budi", "salah bulan")

    assert run.status == "cancelled"
    assert actions(run)[len(before) :] == ["closing_withdrawn", "closing_cancelled"]


def test_the_same_month_is_closed_once() -> None:
    run = run_inline(MONTHLY_CLOSING, AUGUST)

    assert run.world.dispatch(MONTHLY_CLOSING, AUGUST) == run.id
    with pytest.raises(Conflict):
        run.world.dispatch(MONTHLY_CLOSING, {**AUGUST, "catatan": "lain"})


@pytest.mark.parametrize(
    "payload", [{"bulan": "2026-13"}, {"bulan": "2026-8"}, {"bulan": "Agustus"}, {"bulan": 202608}]
)
def test_a_month_that_is_none_is_refused_with_a_sentence(payload: dict[str, Any]) -> None:
    run = run_inline(MONTHLY_CLOSING, payload)

    assert (run.status, run.row.error_code) == ("failed", 422)
    assert "harus seperti 2026-08" in str(run.row.error)


def test_no_warehouse_is_refused_with_a_sentence(tables: list[str]) -> None:
    tables.clear()

    assert "tidak ada gudang aktif" in str(run_inline(MONTHLY_CLOSING, AUGUST).row.error)


def test_december_ends_with_the_year(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[date] = []
    monkeypatch.setattr(rows, "movements", lambda tx, warehouse, first, last: asked.extend([first, last]) or 0)

    run_inline(MONTHLY_CLOSING, {"bulan": "2026-12"})

    assert set(asked) == {date(2026, 12, 1), date(2027, 1, 1)}
