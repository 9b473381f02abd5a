"""The example over real rows: what it notes stands there once, whatever is tried twice, and a cancel takes it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from closing_example.workflow import MONTHLY_CLOSING
from everest.settings import MysqlUrl
from everest.workflow import control
from tests import builders
from tests.workflow.world import MysqlWorld

AUGUST = {"bulan": "2026-08"}


@pytest.fixture
def world(database: MysqlUrl, connection: Any) -> Iterator[MysqlWorld]:
    for warehouse in ("GD-A", "GD-B", "GD-C"):
        builders.warehouse(connection, warehouse)
    connection.commit()
    opened = MysqlWorld(database)
    opened.know(MONTHLY_CLOSING)
    yield opened
    opened.close()


def notes(world: MysqlWorld) -> list[str]:
    found = world.rows("SELECT action FROM audit_log WHERE actor = 'monthly_closing' ORDER BY id")
    return [row["action"] for row in found]


def test_a_month_is_closed_with_its_nested_workflow(world: MysqlWorld) -> None:
    run_id = world.begin(MONTHLY_CLOSING, AUGUST)
    assert world.waiting(run_id)["names"] == ["kepala_gudang"]

    world.act(run_id, control.approve, "kepala")
    world.act(run_id, control.approve, "manajer")
    world.act(run_id, control.reject, "auditor", "tambah catatan")
    world.act(run_id, control.approve, "auditor")

    assert world.status(run_id) == "completed"
    (child,) = world.children(run_id)
    assert (world.run(child).workflow, world.status(child)) == ("closing_report", "completed")
    assert world.state(run_id)["nomor"] == f"TUTUP/2026-08/{child}"
    assert notes(world) == [
        "closing_opened",
        *["warehouse_checked"] * 3,
        *["report_drafted"] * 2,
        "report_filed",
        "closing_finished",
    ]
    (job,) = world.rows("SELECT response FROM rabbit_publish_shadow WHERE workflow_id = %s", run_id)
    assert "penutupan 2026-08 selesai" in str(job["response"])


def test_unposted_counts_of_the_month_are_seen(world: MysqlWorld, connection: Any) -> None:
    builders.document(connection, nomer_nota="SO-8", gudang_kode="GD-B")
    (header,) = builders.rows(connection, "SELECT gudang_kode, tanggal_opname FROM so_headers_staging")

    run_id = world.begin(MONTHLY_CLOSING, {"bulan": f"{header['tanggal_opname']:%Y-%m}"})

    assert world.state(run_id)["belum_diposting"] == [header["gudang_kode"]]


def test_a_warehouse_that_fails_once_is_checked_once(world: MysqlWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from closing_example import rows

    calls: Counter[str] = Counter()
    count = rows.movements

    def flaky(tx: Any, warehouse: str, first: Any, last: Any) -> int:
        calls[warehouse] += 1
        found = count(tx, warehouse, first, last)
        if warehouse == "GD-B" and calls[warehouse] == 1:
            rows.note(tx, "never_to_be_seen", 0, "rolled back with its try", {})
            raise OSError("printer on fire")
        return found

    monkeypatch.setattr(rows, "movements", flaky)

    world.begin(MONTHLY_CLOSING, AUGUST)

    assert calls == {"GD-A": 1, "GD-B": 2, "GD-C": 1}
    assert notes(world).count("warehouse_checked") == 3
    assert "never_to_be_seen" not in notes(world)


def test_a_cancel_while_a_reviewer_thinks_takes_back_what_was_done(world: MysqlWorld) -> None:
    run_id = world.begin(MONTHLY_CLOSING, AUGUST)
    world.act(run_id, control.approve, "kepala")
    world.act(run_id, control.approve, "manajer")

    world.act(run_id, control.cancel, "budi", "salah bulan")

    assert world.status(run_id) == "cancelled"
    assert notes(world)[-2:] == ["closing_withdrawn", "closing_cancelled"]


def test_a_cancel_after_the_nested_workflow_voids_its_report_first(
    world: MysqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from closing_example import rows

    note = rows.note

    def full(tx: Any, action: str, *rest: Any) -> None:
        if action == "closing_finished":
            raise OSError("disk full")
        note(tx, action, *rest)

    monkeypatch.setattr(rows, "note", full)
    run_id = world.begin(MONTHLY_CLOSING, AUGUST)
    for who in ("kepala", "manajer", "auditor"):
        world.act(run_id, control.approve, who)
    assert (world.status(run_id), world.run(run_id).current_step) == ("failed", "finish_closing")

    world.act(run_id, control.cancel, "budi")

    assert notes(world)[-3:] == ["report_voided", "closing_withdrawn", "closing_cancelled"]
    assert notes(world).count("report_voided") == 1
