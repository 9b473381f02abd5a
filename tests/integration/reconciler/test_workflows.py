"""What only the clock or a crash brings to a workflow: missed wake-ups, timeouts, deadlines, compensations, and a
pause or a wait whose DAG run died."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, endings, engine
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.engine import Leave
from everest.workflow.questions import ask_decision
from ingest_consumer import by_hand
from ingest_consumer.errors import RerunRefused
from tests import builders
from tests.integration.reconciler.world import LONG_AGO, World, note

CHILD = workflow("child").then(note("in_child"), name="only").build()


def waits_for(mode: str, quorum: int | None = None) -> Definition:
    return (
        workflow(f"waits_{mode}")
        .wait_for_workflows("ids", mode=mode, quorum=quorum, name="others")  # type: ignore[arg-type]
        .then(note("after"), name="after")
        .build()
    )


def parked(world: World, definition: Definition, step: str, **payload: Any) -> int:
    """A run that stands in a wait. Returns its shadow id."""
    shadow_id = world.sent_of(definition, **payload)
    assert isinstance(world.step(world.claimed(shadow_id), step, definition), Leave)
    assert world.status(shadow_id) == "WAITING"
    return shadow_id


def set_status(world: World, shadow_id: int, status: str) -> None:
    """The end of a run whose waiters nobody woke: as a race between both commits would leave it."""
    world.execute(
        f"UPDATE workflow_runs SET status = '{status}', finished_at = UTC_TIMESTAMP(6) WHERE id = %s",
        world.run_of(shadow_id)["id"],
    )


@pytest.mark.parametrize(
    ("mode", "quorum", "ends", "wakes"),
    [
        ("all", None, ["completed", "completed"], False),
        ("all", None, ["completed", "completed", "completed"], True),
        ("all", None, ["failed"], True),
        ("any", None, ["cancelled", "failed"], False),
        ("any", None, ["cancelled", "failed", "failed"], True),
        ("any", None, ["completed"], True),
        ("quorum", 2, ["completed", "failed"], False),
        ("quorum", 2, ["completed", "completed"], True),
        ("quorum", 2, ["failed", "cancelled"], True),
    ],
)
def test_24_a_waiter_that_nobody_woke_is_woken_once_when_its_wait_is_decided(
    world: World, mode: str, quorum: int | None, ends: list[str], wakes: bool
) -> None:
    others = [world.sent_of(CHILD) for _ in range(3)]
    ids = [world.run_of(one)["id"] for one in others]
    waiter = parked(world, waits_for(mode, quorum), "others", ids=ids)
    for one, status in zip(others, ends, strict=False):
        set_status(world, one, status)
    reconciler = world.reconciler()

    assert [reconciler.wake_waiters() for _ in range(2)] == [int(wakes), 0]

    assert world.status(waiter) == ("PENDING" if wakes else "WAITING")
    assert [row["shadow_id"] for row in world.unsent()] == ([waiter] if wakes else [])


def test_24_a_wait_for_a_run_that_was_deleted_is_woken_and_says_so(world: World) -> None:
    other = world.sent_of(CHILD)
    waiter = parked(world, waits_for("all"), "others", ids=[world.run_of(other)["id"]])
    world.execute("DELETE FROM workflow_runs WHERE workflow = 'child'")

    assert world.reconciler().wake_waiters() == 1
    with pytest.raises(DocumentRefused, match="tidak ada"):
        world.step(world.claimed(waiter), "others", waits_for("all"))


def test_09_a_parent_whose_childs_end_was_missed_is_woken(world: World) -> None:
    parent = workflow("parent").run_workflow(CHILD).then(note("after"), name="after").build()
    shadow_id = parked(world, parent, "child")
    child = next(row for row in world.unsent() if row["shadow_id"] != shadow_id)["shadow_id"]
    world.publish()
    reconciler = world.reconciler()
    assert reconciler.wake_waiters() == 0, "the child has not ended"
    set_status(world, child, "failed")

    assert reconciler.round() >= 1
    assert world.status(shadow_id) == "PENDING"


def test_a_paused_waiter_is_left_alone(world: World) -> None:
    other = world.sent_of(CHILD)
    waiter = parked(world, waits_for("all"), "others", ids=[world.run_of(other)["id"]])
    world.act(waiter, control.pause)
    set_status(world, other, "completed")

    assert world.reconciler().wake_waiters() == 0
    world.act(waiter, control.resume)
    assert world.status(waiter) == "PENDING"


def test_24_three_reconcilers_at_once_wake_each_waiter_once(world: World) -> None:
    other = world.sent_of(CHILD)
    waiting = waits_for("all")
    waiters = [parked(world, waiting, "others", ids=[world.run_of(other)["id"]]) for _ in range(8)]
    set_status(world, other, "completed")
    start = threading.Barrier(3)
    woken: list[int] = []

    def work() -> None:
        reconciler = world.always_active()
        start.wait(30)
        woken.append(sum(reconciler.wake_waiters() for _ in range(3)))

    run_threads(work, 3)

    assert sum(woken) == 8
    assert sorted(row["shadow_id"] for row in world.unsent()) == waiters


def run_threads(work: Any, count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_08_a_timeout_whose_outbox_row_is_gone_is_found(world: World) -> None:
    limited = workflow("limited").wait_for_signal("go", name="gate", timeout=timedelta(hours=1)).build()
    shadow_id = parked(world, limited, "gate")
    world.execute("DELETE FROM outbox")
    reconciler = world.reconciler()
    assert reconciler.round() == 0, "its time has not come"
    world.age(timedelta(hours=2))

    assert reconciler.round() == 1
    assert (world.status(shadow_id), len(world.unsent())) == ("PENDING", 1)


def test_a_timer_whose_message_was_lost_behind_the_relay_is_sent_again(world: World) -> None:
    limited = workflow("limited").wait_for_signal("go", name="gate", timeout=timedelta(hours=1)).build()
    shadow_id = parked(world, limited, "gate")
    world.execute("UPDATE rabbit_publish_shadow SET worker_status = 'PENDING'")
    world.publish()
    world.age(LONG_AGO)

    assert world.reconciler().round() == 1
    assert (world.row(shadow_id)["requeued"], len(world.unsent())) == (1, 1)
    assert world.run_of(shadow_id)["status"] == "waiting_for_signal"


def asks(state: dict[str, Any], step: Any) -> dict[str, Any] | None:
    """A plain step that asks a person, and notes what came of it."""
    if step.decision is None:
        return ask_decision(["why"], "evidence", timeout=timedelta(hours=1))
    return note(step.decision.outcome)(state, step)


ASKS = workflow("asks").then(asks, name="judge").build()


def test_08_the_time_of_a_steps_own_question_is_kept_without_its_outbox_row(world: World) -> None:
    shadow_id = parked(world, ASKS, "judge")
    world.execute("DELETE FROM outbox")
    reconciler = world.reconciler()
    assert reconciler.round() == 0, "its time has not come"
    world.age(timedelta(hours=2))

    assert reconciler.round() == 1
    assert (world.status(shadow_id), len(world.unsent())) == ("PENDING", 1)


@pytest.mark.parametrize("is_answered", [True, False])
def test_22_a_dag_run_that_died_at_a_steps_question_begins_again(world: World, is_answered: bool) -> None:
    shadow_id = parked(world, ASKS, "judge")
    if is_answered:
        world.act(shadow_id, control.approve, "sari")
    else:
        with world.database.transaction() as tx:
            engine.announce_next(tx, tx.runs.lock(world.run_of(shadow_id)["id"]))
    ticket = world.claimed(shadow_id)
    with world.database.transaction() as tx:
        assert isinstance(engine.begin(tx, ASKS, ticket, "judge"), engine.Go)
    world.airflow.has(ticket.dag_run_id, "failed")
    world.age(timedelta(seconds=30))

    assert world.reconciler().round() == 1

    world.step(world.claimed(shadow_id), "judge", ASKS)
    if is_answered:
        assert (world.status(shadow_id), world.effects()) == ("COMPLETED", ["approved"])
    else:
        assert (world.status(shadow_id), world.run_of(shadow_id)["wait_sequence"]) == ("WAITING", 1)


def test_22_a_dag_run_that_died_on_its_way_into_a_decided_wait_begins_again(world: World) -> None:
    gate = workflow("gate").wait_for_signal("go", name="gate").then(note("after"), name="after").build()
    shadow_id = parked(world, gate, "gate")
    world.act(shadow_id, control.signal, "go")
    ticket = world.claimed(shadow_id)
    with world.database.transaction() as tx:
        assert isinstance(engine.begin(tx, gate, ticket, "gate"), engine.Go)
    world.airflow.has(ticket.dag_run_id, "failed")
    world.age(timedelta(seconds=30))

    assert world.reconciler().round() == 1

    again = world.claimed(shadow_id)
    world.step(again, "gate", gate)
    world.step(again, "after", gate)
    assert (world.status(shadow_id), world.effects()) == ("COMPLETED", ["after"])


def test_14_a_paused_run_whose_dag_run_died_is_parked_and_goes_on_after_the_resume(world: World) -> None:
    ticket = world.at_work("failed")
    world.act(ticket.shadow_id, control.pause, "budi")
    world.age(timedelta(seconds=30))
    assert world.status(ticket.shadow_id) == "PROCESSING"

    assert world.reconciler().round() == 1

    run = world.run_of(ticket.shadow_id)
    assert (run["status"], run["n"], run["recovered"]) == ("paused", 2, 0)
    assert (world.status(ticket.shadow_id), world.unsent()) == ("WAITING", [])
    world.act(ticket.shadow_id, control.resume)
    again = world.claimed(ticket.shadow_id)
    for name in ("a", "b"):
        world.step(again, name)
    assert (world.status(ticket.shadow_id), world.effects()) == ("COMPLETED", ["a", "b"])


def late(state: dict[str, Any], step: Any) -> None:
    """Says so in the business tables."""
    note("late")(state, step)


def test_08_a_deadline_that_passed_fails_the_run_once_also_in_a_wait_and_not_under_a_pause(world: World) -> None:
    limited = (
        workflow("limited")
        .wait_for_signal("go", name="gate")
        .must_complete_within(timedelta(hours=1))
        .on_deadline(late)
        .build()
    )
    waiting = parked(world, limited, "gate")
    paused = parked(world, limited, "gate")
    world.act(paused, control.pause)
    reconciler = world.reconciler()
    assert reconciler.round() == 0
    world.age(timedelta(hours=2))

    reconciler.round()
    reconciler.round()

    row = world.row(waiting)
    assert (row["worker_status"], row["error_code"], world.effects()) == ("FAILED", 504, ["late"])
    assert world.run_of(paused)["status"] == "paused"


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
