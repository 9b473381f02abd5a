"""Hand-offs, keys, versions, budgets of the state (the situations: see conftest.py)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from everest.errors import Conflict, TransientDatabaseError
from everest.workflow import control, starts
from everest.workflow.builder import workflow
from tests.workflow.situations.handlers import at_once, wait_for_lock
from tests.workflow.world import MysqlWorld, World, gives


def test_16_a_hand_off_that_fails_half_way_starts_exactly_one_run_per_item(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = workflow("agent").then(gives(done=1), name="work").build()
    built = workflow("hands").start_workflows("items", agent, name="start").wait_for_agents().build()
    original, left = starts.start_child, [7, 4, 2]

    def stumbles(*arguments: Any, **named: Any) -> int:
        if left and arguments[5] == left[-1]:
            left.pop()
            raise TransientDatabaseError("deadlock", 1213) if len(left) % 2 else RuntimeError("a bug")
        return original(*arguments, **named)

    monkeypatch.setattr(starts, "start_child", stumbles)
    run_id = world.begin(built, {"items": list(range(10))})

    assert (left, world.status(run_id)) == ([], "completed")
    children = world.children(run_id)
    assert world.state(run_id)["started_workflow_ids"] == children
    assert [world.state(one)["item"] for one in children] == list(range(10))
    assert world.effects == ["work"] * 10


def test_17_a_key_lives_as_long_as_its_last_writer(world: World) -> None:
    built = workflow("prunes").then(gives(old=1, kept=1), name="a").then(gives(kept=2), name="b")
    run_id = world.begin(built.then(gives(c=1), name="c").prune_state_after(2).build())

    assert world.state(run_id) == {"kept": 2, "c": 1}


def test_18_a_key_belongs_to_its_workflow_and_its_payload(world: World) -> None:
    one = workflow("one").then(gives(a=1), name="a").idempotency_key("{k}").build()
    two = workflow("two").then(gives(a=1), name="a").idempotency_key("{k}").build()
    first = world.begin(one, {"k": "x"})

    assert world.start(two, {"k": "x"}) != first
    assert world.start(one, {"k": "x"}) == first
    with pytest.raises(Conflict, match="another payload"):
        world.dispatch(one, {"k": "x", "more": 1})


def test_18_two_dispatches_of_one_key_at_once_make_one_run(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    built = workflow("keyed").then(gives(a=1), name="a").idempotency_key("{k}").build()
    world.know(built)

    def dispatches() -> Any:
        with other.transaction() as tx:
            return control.dispatch(tx, built, {"k": "x"}).workflow_id

    beside = ExitStack()
    with world.transaction() as tx:
        first = control.dispatch(tx, built, {"k": "x"}).workflow_id
        answers = beside.enter_context(at_once(dispatches))
        wait_for_lock(world)
    beside.close()

    assert answers == [first]
    world.walk()
    assert (world.all_runs(), world.effects, world.status(first)) == ([first], ["a"], "completed")


def test_19_a_run_of_another_definition_stops_with_a_sentence(world: World) -> None:
    old = workflow("changes").wait_for_signal("go", name="gate").then(gives(a=1), name="a").build()
    new = (
        workflow("changes")
        .wait_for_signal("go", name="gate")
        .then(gives(b=1), name="b")
        .then(gives(c=1), name="c")
        .build()
    )
    run_id = world.begin(old)
    world.definitions["changes"] = new

    world.signal(run_id, "go")

    assert (world.status(run_id), world.effects) == ("failed", [])
    assert "another definition" in world.error(run_id)


@pytest.mark.parametrize("budget", ["transitions", "bytes"])
def test_20_a_budget_that_breaks_on_delivery_keeps_the_signal_and_fails_the_run(world: World, budget: str) -> None:
    built = workflow("tight").then(gives(a=1), name="a").wait_for_signal("go", name="gate", result_key="got")
    built = built.max_transitions(1) if budget == "transitions" else built.max_state_bytes(100)
    run_id = world.begin(built.build())

    world.signal(run_id, "go", {"text": "x" * 200})

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 422)
    assert world.signals(run_id) == [("go", {"text": "x" * 200})]
    assert "got" not in world.state(run_id)
