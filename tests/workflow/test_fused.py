"""Fused tasks: consecutive plain steps in one task, one commit each, under the rules of single steps."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tenacity import wait_none

from everest.errors import TransientDatabaseError
from everest.workflow import again, control, engine, runner
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.memory import MemoryDatabase
from everest.workflow.records import Outcome
from everest.workflow.ticket import Fenced, Forward, Leave, Ticket
from tests.workflow.world import MysqlWorld, World, gives

STEPS = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "wait_random_exponential", lambda **_: wait_none())


def fused(**handlers: Any) -> Definition:
    built = workflow("fused").tasks("fused").max_attempts(2)
    for name in STEPS:
        built.then(handlers.get(name, gives(**{name: 1})), name=name)
    return built.build()


def task(definition: Definition, ticket: Ticket, database: Any, is_last_try: bool = True) -> Any:
    return runner.run_task(definition, ticket, STEPS, database.transaction, is_last_try)


def test_each_step_of_a_fused_task_costs_one_commit(world: World) -> None:
    built = fused()
    run_id = world.start(built)
    ticket = world.deliver()
    opened = []

    class Counted:
        def transaction(self) -> Any:
            opened.append(1)
            return world.transaction()

    assert isinstance(task(built, ticket, Counted()), Leave)

    assert (world.status(run_id), world.effects, len(opened)) == ("completed", STEPS, 1 + len(STEPS))
    assert [name for event, name in world.names(run_id, "started")] == STEPS
    assert [one["state_after"] for one in world.records(run_id).values()] == [
        {"a": 1},
        {"a": 1, "b": 1},
        {"a": 1, "b": 1, "c": 1},
    ]


def test_a_step_finds_the_state_as_it_was_stored_and_not_as_it_was_returned(world: World) -> None:
    seen: list[Any] = []
    kept: dict[str, Any] = {"pair": (1, 2)}

    def reads(state: dict[str, Any], step: Any) -> None:
        seen.append(state["pair"])

    built = fused(a=lambda state, step: kept, b=reads)
    world.begin(built)

    assert seen == [[1, 2]]
    assert kept == {"pair": (1, 2)}


def test_a_pause_between_two_fused_steps_lets_the_second_not_begin(world: World) -> None:
    def paused(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("a")
        control.pause(step.tx, world.definitions["fused"], step.workflow_id)
        return {"a": 1}

    run_id = world.start(fused(a=paused))
    world.walk()

    assert (world.status(run_id), world.run(run_id).current_step, world.effects) == ("paused", "b", ["a"])
    assert [key[0] for key in world.records(run_id)] == ["a"]
    world.act(run_id, control.resume)
    assert (world.status(run_id), world.effects) == ("completed", STEPS)


@pytest.mark.parametrize("at", STEPS)
def test_a_pause_of_another_session_lets_the_fused_step_at_work_commit_and_nothing_begin(
    mysql_world: MysqlWorld, at: str
) -> None:
    """What the task knows of its run is not so any more: its write finds out, and looks again under the lock."""
    world = mysql_world

    def paused(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(at)
        world.meanwhile(step.workflow_id, control.pause)
        return {at: 1}

    run_id = world.start(fused(**{at: paused}))
    world.walk()

    done = STEPS[: STEPS.index(at) + 1]
    assert (world.status(run_id), world.effects) == ("completed" if at == "c" else "paused", done)
    assert [event for event, step in world.names(run_id, "started", "completed") if step == at] == [
        "started",
        "completed",
    ]
    assert {key[0] for key in world.records(run_id)} == set(done)
    if at != "c":
        world.act(run_id, control.resume)
    assert (world.status(run_id), world.effects, world.state(run_id)) == ("completed", STEPS, {"a": 1, "b": 1, "c": 1})


def test_whoever_waits_for_a_fused_run_is_woken_by_its_last_commit(world: World) -> None:
    waits = workflow("waits").wait_for_workflow("other", name="join").build()
    run_id = world.start(fused())
    ticket = world.deliver()
    waiter = world.start(waits, {"other": run_id})
    world.step(world.deliver(), "join")
    assert world.status(waiter) == "waiting_for_workflows"

    task(world.definitions["fused"], ticket, world.database)

    assert (world.status(run_id), world.job(waiter)) == ("completed", "PENDING")
    world.walk()
    assert world.status(waiter) == "completed"


def test_what_a_fused_step_does_to_its_state_in_place_is_not_kept(world: World) -> None:
    def spoils(state: dict[str, Any], step: Any) -> None:
        state["list"].append("spoilt")

    run_id = world.begin(fused(a=spoils, b=spoils), {"list": [1]})

    assert world.state(run_id) == {"list": [1], "c": 1}


def test_a_cancel_between_two_fused_steps_makes_the_second_commit_impossible(mysql_world: MysqlWorld) -> None:
    world = mysql_world

    def cancelled(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("b")
        world.meanwhile(step.workflow_id, control.cancel, "ann")
        return {"b": 1}

    built = fused(b=cancelled)
    run_id = world.start(built)

    with pytest.raises(Fenced):
        task(built, world.deliver(), world.database)

    assert (world.status(run_id), world.state(run_id), world.effects) == ("cancelled", {"a": 1}, ["a"])


def test_a_second_copy_that_begins_between_two_fused_steps_takes_the_right_to_commit(mysql_world: MysqlWorld) -> None:
    """The first copy has begun b in the commit of a; the second copy begins b again, and only it may commit."""
    world = mysql_world
    tickets: list[Ticket] = []
    answers: list[Any] = []

    def overtaken(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(f"b {step.attempt}")
        if step.attempt == 1:
            copy = threading.Thread(target=lambda: answers.append(task(built, tickets[0], world.another())))
            copy.start()
            copy.join(60)
        return {"b": step.attempt}

    built = fused(b=overtaken)
    run_id = world.start(built)
    tickets.append(world.deliver())

    with pytest.raises(Fenced):
        task(built, tickets[0], world.database)

    assert [type(one) for one in answers] == [Leave]
    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "b": 2, "c": 1})
    assert world.effects == ["a", "b 2", "c"]


def test_a_failed_step_of_a_fused_task_is_tried_again_without_those_before_it(world: World) -> None:
    calls: list[int] = []

    def flaky(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(step.attempt)
        if len(calls) == 1:
            raise RuntimeError("putus")
        return {"b": len(calls)}

    run_id = world.begin(fused(b=flaky))

    assert (world.status(run_id), calls, world.effects) == ("completed", [1, 2], ["a", "c"])


@pytest.mark.parametrize("lost", ["commit", "answer"])
def test_a_lost_commit_or_answer_between_two_fused_steps_runs_each_once(lost: str) -> None:
    database = MemoryDatabase()
    world = World(database=database)
    built = fused(b=lambda state, step: step.tx.write(f"b {step.attempt}") or {"b": 1}, a=gives(a=1))
    world.start(built)
    ticket = world.deliver()
    commits: list[int] = []

    def trouble() -> None:
        commits.append(1)
        if len(commits) == 2:  # a's settling, which begins b
            raise TransientDatabaseError("server has gone away", 2006)

    setattr(database, "before_commit" if lost == "commit" else "after_commit", trouble)
    task(built, ticket, database)

    assert database.tables.effects == ["a", "b 1" if lost == "commit" else "b 2", "c"]


def test_a_branch_forward_inside_a_fused_task_skips_what_lies_between(world: World) -> None:
    run_id = world.begin(fused(a=gives(_next_step="c")))

    assert (world.status(run_id), world.effects) == ("completed", ["a", "c"])
    assert [name for _, name in world.names(run_id, "started")] == ["a", "c"]


def test_a_run_that_stands_inside_a_fused_task_goes_on_there(world: World) -> None:
    built = fused()
    world.start(built)
    ticket = world.deliver()

    assert world.step(ticket, "a") == Forward("b")
    task(built, ticket, world.database)

    assert world.effects == STEPS


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize(
    ("nota", "answered", "ends"),
    [
        ("SO-2", None, "FAILED"),
        ("SO-2", "SO-1", "FAILED"),
        ("SO-2", "SO-2 ", "COMPLETED"),
        ("SO-1 ", None, "COMPLETED"),
        (None, None, "COMPLETED"),
        (" ", "SO-1", "COMPLETED"),
    ],
)
def test_second_jobs_of_a_document_share_its_success_unless_they_name_another_nota_than_it_ended_as(
    world: World, is_fused: bool, nota: str | None, answered: str | None, ends: str
) -> None:
    built = fused(c=gives(_response={"nomer_nota": answered} if answered else {}))
    with world.transaction() as tx:
        sent = engine.dispatch(tx, built, {"transaksi_id": 7}, transaksi_id=7, nomer_nota="SO-1")
        run = tx.runs.lock(sent.workflow_id)
        second = tx.runs.insert_shadow(run, 7, nota, "{}")
        tx.runs.set_shadow(second, Outcome("WAITING"), run.current_step)
    ticket = world.deliver()

    for steps in [STEPS] if is_fused else [[one] for one in STEPS]:
        runner.run_task(built, ticket, steps, world.transaction, is_last_try=True)

    with world.transaction() as tx:
        row, first = tx.runs.shadow(second), tx.runs.shadow(sent.shadow_id)
    assert row is not None and first is not None
    assert (row.worker_status, first.worker_status) == (ends, "COMPLETED")
    assert row.workflow_id == (None if ends == "FAILED" else sent.workflow_id)
