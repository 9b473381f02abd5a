"""`everest workflow` acting: approvals, signals, pauses, cancels, and what they leave in the audit log."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from everest.cli import output
from everest.workflow.builder import workflow
from tests.integration.cli.conftest import Everest, answer, audited
from tests.workflow.world import MysqlWorld, gives


def test_approving_to_the_end_is_audited_with_who_and_why(
    everest: Everest, closing: int, world: MysqlWorld, connection: Any
) -> None:
    said = everest("workflow", "approve", str(closing), "--reason", "stok cocok", "--question", "1")
    world.walk()
    everest("workflow", "approve", "monthly_closing:2026-08")
    world.walk()
    everest("workflow", "reject", str(closing), "--reason", "tambah catatan")
    world.walk()
    last = answer(everest("workflow", "approve", str(closing), "--json"))
    world.walk()

    assert f"Workflow {closing} (monthly_closing) has its answer: approved." in said.stdout
    assert "It goes on by itself from warehouse_head_approves." in said.stdout
    assert (last["workflow_id"], last["current_step"]) == (closing, "reviewer_decides")
    assert world.status(closing) == "completed"
    assert world.state(closing)["kepala_gudang"]["by"] == output.operator()
    assert audited(connection) == [
        ("dispatch", None),
        ("approve", "stok cocok"),
        ("approve", None),
        ("reject", "tambah catatan"),
        ("approve", None),
    ]


def test_a_late_answer_to_an_older_question_is_a_conflict(everest: Everest, closing: int, world: MysqlWorld) -> None:
    everest("workflow", "approve", str(closing))
    twice = everest("workflow", "approve", str(closing))
    world.walk()

    late = everest("workflow", "approve", str(closing), "--question", "1", "--json")

    assert (twice.exit_code, "has its answer already" in twice.stderr) == (3, True)
    assert (late.exit_code, answer(late)["code"]) == (3, 409)
    assert "waits for something else by now" in answer(late)["message"]


def test_a_refused_approval_fails_and_retry_asks_again(everest: Everest, closing: int, world: MysqlWorld) -> None:
    everest("workflow", "reject", str(closing), "--reason", "belum dihitung")
    world.walk()
    shown = everest("workflow", "show", str(closing)).stdout
    assert "403: ditolak oleh" in shown
    assert f"workflow retry {closing}" in shown

    again = everest("workflow", "retry", str(closing), "--reason", "sudah dihitung")
    world.walk()

    assert "runs again" in again.stdout
    assert world.status(closing) == "waiting_for_signal"
    assert everest("workflow", "retry", str(closing)).exit_code == 3


def test_pause_and_resume(everest: Everest, closing: int, world: MysqlWorld, connection: Any) -> None:
    paused = everest("workflow", "pause", str(closing), "--reason", "libur")
    again = everest("workflow", "pause", str(closing))
    resumed = everest("workflow", "resume", str(closing), "--json")

    assert "It is paused, at warehouse_head_approves" in paused.stdout
    assert (again.exit_code, "is paused" in again.stderr) == (3, True)
    assert answer(resumed)["workflow_status"] == "waiting_for_signal"
    assert everest("workflow", "resume", str(closing)).exit_code == 3
    assert audited(connection)[1:] == [("pause", "libur"), ("resume", None)]


def test_signals_and_inputs_reach_the_wait(
    everest: Everest, world: MysqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everest import bootstrap

    asks = (
        workflow("asks")
        .wait_for_signal("paid", correlation_key="invoice", result_key="paid")
        .wait_for_input(result_key="form")
        .build()
    )
    monkeypatch.setattr(bootstrap, "deployed", lambda name, version, definition_hash="": {"asks": asks}.get(name))
    run_id = world.begin(asks, {"invoice": "F-1"})

    other = everest("workflow", "signal", str(run_id), "paid", "--correlation", "F-2", "--payload", '{"amount": 9.50}')
    assert "It is waiting_for_signal, at" in other.stdout
    world.walk()
    assert "only with invoice = F-1" in everest("workflow", "show", str(run_id)).stdout
    everest("workflow", "signal", str(run_id), "paid", "--correlation", "F-1", "--payload", '{"amount": 1.50}')
    world.walk()
    assert f"workflow input {run_id}" in everest("workflow", "show", str(run_id)).stdout
    everest("workflow", "input", str(run_id), "--payload", '{"name": "Budi"}')
    world.walk()

    assert world.status(run_id) == "completed"
    assert (world.state(run_id)["paid"], world.state(run_id)["form"]) == ({"amount": Decimal("1.50")}, {"name": "Budi"})
    assert everest("workflow", "signal", str(run_id), "paid").exit_code == 3


def test_cancel_undoes_newest_first_and_says_so(everest: Everest, closing: int, world: MysqlWorld) -> None:
    done = everest("workflow", "cancel", str(closing), "--reason", "salah bulan")
    again = everest("workflow", "cancel", str(closing))

    assert done.exit_code == 0
    assert "is cancelled; undone, in this order: open_closing, on_cancel." in done.stdout
    assert (again.exit_code, "is cancelled" in again.stderr) == (3, True)
    noted = world.rows("SELECT action FROM audit_log WHERE actor = 'monthly_closing' ORDER BY id DESC LIMIT 2")
    assert [row["action"] for row in noted] == ["closing_cancelled", "closing_withdrawn"]


def test_cancel_after_the_nested_workflow_completed_undoes_it_by_the_parents_step(
    everest: Everest, closing: int, world: MysqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from closing_example import rows as tables

    note = tables.note
    monkeypatch.setattr(
        tables, "note", lambda tx, action, *told: 1 / 0 if action == "closing_finished" else note(tx, action, *told)
    )
    for _ in range(3):
        everest("workflow", "approve", str(closing))
        world.walk()
    assert world.run(closing).current_step == "finish_closing"

    done = everest("workflow", "cancel", str(closing))

    assert done.exit_code == 0
    assert "with 1 nested; undone, in this order: file_report, open_closing, on_cancel." in done.stdout


def test_13_a_compensation_that_fails_is_said_and_can_be_tried_again(
    everest: Everest, closing: int, world: MysqlWorld, monkeypatch: pytest.MonkeyPatch, connection: Any
) -> None:
    from closing_example import rows as tables

    note = tables.note
    monkeypatch.setattr(tables, "note", lambda *told: (_ for _ in ()).throw(OSError("printer on fire")))

    failed = everest("workflow", "cancel", str(closing))
    shown = everest("workflow", "show", str(closing)).stdout
    programs = everest("workflow", "compensate", str(closing), "--json")
    monkeypatch.setattr(tables, "note", note)
    mended = everest("workflow", "compensate", str(closing))

    assert (failed.exit_code, programs.exit_code, mended.exit_code) == (1, 1, 0)
    assert "NOT undone: open_closing: kesalahan program: OSError: printer on fire" in failed.stderr
    assert f"python -m everest workflow compensate {closing}" in failed.stderr
    assert "STUCK" in shown
    assert (answer(programs)["status"], answer(programs)["compensation"]) == ("error", "failed")
    assert world.status(closing) == "cancelled"
    assert everest("workflow", "compensate", str(closing)).exit_code == 3
    assert [action for action, _ in audited(connection)] == ["dispatch", "cancel", "compensate", "compensate"]


def test_cancel_takes_nested_runs_along_and_undoes_them_first(
    everest: Everest, world: MysqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everest import bootstrap

    undo = gives()
    inner = workflow("inner").then(gives(), name="made_inside", compensate_with=undo).wait_for_signal("never").build()
    outer = workflow("outer").then(gives(), name="made_outside", compensate_with=undo).run_workflow(inner).build()
    known = {"inner": inner, "outer": outer}
    monkeypatch.setattr(bootstrap, "deployed", lambda name, version, definition_hash="": known.get(name))
    monkeypatch.setattr(bootstrap, "definitions", lambda: known)
    monkeypatch.setattr("everest.store.unit_of_work.UnitOfWork.write", lambda tx, effect: None, raising=False)
    run_id = world.begin(outer)

    done = everest("workflow", "cancel", str(run_id))

    assert "is cancelled with 1 nested; undone, in this order: made_inside, made_outside." in done.stdout
    assert {world.status(one) for one in world.all_runs()} == {"cancelled"}
