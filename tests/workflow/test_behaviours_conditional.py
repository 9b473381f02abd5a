"""Behaviours 22 to 24: a step names the next one."""

from __future__ import annotations

from typing import Any

from everest.workflow.builder import workflow
from tests.workflow.world import World, gives


def test_022_a_step_that_is_jumped_over_never_runs(world: World) -> None:
    built = (
        workflow("skips")
        .then(gives(_next_step="last", a=1), name="first")
        .then(gives(b=2), name="middle")
        .then(gives(c=3), name="last")
        .build()
    )

    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "c": 3})
    assert (world.effects, world.run(run_id).n) == (["first", "last"], 1)
    assert ("middle", 1, "") not in world.records(run_id)


def test_022_a_step_back_is_a_new_visit_in_a_new_dag_run(world: World) -> None:
    def checks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"passes": step.visit, "_next_step": "first" if step.visit < 3 else None}

    built = workflow("back").then(gives(), name="first").then(checks).then(gives(), name="last").build()

    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id), world.run(run_id).n) == ("completed", {"passes": 3}, 3)
    assert world.effects == ["first", "first", "first", "last"]


def test_023_an_unknown_target_fails_at_once_and_names_it(world: World) -> None:
    calls: list[int] = []

    def lost(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(step.attempt)
        step.tx.write("lost")
        return {"_next_step": "nowhere"}

    run_id = world.begin(workflow("lost").then(lost).then(gives(), name="last").max_attempts(5).build())

    assert (world.status(run_id), world.job(run_id), calls) == ("failed", "FAILED", [1])
    assert "_next_step 'nowhere'" in world.error(run_id)
    assert world.effects == []


def test_024_without_a_target_the_next_step_in_order_runs(world: World) -> None:
    def checks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"_next_step": None}

    run_id = world.begin(workflow("linear").then(checks).then(gives(), name="b").then(gives(), name="c").build())

    assert (world.status(run_id), world.effects) == ("completed", ["b", "c"])


def test_024_steps_are_known_by_name_not_by_position(world: World) -> None:
    built = workflow("by_position").then(gives(_next_step="2"), name="a").then(gives(), name="b").build()

    run_id = world.begin(built)

    assert (world.status(run_id), "'2'" in world.error(run_id)) == ("failed", True)
