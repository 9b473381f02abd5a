"""Behaviours 25 to 31: items found at run time, how many must succeed, and the reducer."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, engine, fanout
from everest.workflow.builder import workflow
from everest.workflow.runner import run_step
from everest.workflow.ticket import Fenced, Forward, Go, Replay
from tests.workflow.world import MysqlWorld, World, gives

PLAN = gives(items=["x", "y", "z"])


class Work:
    """Handles items; fails those it is told to, so many times. Remembers every call."""

    def __init__(self, **failures: int) -> None:
        self.failures = failures
        self.calls: list[str] = []
        self.__name__ = "work"

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        self.calls.append(step.item)
        if self.failures.get(step.item, 0) > 0:
            self.failures[step.item] -= 1
            raise RuntimeError(f"putus {step.item}")
        step.tx.write(step.item)
        return {"done": step.item, "_hidden": 1}


def test_025_planner_items_reducer_and_what_comes_after(world: World) -> None:
    def reduce(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {
            "joined": "".join(one["done"] for one in state["each"]["results"].values()),
            "items_key": state["items"],
        }

    built = (
        workflow("fans")
        .then(gives(items=["x", "y"]), name="plan")
        .for_each("items", Work(), result_key="each", reducer=reduce)
        .then(gives(z=1), name="after")
        .build()
    )

    run_id = world.begin(built)

    aggregate = {
        "mode": "all", "total": 2, "succeeded": 2, "failed": 0, "winner": 0,
        "results": {"0": {"done": "x"}, "1": {"done": "y"}}, "failures": {},
    }  # fmt: skip
    assert world.state(run_id)["each"] == aggregate
    assert (world.state(run_id)["joined"], world.effects) == ("xy", ["plan", "x", "y", "after"])


def claimed(world: World, definition: Any, start: Any, slot: str) -> fanout.Claimed:
    with world.transaction() as tx:
        found = fanout.claim(tx, definition.step("work"), _token(start, slot))
    assert found is not None
    return found


def _token(start: Any, slot: str) -> Any:
    return replace(start.token, branch=slot)


def test_025_the_winner_is_the_item_that_finished_first(world: World) -> None:
    built = workflow("races").for_each("items", Work(), result_key="each").build()
    run_id = world.start(built, {"items": ["x", "y"]})
    ticket = world.deliver()
    slots = {}
    for slot in ("0", "1"):
        with world.transaction() as tx:
            start = engine.begin(tx, built, ticket, "work", slot)
        assert isinstance(start, Go)
        slots[slot] = start
    with world.transaction() as tx:
        run, _ = engine.owned(tx, built, slots["0"].token)
        fanout.expand(tx, built, run, built.step("work"), slots["0"].token)
    items = {slot: claimed(world, built, start, slot) for slot, start in slots.items()}
    assert [one.index for one in items.values()] == [0, 1], "no item is in two hands"

    for slot in ("1", "0"):
        with world.transaction() as tx:
            engine.settle_item(tx, built, built.step("work"), slots[slot].token, items[slot], {})

    assert (world.status(run_id), world.state(run_id)["each"]["winner"]) == ("completed", 1)


def test_026_the_first_success_goes_on_and_stops_the_others(world: World) -> None:
    work = Work(x=1)
    built = (
        workflow("first").for_each("items", work, mode="first_success", result_key="each").then(gives(), name="after")
    ).max_attempts(1)

    run_id = world.begin(built.build(), {"items": ["x", "y", "z"]})

    each = world.state(run_id)["each"]
    assert (world.status(run_id), each["winner"], each["failed"]) == ("completed", 1, 1)
    assert (work.calls, world.effects) == (["x", "y"], ["y", "after"])


def test_026_a_sibling_that_fails_after_the_first_success_changes_nothing(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    built = (
        workflow("first")
        .for_each("items", Work(), mode="first_success", result_key="each")
        .then(gives(z=1), name="after")
        .max_attempts(1)
        .build()
    )
    run_id = world.start(built, {"items": ["slow", "quick"]})
    ticket = world.deliver()

    def slow_then_fails(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if step.item == "slow":
            quick = run_step(_with(built, Work()), ticket, "work", world.elsewhere, True, branch="1")
            assert quick == Forward("after")
            step.tx.write("slow")
            raise DocumentRefused("terlambat")
        return {}

    assert run_step(_with(built, slow_then_fails), ticket, "work", world.transaction, True, branch="0") == Replay()

    run = world.run(run_id)
    assert (run.status, run.current_step, run.error) == ("running", "after", None)
    assert (run.state["each"]["succeeded"], run.state["each"]["winner"]) == (1, 1)
    world.step(ticket, "after")
    assert (world.status(run_id), world.effects) == ("completed", ["quick", "after"])


def test_026_a_slot_that_comes_when_the_step_is_settled_is_no_failure(mysql_world: MysqlWorld) -> None:
    """Between its start and its look at the items another slot settles the step."""
    world = mysql_world
    built = workflow("late").for_each("items", Work(), mode="first_success").then(gives(), name="after").build()
    world.start(built, {"items": ["x"]})
    ticket = world.deliver()
    opened: list[Any] = []

    def between() -> Any:
        opened.append(1)
        if len(opened) == 2:
            assert world.step(ticket, "work", "1") == Forward("after")
        return world.elsewhere()

    assert run_step(built, ticket, "work", between, True, branch="0") == Replay()


def _with(definition: Any, handler: Any) -> Any:
    steps = tuple(replace(one, handler=handler) if one.name == "work" else one for one in definition.steps)
    return replace(definition, steps=steps)


def test_027_a_quorum_stays_open_after_a_failure_and_goes_on_at_the_second_success(world: World) -> None:
    work = Work(x=1)
    built = (
        workflow("most")
        .then(PLAN, name="plan")
        .for_each("items", work, mode="quorum", quorum=2, result_key="each")
        .then(gives(), name="after")
        .max_attempts(1)
        .build()
    )

    run_id = world.begin(built)

    each = world.state(run_id)["each"]
    assert (world.status(run_id), each["succeeded"], each["failed"], each["winner"]) == ("completed", 2, 1, 1)
    assert set(each["failures"]) == {"0"}
    assert "putus x" in each["failures"]["0"]["message"]
    assert world.effects == ["plan", "y", "z", "after"]


def test_028_a_quorum_of_all_fails_with_its_first_failure(world: World) -> None:
    work = Work(y=1)
    built = (
        workflow("every")
        .then(PLAN, name="plan")
        .for_each("items", work, mode="quorum", quorum=3)
        .max_attempts(1)
        .build()
    )

    run_id = world.begin(built)

    assert (world.status(run_id), work.calls) == ("failed", ["x", "y"])
    assert "item 1" in world.error(run_id)


def test_029_a_retry_runs_only_the_item_that_failed(world: World) -> None:
    work = Work(y=1)
    built = workflow("one_bad").for_each("items", work, result_key="each").max_attempts(1).build()
    run_id = world.begin(built, {"items": ["x", "y", "z"]})
    assert (world.status(run_id), world.effects) == ("failed", ["x"])

    world.act(run_id, control.retry)

    assert world.status(run_id) == "completed"
    assert work.calls == ["x", "y", "y", "z"]
    assert (world.state(run_id)["each"]["succeeded"], world.state(run_id)["each"]["failed"]) == (3, 0)
    assert world.effects == ["x", "y", "z"]


def test_030_the_definitions_attempts_are_every_items_attempts(world: World) -> None:
    work = Work(x=1, y=1)
    run_id = world.begin(workflow("twice").for_each("items", work).max_attempts(2).build(), {"items": ["x", "y"]})

    assert (world.status(run_id), work.calls) == ("completed", ["x", "y", "x", "y"])
    events = [(event, step) for event, step in world.names(run_id, "failed", "retried")]
    assert events == [("failed", "work"), ("retried", "work")] * 2


def test_031_a_reducer_receives_arguments_of_its_own(world: World) -> None:
    def reduce(state: dict[str, Any], step: Any, label: str) -> dict[str, Any]:
        return {label: state["work"]["succeeded"]}

    built = workflow("labelled").for_each("items", Work(), reducer=partial(reduce, label="count")).build()

    run_id = world.begin(built, {"items": ["x", "y"]})

    assert world.state(run_id)["count"] == 2


def test_031_a_reducer_may_name_the_next_step(world: World) -> None:
    def reduce(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"_next_step": "last"}

    built = (
        workflow("jumps").for_each("items", Work(), reducer=reduce).then(gives(), name="b").then(gives(), name="last")
    ).build()

    run_id = world.begin(built, {"items": ["x"]})

    assert (world.status(run_id), world.effects) == ("completed", ["x", "last"])


@pytest.mark.parametrize("slots", [2, 3])
def test_025_slots_side_by_side_run_every_item_once(mysql_world: MysqlWorld, slots: int) -> None:
    world = mysql_world
    work = Work()
    built = workflow("slots").for_each("items", work, result_key="each").then(gives(), name="after").build()
    run_id = world.start(built, {"items": [f"i{number}" for number in range(12)]})
    ticket = world.deliver()
    results: list[Any] = []
    ways = [world.another() for _ in range(slots)]

    def slot(number: int) -> None:
        try:
            results.append(run_step(built, ticket, "work", ways[number].transaction, True, branch=str(number)))
        except Fenced as fenced:  # pragma: no cover - the failure this test is about
            results.append(fenced)

    workers = [threading.Thread(target=slot, args=(number,)) for number in range(slots)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert sorted(map(repr, results)) == sorted(map(repr, [Forward("after")] + [Replay()] * (slots - 1)))
    assert sorted(work.calls) == sorted(f"i{number}" for number in range(12))
    assert world.state(run_id)["each"]["succeeded"] == 12
