"""Waits, timers and deadlines that a crash left behind, found by the reconciler's rounds."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.engine import Leave
from everest.workflow.questions import ask_decision
from tests.integration.reconciler.world import LONG_AGO, World, note, run_threads

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
