"""What nobody has undone yet, the reconciler's rounds undo: newest first, once, nested runs before their parents."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.reconciler import workflows
from everest.workflow import control, endings
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from ingest_consumer import by_hand
from ingest_consumer.errors import RerunRefused
from tests import builders
from tests.integration.reconciler.world import World, note, run_threads


def undo_first(state: dict[str, Any], step: Any) -> None:
    note("undo_first")(state, step)


def undo_second(state: dict[str, Any], step: Any) -> None:
    if trouble:
        raise RuntimeError(trouble.pop())
    note("undo_second")(state, step)


trouble: list[str] = []


UNDONE = (
    workflow("undone")
    .then(note("first"), name="first", compensate_with=undo_first)
    .then(note("second"), name="second", compensate_with=undo_second)
    .wait_for_signal("go", name="gate")
    .build()
)


def to_be_undone(world: World) -> int:
    shadow_id = world.sent_of(UNDONE)
    ticket = world.claimed(shadow_id)
    for name in ("first", "second", "gate"):
        world.step(ticket, name, UNDONE)
    return shadow_id


def test_12_compensations_that_nobody_ran_are_run_newest_first_and_once(world: World) -> None:
    shadow_id = to_be_undone(world)
    world.act(shadow_id, control.cancel)
    start = threading.Barrier(3)

    def work() -> None:
        reconciler = world.always_active()
        start.wait(30)
        for _ in range(4):
            reconciler.round()

    run_threads(work, 3)

    assert world.effects() == ["first", "second", "undo_second", "undo_first"]
    assert world.run_of(shadow_id)["compensation"] == "done"


def test_a_run_with_much_to_undo_leaves_room_for_everybody_else_and_goes_on_in_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of thousands of items held up every other repair, until the process counted as dead."""
    monkeypatch.setattr(workflows, "COMPENSATE_S", 0.0)
    shadow_id = to_be_undone(world)
    world.act(shadow_id, control.cancel)
    reconciler = world.reconciler()

    assert reconciler.round() == 1
    assert world.effects() == ["first", "second", "undo_second"]
    for _ in range(2):
        reconciler.round()
    assert world.effects() == ["first", "second", "undo_second", "undo_first"]
    assert world.run_of(shadow_id)["compensation"] == "done"


def test_a_failed_workflow_whose_dead_letter_was_dropped_is_undone(world: World) -> None:
    shadow_id = to_be_undone(world)
    with world.database.transaction() as tx:
        endings.fail_run(tx, UNDONE, tx.runs.lock(world.run_of(shadow_id)["id"]), DocumentRefused("salah"), None)
    with world.database.transaction() as tx:
        tx.conn.query("UPDATE rabbit_publish_shadow SET transaksi_id = 7")  # such as a posting's
        assert by_hand.cancel_dropped(tx.conn, shadow_id, "ann", "not wanted")

    world.reconciler().round()

    assert world.run_of(shadow_id)["compensation"] == "done"
    assert world.effects() == ["first", "second", "undo_second", "undo_first"]


def inner() -> Definition:
    built = workflow("inner").then(note("inner"), name="inner", compensate_with=undo_second)
    return built.wait_for_signal("go", name="gate").on_cancel(note("inner cleaned up")).build()


def outer(**options: Any) -> Definition:
    built = workflow("outer").then(note("outer"), name="outer", compensate_with=undo_first)
    return built.run_workflow(inner(), name="nested", **options).build()


def with_a_nested_run(world: World, definition: Definition) -> tuple[int, int]:
    """Both stand in their waits, the outer one's first step and the inner one's are done. Their shadow ids."""
    shadow_id = world.sent_of(definition)
    ticket = world.claimed(shadow_id)
    for name in ("outer", "nested"):
        world.step(ticket, name, definition)
    world.publish()
    (child,) = builders.rows(world.conn, "SELECT carrier_shadow_id AS id FROM workflow_runs WHERE workflow = 'inner'")
    ticket = world.claimed(child["id"])
    for name in ("inner", "gate"):
        world.step(ticket, name, world.definitions["inner"])
    return shadow_id, child["id"]


def test_65_what_a_nested_run_did_is_undone_before_what_its_parent_had_done(world: World) -> None:
    shadow_id, child = with_a_nested_run(world, outer())
    world.act(shadow_id, control.cancel)
    reconciler = world.reconciler()

    for _ in range(3):
        reconciler.round()

    assert world.effects() == ["outer", "inner", "undo_second", "inner cleaned up", "undo_first"]
    assert [world.run_of(one)["compensation"] for one in (shadow_id, child)] == ["done", "done"]


def test_65_a_parent_waits_while_a_compensation_of_its_nested_run_is_tried_again(world: World) -> None:
    shadow_id, _ = with_a_nested_run(world, outer())
    world.act(shadow_id, control.cancel)
    trouble[:] = ["not yet"]
    reconciler = world.reconciler()

    reconciler.round()
    assert world.effects() == ["outer", "inner"]

    reconciler.round()
    assert world.effects()[2:] == ["undo_second", "inner cleaned up", "undo_first"]


def test_66_a_parent_that_fails_and_is_undone_stops_the_run_inside_it(world: World) -> None:
    inside = (
        workflow("outer")
        .then(note("outer"), name="outer", compensate_with=undo_first)
        .run_workflow(inner(), name="nested")
    )
    definition = inside.must_complete_within(timedelta(hours=1)).compensate_on_failure().build()
    shadow_id, child = with_a_nested_run(world, definition)
    world.age(timedelta(hours=2))
    reconciler = world.reconciler()

    for _ in range(3):
        reconciler.round()

    assert [world.run_of(one)["status"] for one in (shadow_id, child)] == ["failed", "cancelled"]
    assert [world.status(one) for one in (shadow_id, child)] == ["FAILED", "CANCELLED"]
    assert world.effects() == ["outer", "inner", "undo_second", "inner cleaned up", "undo_first"]


def test_a_parent_that_fails_and_is_not_undone_leaves_the_run_inside_it_at_work(world: World) -> None:
    inside = (
        workflow("outer")
        .then(note("outer"), name="outer", compensate_with=undo_first)
        .run_workflow(inner(), name="nested")
    )
    shadow_id, child = with_a_nested_run(world, inside.must_complete_within(timedelta(hours=1)).build())
    world.age(timedelta(hours=2))

    world.reconciler().round()

    statuses = [world.run_of(one)["status"] for one in (shadow_id, child)]
    assert statuses == ["failed", "waiting_for_signal"], "a retry of the parent waits for it again"


def test_the_letter_of_a_workflow_without_a_document_is_not_dropped_but_its_workflow_cancelled(world: World) -> None:
    shadow_id, child = with_a_nested_run(world, outer())
    with world.database.transaction() as tx:
        run = tx.runs.lock(world.run_of(shadow_id)["id"])
        endings.fail_run(tx, world.definitions["outer"], run, DocumentRefused("salah"), None)

    with pytest.raises(RerunRefused, match=f"workflow cancel {run.id}"), world.database.transaction() as tx:
        by_hand.cancel_dropped(tx.conn, shadow_id, "ann", "not wanted")
    assert [world.run_of(one)["status"] for one in (shadow_id, child)] == ["failed", "waiting_for_signal"]

    world.act(shadow_id, control.cancel)
    for _ in range(2):
        world.reconciler().round()
    assert world.effects() == ["outer", "inner", "undo_second", "inner cleaned up", "undo_first"]


def test_13_a_compensation_that_fails_is_tried_again_each_round_then_shown_and_done_by_hand(world: World) -> None:
    shadow_id = to_be_undone(world)
    world.act(shadow_id, control.cancel)
    trouble[:] = ["the fourth", "the third", "the second", "the first"]
    reconciler = world.reconciler()
    for _ in range(5):
        reconciler.round()

    run = world.run_of(shadow_id)
    assert (run["compensation"], trouble) == ("failed", ["the fourth"]), "three attempts, as the definition allows"
    (failed,) = builders.rows(world.conn, "SELECT status, attempts FROM workflow_compensations WHERE step = 'second'")
    assert failed == {"status": "failed", "attempts": 3}
    trouble.clear()
    world.act(shadow_id, control.compensate, "sari")
    reconciler.round()

    assert world.run_of(shadow_id)["compensation"] == "done"
    assert world.effects() == ["first", "second", "undo_second", "undo_first"]
