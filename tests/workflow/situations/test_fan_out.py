"""Items, branches, loops, jumps (the situations: see conftest.py)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DefinitionError, DocumentRefused
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.ticket import Go
from tests.workflow.situations.handlers import Fixable, never, per_item
from tests.workflow.world import World, gives


@pytest.mark.parametrize(
    ("mode", "quorum", "ends"), [("all", None, True), ("first_success", None, False), ("quorum", 1, False)]
)
def test_01_zero_items_settle_empty_or_fail_with_the_name_of_the_step(
    world: World, mode: Any, quorum: int | None, ends: bool
) -> None:
    run_id = world.begin(
        workflow("none").for_each("items", never, "r", mode, quorum, name="each").build(), {"items": []}
    )

    if ends:
        assert (world.status(run_id), world.state(run_id)["r"]["total"]) == ("completed", 0)
    else:
        assert world.status(run_id) == "failed"
        assert "each" in world.error(run_id)


def test_02_a_quorum_above_the_count_fails_when_the_items_are_found(world: World) -> None:
    built = workflow("few").for_each("items", never, mode="quorum", quorum=3, name="each").build()
    run_id = world.begin(built, {"items": [1, 2]})

    assert (world.status(run_id), world.effects) == ("failed", [])
    assert "each" in world.error(run_id)


@pytest.mark.parametrize("source", [{"a": 1}, "text", 7, None])
def test_03_a_source_that_is_no_list_fails_at_once_and_for_good(world: World, source: Any) -> None:
    run_id = world.begin(workflow("odd").for_each("items", never, name="each").build(), {"items": source})

    assert world.status(run_id) == "failed"
    assert len(world.names(run_id, "started")) == 1


def test_04_each_pass_of_a_loop_has_its_own_branches_items_and_results(world: World) -> None:
    def more(state: dict[str, Any], step: Any) -> dict[str, Any]:
        passes = state.get("passes", 0) + 1
        return {"passes": passes, "items": list(range(passes * 10, passes * 10 + passes))}

    def left(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write([step.branch, step.visit])
        return {"left": state["passes"]}

    built = (
        workflow("loops")
        .then(more)
        .for_each("items", per_item, "r", name="each")
        .parallel({"left": left, "right": gives(right=1)}, name="both")
        .repeat_until("more", "passes", 3)
        .build()
    )
    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id)["left"]) == ("completed", 3)
    assert world.state(run_id)["r"]["results"] == {str(index): {"twice": 2 * (30 + index)} for index in range(3)}
    items = [one for one in world.effects if one[0] == "each"]
    assert items == [
        ["each", 1, 10],
        ["each", 2, 20],
        ["each", 2, 21],
        ["each", 3, 30],
        ["each", 3, 31],
        ["each", 3, 32],
    ]
    assert [one for one in world.effects if one[0] == "left"] == [["left", 1], ["left", 2], ["left", 3]]


def test_05_a_retry_runs_only_the_branches_that_are_unfinished(world: World) -> None:
    broken = Fixable(b=2)
    built = workflow("group").parallel({"good": gives(a=1), "bad": broken, "late": gives(c=3)}).build()
    run_id = world.begin(built)
    assert world.status(run_id) == "failed"
    broken.is_broken = False

    world.act(run_id, control.retry)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "b": 2, "c": 3})
    assert sorted(world.effects) == ["bad", "good", "late"]


def test_05_a_branch_that_comes_late_or_again_does_not_undo_the_groups_failure(world: World) -> None:
    """Airflow begins and repeats tasks by itself: only the failed one, or one a person cleared, may reopen the run."""
    broken = Fixable(b=2)
    built = (
        workflow("group").parallel({"slow": gives(a=1), "bad": broken}, name="both").then(gives(z=1), name="z").build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        assert isinstance(engine.begin(tx, built, ticket, "both", "slow"), Go)
    with pytest.raises(DocumentRefused):
        world.step(ticket, "both", "bad")

    for branch in ("slow", "slow"):
        assert isinstance(world.step(ticket, "both", branch), engine.Leave)
    assert isinstance(world.step(ticket, "z"), engine.Leave)
    assert (world.status(run_id), world.job(run_id), world.effects) == ("failed", "FAILED", [])

    broken.is_broken = False
    cleared = replace(ticket, clears=1)
    world.step(cleared, "both", "bad")
    world.step(cleared, "both", "slow")
    world.step(cleared, "z")
    assert (world.status(run_id), sorted(world.effects)) == ("completed", ["bad", "slow", "z"])


def test_05_a_run_that_was_failed_from_outside_is_reopened_by_a_clear_alone(world: World) -> None:
    built = (
        workflow("late")
        .then(gives(a=1), name="a")
        .then(gives(b=1), name="b")
        .must_complete_within(timedelta(hours=1))
        .build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")
    world.database.move_clock(timedelta(hours=2))
    world.do(run_id, control.expire)

    assert isinstance(world.step(ticket, "b"), engine.Leave)
    assert world.status(run_id) == "failed"

    world.step(replace(ticket, clears=1), "b")
    assert world.status(run_id) == "completed"


def test_06_an_empty_group_is_refused_when_it_is_built() -> None:
    with pytest.raises(DefinitionError, match="at least one branch"):
        workflow("empty").parallel([], name="nothing").build()


def test_23_an_unknown_target_fails_without_running_the_handler_again(world: World) -> None:
    calls: list[int] = []

    def strays(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(1)
        return {"_next_step": "nowhere"}

    run_id = world.begin(workflow("strays").then(strays).max_attempts(5).build())

    assert (world.status(run_id), len(calls)) == ("failed", 1)
    assert "nowhere" in world.error(run_id)


def test_23_an_unknown_target_of_a_reducer_runs_no_further_item(world: World) -> None:
    built = workflow("strays").for_each(
        "items", per_item, mode="first_success", reducer=lambda state, step: {"_next_step": "nowhere"}, name="each"
    )
    run_id = world.begin(built.build(), {"items": [1, 2, 3]})

    assert (world.status(run_id), world.effects) == ("failed", [])
    assert "nowhere" in world.error(run_id)
    assert len(world.names(run_id, "started")) == 1


def test_25_an_item_limit_on_a_first_step_fails_the_run(world: World) -> None:
    built = workflow("many").for_each("items", never, name="each").max_for_each_items(2).build()
    run_id = world.begin(built, {"items": [1, 2, 3]})

    assert (world.status(run_id), world.run(run_id).error_code, world.effects) == ("failed", 422, [])
    assert "max_for_each_items" in world.error(run_id)


def test_25_a_budget_that_an_items_result_breaks_runs_no_further_item(world: World) -> None:
    def large(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.item)
        return {"text": "x" * 500}

    built = workflow("large").for_each("items", large, mode="first_success", name="each").max_state_bytes(300).build()
    run_id = world.begin(built, {"items": [1, 2, 3]})

    assert (world.status(run_id), world.run(run_id).error_code, world.effects) == ("failed", 422, [])
    assert len(world.names(run_id, "started")) == 1


def test_26_the_count_is_reset_also_when_a_branch_leaves_the_loop(world: World) -> None:
    def outer(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"outer": state.get("outer", 0) + 1, "inner": 0}

    def leaves(state: dict[str, Any], step: Any) -> dict[str, Any]:
        inner = state["inner"] + 1
        return {"inner": inner} | ({"_next_step": "behind"} if inner == 3 else {})

    built = (
        workflow("leaves")
        .then(outer)
        .then(leaves)
        .repeat_until("leaves", "inner", "never", max_iterations=2, name="inner_again")
        .then(gives(), name="behind")
        .repeat_until("outer", "outer", 3, name="outer_again")
        .build()
    )
    run_id = world.begin(built)

    assert (world.status(run_id), world.effects) == ("completed", ["behind"] * 3)


def test_26_a_loops_count_is_reset_when_the_loop_is_left(world: World) -> None:
    def outer(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"outer": state.get("outer", 0) + 1, "inner": 0}

    def inner(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write([state["outer"], state["inner"]])
        return {"inner": state["inner"] + 1}

    built: Definition = (
        workflow("loops")
        .then(outer)
        .then(inner)
        .repeat_until("inner", "inner", 3, max_iterations=2, name="inner_again")
        .repeat_until("outer", "outer", 3, max_iterations=2, name="outer_again")
        .build()
    )
    run_id = world.begin(built)

    assert world.status(run_id) == "completed"
    assert world.effects == [[one, two] for one in (1, 2, 3) for two in (0, 1, 2)]
