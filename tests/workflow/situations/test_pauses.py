"""A pause, and the way back (the situations: see conftest.py)."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, engine, fanout, runner
from everest.workflow.builder import workflow
from everest.workflow.ticket import Go
from tests.workflow.situations.handlers import CHILD, PATIENCE_S, at_once, per_item
from tests.workflow.world import MysqlWorld, World, gives


def test_14_a_resume_while_the_step_is_at_work_runs_nothing_twice(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    started, go_on = threading.Event(), threading.Event()

    def slow(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("slow")
        started.set()
        assert go_on.wait(PATIENCE_S)
        return {}

    built = workflow("slowly").then(slow).run_workflow(CHILD).then(gives(z=1), name="z").build()
    run_id = world.start(built)
    ticket = world.deliver()

    with at_once(lambda: runner.run_step(built, ticket, "slow", other.transaction, is_last_try=True)) as answers:
        assert started.wait(PATIENCE_S)
        world.do(run_id, control.pause, "budi")
        world.do(run_id, control.resume, "budi")
        world.do(run_id, control.pause, "budi")
        world.do(run_id, control.resume, "budi")
        assert world.messages(run_id) == []
        go_on.set()

    assert isinstance(answers[0], engine.Forward)
    world.step(ticket, "child")
    world.act(run_id, control.pause)
    world.act(run_id, control.resume)
    (child_id,) = world.children(run_id)
    world.signal(child_id, "go")
    assert (world.status(run_id), world.effects) == ("completed", ["slow", "z"])


def test_14_a_pause_between_the_branches_of_a_group_loses_no_branch_at_work(world: World) -> None:
    built = workflow("group").parallel({"a": gives(a=1), "b": gives(b=1)}, name="both").build()
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, built, ticket, "both", "a")
    assert isinstance(start, Go)
    world.do(run_id, control.pause)
    assert isinstance(world.step(ticket, "both", "b"), engine.Leave)
    assert world.job(run_id) == "PROCESSING", "branch a is still at work"

    with world.transaction() as tx:
        tx.write("a")
        engine.settle(tx, built, start.token, {"a": 1})
    assert (world.status(run_id), world.job(run_id)) == ("paused", "WAITING")
    world.act(run_id, control.resume)

    assert (world.status(run_id), world.effects) == ("completed", ["a", "b"])


def test_14_a_branch_that_left_under_a_pause_that_is_over_runs_when_the_others_are_done(world: World) -> None:
    """Else the reconciler would find a DAG run that ended too early, and give up after a few."""
    built = workflow("group").parallel({"a": gives(a=1), "b": gives(b=1), "c": gives(c=1)}, name="both").build()
    run_id = world.start(built)
    ticket = world.deliver()
    at_work = []
    for branch in ("a", "b"):
        with world.transaction() as tx:
            at_work.append(engine.begin(tx, built, ticket, "both", branch))
    world.do(run_id, control.pause)
    assert isinstance(world.step(ticket, "both", "c"), engine.Leave)
    world.do(run_id, control.resume)

    for start, messages in zip(at_work, (0, 1), strict=True):
        assert isinstance(start, Go)
        with world.transaction() as tx:
            engine.settle(tx, built, start.token, {start.token.branch: 1})
        assert len(world.messages(run_id)) == messages
    assert world.job(run_id) == "PENDING"
    world.walk()

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "b": 1, "c": 1})
    assert world.effects == ["c"], "a and b played their handlers here"


def test_14_what_stands_behind_a_slot_that_left_under_a_pause_runs_in_the_next_dag_run(world: World) -> None:
    """Airflow has skipped it in this one; and what the slot would have tried again, another one does."""
    built = workflow("items").for_each("items", per_item, "r", name="each").then(gives(z=1), name="z").build()
    run_id = world.start(built, {"items": [1, 2]})
    ticket = world.deliver()
    claimed: dict[str, Any] = {}
    for slot in ("0", "1"):
        with world.transaction() as tx:
            start = engine.begin(tx, built, ticket, "each", slot)
        assert isinstance(start, Go)
        with world.transaction() as tx:
            fanout.expand(tx, built, tx.runs.lock(run_id), built.step("each"), start.token)
        with world.transaction() as tx:
            claimed[slot] = (start.token, fanout.claim(tx, built.step("each"), start.token))
    token, first = claimed["0"]
    with world.transaction() as tx:
        engine.fail_item(tx, built, built.step("each"), token, first, RuntimeError("again"), 1)
    world.do(run_id, control.pause)
    with world.transaction() as tx:
        assert isinstance(fanout.claim(tx, built.step("each"), token), engine.Leave)
    world.do(run_id, control.resume)

    token, second = claimed["1"]
    with world.transaction() as tx:
        engine.settle_item(tx, built, built.step("each"), token, second, {})
    with world.transaction() as tx:
        left = fanout.claim(tx, built.step("each"), token)
    assert isinstance(left, fanout.Claimed)
    assert left.index == first.index
    with world.transaction() as tx:
        result = engine.settle_item(tx, built, built.step("each"), token, left, {})

    assert isinstance(result, engine.Leave)
    assert (world.job(run_id), world.run(run_id).current_step) == ("PENDING", "z")
    world.walk()
    assert world.status(run_id) == "completed"


@pytest.mark.parametrize("fails_meanwhile", [True, False])
def test_14_items_that_failed_for_good_are_tried_again_after_a_failure_and_not_after_a_pause(
    mysql_world: MysqlWorld, fails_meanwhile: bool
) -> None:
    world = mysql_world
    calls: list[int] = []

    def refuses_the_first(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(step.item)
        if step.item == 1:
            raise DocumentRefused("salah")
        if step.item == 2 and calls.count(2) == 1:
            world.meanwhile(step.workflow_id, control.pause)
        return {}

    built = workflow("any").for_each("items", refuses_the_first, "r", "quorum", 2, name="each").build()
    run_id = world.start(built, {"items": [1, 2, 3]})
    world.walk()
    assert world.status(run_id) == "paused"
    if fails_meanwhile:
        with world.transaction() as tx:
            engine.fail_run(tx, built, tx.runs.lock(run_id), DocumentRefused("menyerah", code=503), None)
        world.act(run_id, control.retry, "ann")
    else:
        world.act(run_id, control.resume)

    assert world.status(run_id) == "completed"
    assert calls == ([1, 2, 1, 3] if fails_meanwhile else [1, 2, 3])


def test_14_a_pause_within_a_for_each_stops_after_the_item_and_goes_on_behind_it(world: World) -> None:
    def pauses(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.item)
        return {}

    built = workflow("items").for_each("items", pauses, "r", name="each").build()
    run_id = world.start(built, {"items": [1, 2, 3]})
    ticket = world.deliver()
    original = built.step("each")
    seen: list[int] = []

    def counted() -> Any:
        seen.append(1)
        if len(seen) == 4:  # begin, expand, claim and the first item are done
            world.do(run_id, control.pause)
        return world.transaction()

    result = runner.run_step(built, ticket, original.name, counted, is_last_try=True, branch="0")

    assert isinstance(result, engine.Leave)
    assert (world.status(run_id), world.job(run_id)) == ("paused", "WAITING")
    assert len(world.effects) < 3
    world.act(run_id, control.resume)
    assert (world.status(run_id), world.effects) == ("completed", [1, 2, 3])


def test_15_a_wait_that_is_reached_under_a_pause_is_recorded_and_the_pause_stays(world: World) -> None:
    built = (
        workflow("gate")
        .then(gives(a=1), name="a")
        .wait_for_signal("go", name="gate", timeout=timedelta(hours=1))
        .build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")
    with world.transaction() as tx:
        start = engine.begin(tx, built, ticket, "gate")
    assert isinstance(start, Go)
    world.do(run_id, control.pause)

    with world.transaction() as tx:
        engine.enter(tx, built, start.token)

    assert (world.status(run_id), world.waiting(run_id)["names"], world.messages(run_id)) == ("paused", ["go"], [])
    world.act(run_id, control.resume)
    assert world.status(run_id) == "waiting_for_signal"
    world.signal(run_id, "go")
    assert world.status(run_id) == "completed"
