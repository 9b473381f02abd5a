"""A cancel, and what it undoes (the situations: see conftest.py)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from everest.workflow import control, runner
from everest.workflow.builder import workflow
from everest.workflow.ticket import Fenced
from tests.workflow.situations.handlers import PATIENCE_S, Died, at_once, never
from tests.workflow.world import MysqlWorld, World, gives


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write("undo")


def test_11_a_step_in_flight_leaks_nothing_and_what_was_done_is_undone(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    started, go_on = threading.Event(), threading.Event()

    def slow(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("in flight")
        started.set()
        assert go_on.wait(PATIENCE_S)
        return {"b": 1}

    built = (
        workflow("flight").then(gives(a=1), name="a", compensate_with=undo).then(slow, compensate_with=never).build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")

    def works() -> Any:
        return runner.run_step(built, ticket, "slow", other.transaction, is_last_try=True)

    with at_once(works) as answers:
        assert started.wait(PATIENCE_S)
        world.do(run_id, control.cancel, "budi")
        go_on.set()

    assert isinstance(answers[0], Fenced)
    world.compensate()
    assert (world.status(run_id), world.effects, world.state(run_id)) == ("cancelled", ["a", "undo"], {"a": 1})
    assert world.run(run_id).compensation == "done"


def dies(state: dict[str, Any], step: Any) -> None:
    step.tx.write("half")
    if DEATHS:
        DEATHS.pop()
        raise Died


DEATHS: list[int] = []


def test_12_compensation_goes_on_from_its_own_record_after_a_crash(world: World) -> None:
    built = (
        workflow("undone")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(gives(b=1), name="b", compensate_with=dies)
        .then(gives(c=1), name="c", compensate_with=undo)
        .wait_for_signal("go")
        .build()
    )
    run_id = world.begin(built)
    DEATHS[:] = [1]
    world.do(run_id, control.cancel)
    with pytest.raises(Died):
        world.compensate()
    assert world.effects == ["a", "b", "c", "undo"]
    assert world.run(run_id).compensation == "pending"

    world.compensate()

    assert world.effects == ["a", "b", "c", "undo", "half", "undo"]
    assert world.run(run_id).compensation == "done"


def throws(state: dict[str, Any], step: Any) -> None:
    if TROUBLE:
        raise RuntimeError(TROUBLE.pop())
    step.tx.write("undone at last")


TROUBLE: list[str] = []


def test_13_a_compensation_that_throws_is_retried_then_shown_and_retried_by_hand(world: World) -> None:
    built = (
        workflow("thrown")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(gives(b=1), name="b", compensate_with=throws)
        .wait_for_signal("go")
        .max_attempts(2)
        .build()
    )
    run_id = world.begin(built)
    TROUBLE[:] = ["third", "second", "first"]

    world.act(run_id, control.cancel)

    with world.transaction() as tx:
        shown = {one.step: (one.status, one.attempts) for one in tx.runs.compensations(run_id)}
    assert (world.run(run_id).compensation, shown) == ("failed", {"a": ("pending", 0), "b": ("failed", 2)})
    assert "undo" not in world.effects, "strictly newest first"
    world.act(run_id, control.compensate)
    assert world.run(run_id).compensation == "failed"
    world.act(run_id, control.compensate)

    assert (world.run(run_id).compensation, world.effects) == ("done", ["a", "b", "undone at last", "undo"])


def test_12_two_processes_at_one_compensation_do_it_once(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    built = workflow("twice").then(gives(a=1), name="a", compensate_with=holds).wait_for_signal("go").build()
    run_id = world.begin(built)
    world.do(run_id, control.cancel)
    HELD.clear()
    GO_ON.clear()

    with at_once(lambda: control.compensate_all(other.transaction, run_id, world.deployed)) as answers:
        assert HELD.wait(PATIENCE_S)
        assert control.compensate_all(world.transaction, run_id, world.deployed) is False, "another one is at it"
        GO_ON.set()

    assert answers == [True]
    assert world.effects == ["a", "held"]


HELD, GO_ON = threading.Event(), threading.Event()


def holds(state: dict[str, Any], step: Any) -> None:
    step.tx.write("held")
    HELD.set()
    assert GO_ON.wait(PATIENCE_S)
