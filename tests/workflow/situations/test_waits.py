"""Signals, timeouts, workflows that wait for each other (the situations: see conftest.py)."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from everest.errors import DocumentRefused, WaitTimeout
from everest.reconciler import rows
from everest.reconciler.workflows import WorkflowRepairs
from everest.workflow import control, engine, runner
from everest.workflow.builder import workflow
from everest.workflow.ticket import Go
from tests.workflow.situations.handlers import CHILD, PATIENCE_S, at_once, wait_for_lock
from tests.workflow.world import MysqlWorld, World, gives


def test_07_each_wait_takes_a_signal_of_its_own_also_in_a_loop(world: World) -> None:
    def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"seen": [*state.get("seen", []), state["go"]["n"]]}

    built = (
        workflow("gates")
        .wait_for_signal("go", name="first", result_key="go")
        .then(counts)
        .repeat_until("first", condition=lambda state: len(state["seen"]) == 2)
        .wait_for_signal("go", name="second", result_key="go")
        .build()
    )
    run_id = world.begin(built)
    world.signal(run_id, "go", {"n": 1})
    assert (world.status(run_id), world.run(run_id).current_step) == ("waiting_for_signal", "first")
    world.signal(run_id, "go", {"n": 2})
    assert (world.status(run_id), world.run(run_id).current_step) == ("waiting_for_signal", "second")
    world.signal(run_id, "go", {"n": 3})

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"go": {"n": 3}, "seen": [1, 2]})


def test_07_a_wait_that_failed_and_is_retried_has_its_signals_still(world: World) -> None:
    built = (
        workflow("both").wait_for_signals(["a", "b"], name="gate", result_key="got", timeout=timedelta(hours=1)).build()
    )
    run_id = world.begin(built)
    world.signal(run_id, "a", {"n": 1})
    world.pass_time(timedelta(hours=2))
    assert world.status(run_id) == "failed"

    world.act(run_id, control.retry)
    world.signal(run_id, "b", {"n": 2})

    assert world.state(run_id) == {"got": {"a": {"n": 1}, "b": {"n": 2}}}


def times_out(kind: str) -> Any:
    limit = {"timeout": timedelta(hours=1)}
    built = workflow(f"limited_{kind}")
    match kind:
        case "signal":
            return built.wait_for_signal("go", name="wait", **limit)
        case "approval":
            return built.wait_for_approval(name="wait", **limit)
        case "workflows":
            return built.wait_for_workflows("ids", name="wait", **limit)
        case _:
            return built.run_workflow(CHILD, name="wait", **limit)


@pytest.mark.parametrize("kind", ["signal", "approval", "workflows", "nested"])
def test_08_every_wait_ends_by_its_timeout(world: World, kind: str) -> None:
    other = world.begin(CHILD)
    run_id = world.begin(times_out(kind).build(), {"ids": [other]})
    assert world.status(run_id).startswith("waiting_for_")
    world.pass_time(timedelta(minutes=59))
    assert world.status(run_id).startswith("waiting_for_")

    world.pass_time(timedelta(minutes=2))

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)
    assert "wait" in world.error(run_id)


def test_08_a_wait_that_timed_out_is_not_tried_again(world: World) -> None:
    run_id = world.start(workflow("late").wait_for_signal("go", timeout=timedelta(hours=1)).build())
    world.walk()
    world.database.move_clock(timedelta(hours=2))
    ticket = world.deliver()

    with pytest.raises(WaitTimeout) as raised:
        world.step(ticket, world.run(run_id).current_step or "", is_last_try=False)

    assert runner.is_recorded(raised.value)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)


def test_08_a_deadline_covers_waiting(world: World) -> None:
    run_id = world.begin(workflow("due").wait_for_signal("go").must_complete_within(timedelta(hours=1)).build())
    assert not world.do(run_id, control.expire)
    world.database.move_clock(timedelta(hours=2))

    assert world.do(run_id, control.expire)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)


def test_08_a_deadline_whose_handler_raises_has_passed_all_the_same(world: World) -> None:
    def clumsy(state: dict[str, Any], step: Any) -> None:
        step.tx.write("half done")
        raise ZeroDivisionError

    due = workflow("due").wait_for_signal("go").must_complete_within(timedelta(hours=1)).on_deadline(clumsy).build()
    run_id = world.begin(due)
    world.database.move_clock(timedelta(hours=2))

    assert world.do(run_id, control.expire)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)
    assert world.events(run_id)[-1]["event"] == "deadline_handler_failed"
    assert world.effects == []


def test_24_a_waiter_and_the_end_it_waits_for_at_once_do_not_miss_each_other(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    work = workflow("work").then(gives(a=1), name="a").build()
    waits = workflow("waits").wait_for_workflows("ids", name="wait").then(gives(z=1), name="z").build()
    worker = world.start(work)
    worker_ticket = world.deliver()
    waiter = world.start(waits, {"ids": [worker]})
    ticket = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, waits, ticket, "wait")
    assert isinstance(start, Go)

    beside = ExitStack()
    with world.transaction() as tx:
        engine.enter(tx, waits, start.token)
        ends = partial(runner.run_step, work, worker_ticket, "a", other.transaction, is_last_try=True)
        beside.enter_context(at_once(ends))
        wait_for_lock(world)
    beside.close()

    world.walk()
    assert (world.status(waiter), world.effects) == ("completed", ["a", "z"])


def test_24_a_wake_up_that_was_lost_is_found_by_the_reconciler(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    other = world.begin(CHILD)
    waiter = world.begin(workflow("waits").wait_for_workflows("ids", name="wait").build(), {"ids": [other]})
    with world.transaction() as tx, tx.conn.cursor() as cursor:
        cursor.execute("UPDATE workflow_runs SET status = 'completed' WHERE id = %s", (other,))
    world.walk()
    assert world.status(waiter) == "waiting_for_workflows"

    repairs = WorkflowRepairs(world.database, world.deployed, lambda: False)  # type: ignore[arg-type]
    with world.transaction() as tx:
        found = rows.decided_waits(tx.conn, rows.Page(100))
    assert [repairs.wake_waiter(one) for one in (*found, *found)] == [True, False]

    world.walk()
    assert world.status(waiter) == "completed"


def test_24_two_runs_that_begin_to_wait_for_each_other_at_once_are_told(mysql_world: MysqlWorld) -> None:
    """Both look before either has recorded its wait: locks make one of them look again."""
    world, other = mysql_world, mysql_world.another()
    ring = workflow("ring").wait_for_signal("ids", name="learn").wait_for_workflows("ids", name="wait").build()
    one, two = world.begin(ring), world.begin(ring)
    tickets = {}
    for run_id, ids in ((one, [two]), (two, [one])):
        world.do(run_id, control.signal, "ids", {"ids": ids})
        tickets[run_id] = world.deliver()
        world.step(tickets[run_id], "learn")
    both = threading.Barrier(2)

    def waits(run_id: int, database: Any) -> Any:
        both.wait(PATIENCE_S)
        return runner.run_step(ring, tickets[run_id], "wait", database.transaction, is_last_try=True)

    with at_once(lambda: waits(two, other)) as answers:
        try:
            answers.append(waits(one, world.database))
        except DocumentRefused as refused:
            answers.append(refused)

    told = [answer for answer in answers if isinstance(answer, DocumentRefused)]
    assert len(answers) == 2
    assert told, answers
    assert all("ring" in refused.message or "terpenuhi" in refused.message for refused in told)
    assert "waiting_for_workflows" not in {world.status(one), world.status(two)} or len(told) == 1
    world.walk()
    assert {world.status(one), world.status(two)} == {"failed"}
