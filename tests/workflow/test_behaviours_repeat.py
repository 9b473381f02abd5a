"""Behaviours 32 to 36: loops."""

from __future__ import annotations

from typing import Any

import pytest

from everest.errors import DefinitionError
from everest.workflow import control
from everest.workflow.builder import Builder, workflow
from tests.workflow.world import World, gives


def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
    step.tx.write(step.visit)
    return {"n": state.get("n", 0) + 1}


def test_032_until_runs_three_times_and_falls_through(world: World) -> None:
    run_id = world.begin(
        workflow("until").then(counts).repeat_until("counts", "n", 3).then(gives(z=1), name="z").build()
    )

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"n": 3, "z": 1})
    assert world.effects == [1, 2, 3, "z"]


def test_032_equality_is_strict_about_the_type(world: World) -> None:
    built = workflow("strict").then(gives(n=1), name="a").repeat_until("a", "n", True, max_iterations=1).build()

    assert world.status(world.begin(built)) == "failed", "1 is not True"


def test_033_while_loops_until_the_flag_falls(world: World) -> None:
    def works(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.visit)
        return {"more": step.visit < 4}

    run_id = world.begin(workflow("while").then(works).repeat_while("works", "more").build())

    assert (world.status(run_id), world.state(run_id), world.effects) == ("completed", {"more": False}, [1, 2, 3, 4])


class Reached:
    """A condition with an argument of its own."""

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold

    def __call__(self, state: dict[str, Any]) -> bool:
        return bool(state["n"] >= self.threshold)


def test_034_a_condition_class_decides_within_its_iterations(world: World) -> None:
    built = workflow("reaches").then(counts).repeat_until("counts", condition=Reached(3), max_iterations=5).build()

    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"n": 3})


def test_035_a_loop_without_end_fails_the_run(world: World) -> None:
    built = workflow("ever").then(counts).repeat_while("counts", condition=lambda state: True, max_iterations=2).build()

    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id), world.effects) == ("failed", {"n": 3}, [1, 2, 3])
    assert "repeat" in world.error(run_id)


@pytest.mark.parametrize(
    ("builder", "sentence"),
    [
        (workflow("w").then(counts).repeat_until("nowhere", "n", 3), "'nowhere' is no earlier step"),
        (workflow("w").repeat_until("counts", "n", 3).then(counts), "'counts' is no earlier step"),
        (workflow("w").then(counts).repeat_until("counts"), "exactly one of state_key and condition"),
        (workflow("w").then(counts).repeat_while("counts", "n", condition=bool), "exactly one of"),
        (workflow("w").then(counts).repeat_while("counts", "n", max_iterations=0), "max_iterations is 0"),
    ],
)
def test_036_a_wrong_loop_is_refused_when_built(builder: Builder, sentence: str) -> None:
    with pytest.raises(DefinitionError, match="repeat") as refused:
        builder.build()
    assert sentence in refused.value.message


def test_036_each_pass_is_a_new_visit_of_groups_items_and_waits(world: World) -> None:
    def item(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"seen": [step.visit, step.item]}

    built = (
        workflow("fresh")
        .then(counts)
        .parallel({"left": gives(left=1), "right": gives(right=1)})
        .for_each("items", item, result_key="each")
        .wait_for_signal("go")
        .repeat_until("counts", "n", 2)
        .build()
    )
    run_id = world.begin(built, {"items": ["x"]})
    assert world.state(run_id)["each"]["results"] == {"0": {"seen": [1, "x"]}}

    world.signal(run_id, "go", {"first": 1})
    assert (world.status(run_id), world.run(run_id).visit) == ("waiting_for_signal", 2), "the first signal is used up"
    assert world.state(run_id)["each"]["results"] == {"0": {"seen": [2, "x"]}}
    world.signal(run_id, "go", {"second": 1})

    assert world.status(run_id) == "completed"
    assert sorted(map(str, world.effects)) == ["1", "2", "left", "left", "right", "right"]


def test_036_the_count_of_a_loop_starts_anew_when_it_was_left(world: World) -> None:
    def inner(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"inner": state.get("inner", 0) + 1}

    def outer(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"outer": state.get("outer", 0) + 1, "inner": 0}

    built = (
        workflow("nested_loops")
        .then(outer)
        .then(inner)
        .repeat_until("inner", "inner", 3, max_iterations=2)
        .repeat_until("outer", "outer", 3, max_iterations=2)
        .build()
    )

    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"outer": 3, "inner": 3})


def test_036_a_paused_loop_goes_on_with_its_next_pass(world: World) -> None:
    def work(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if step.visit == 2:
            world.meanwhile(step.workflow_id, control.pause)
        return {"n": step.visit}

    run_id = world.begin(workflow("pausing").then(work).repeat_until("work", "n", 3).build())
    assert (world.status(run_id), world.state(run_id)) == ("paused", {"n": 2})

    world.act(run_id, control.resume)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"n": 3})


def test_a_condition_cannot_change_the_state_it_looks_at(world: World) -> None:
    def meddles(state: dict[str, Any]) -> bool:
        state["seen"].append("meddled")
        state["more"] = 1
        return True

    run_id = world.begin(
        workflow("meddles").then(gives(a=1), name="a").repeat_until("a", condition=meddles).build(), {"seen": []}
    )

    assert world.state(run_id) == {"seen": [], "a": 1}


def test_a_tuple_that_is_expected_is_the_list_in_the_state(world: World) -> None:
    built = (
        workflow("pairs").then(gives(pair=[1, 2]), name="a").repeat_until("a", "pair", (1, 2), max_iterations=1).build()
    )

    assert world.status(world.begin(built)) == "completed"
