"""Behaviours 37 to 39: a run inside a run."""

from __future__ import annotations

from typing import Any

from everest.workflow import control
from everest.workflow.builder import workflow
from tests.workflow.world import World, gives

CHILD = workflow("child").then(gives(c=1, _hidden=1), name="work").build()
PARENT = workflow("parent").then(gives(a=1), name="first").run_workflow(CHILD).then(gives(z=1), name="last").build()


def test_037_a_nested_run_has_its_parent_and_the_parent_stands_there(world: World) -> None:
    parent_id = world.start(PARENT, {"p": 0})
    ticket = world.deliver()
    world.step(ticket, "first")
    world.step(ticket, "child")

    (child_id,) = world.children(parent_id)
    parent, child = world.run(parent_id), world.run(child_id)
    assert (child.workflow, child.parent_id, child.parent_step, child.parent_visit) == ("child", parent_id, "child", 1)
    assert (child.status, child.payload) == ("running", {"p": 0, "a": 1})
    assert (parent.status, parent.current_step) == ("waiting_for_workflows", "child")
    assert world.waiting(parent_id)["remaining"] == [child_id]


def test_038_its_end_advances_the_parent_and_its_keys_merge(world: World) -> None:
    seen: list[dict[str, Any]] = []

    def look(state: dict[str, Any], step: Any) -> dict[str, Any]:
        seen.append(dict(state))
        return {}

    built = workflow("sees").then(gives(a=1), name="first").run_workflow(CHILD).then(look).build()
    parent_id = world.begin(built, {"p": 0})

    assert world.status(parent_id) == "completed"
    assert seen == [{"p": 0, "a": 1, "c": 1}]
    assert len(world.children(parent_id)) == 1


def test_039_as_the_last_step_it_completes_the_parent_also_over_three_levels(world: World) -> None:
    middle = workflow("middle").run_workflow(CHILD).build()
    parent_id = world.begin(workflow("top").then(gives(a=1), name="first").run_workflow(middle).build())

    assert (world.status(parent_id), world.state(parent_id)) == ("completed", {"a": 1, "c": 1})
    assert [world.status(one) for one in world.all_runs()] == ["completed"] * 3


def test_039_a_failed_child_fails_the_parent_and_both_can_be_tried_again(world: World) -> None:
    failures = [1]

    def work(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise RuntimeError("putus")
        return {"c": 1}

    child = workflow("weak").then(work).max_attempts(1).build()
    parent_id = world.begin(workflow("depends").run_workflow(child).then(gives(z=1), name="last").build())
    (child_id,) = world.children(parent_id)
    assert [world.status(one) for one in (parent_id, child_id)] == ["failed", "failed"]
    assert f"{child_id} (weak) failed" in world.error(parent_id)

    world.act(child_id, control.retry)
    world.act(parent_id, control.retry)

    assert [world.status(one) for one in (parent_id, child_id)] == ["completed", "completed"]
    assert (world.state(parent_id), world.children(parent_id)) == ({"c": 1, "z": 1}, [child_id])


def test_039_a_parent_that_is_tried_again_first_waits_for_its_child(world: World) -> None:
    failures = [1]

    def work(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise RuntimeError("putus")
        return {"c": 1}

    child = workflow("weak").then(work).max_attempts(1).build()
    parent_id = world.begin(workflow("hasty").run_workflow(child).build())
    (child_id,) = world.children(parent_id)

    world.do(parent_id, control.retry)
    world.do(child_id, control.retry)
    world.walk()

    assert [world.status(one) for one in (parent_id, child_id)] == ["completed", "completed"]


def test_039_cancelling_the_parent_cancels_the_child_and_no_final_status_changes_again(world: World) -> None:
    child = workflow("waits").wait_for_signal("go").then(gives(c=1), name="work").build()
    parent_id = world.begin(workflow("holds").run_workflow(child).then(gives(z=1), name="last").build())
    (child_id,) = world.children(parent_id)

    world.act(parent_id, control.cancel, "budi", "batal")

    assert [world.status(one) for one in (parent_id, child_id)] == ["cancelled", "cancelled"]
    assert [world.job(one) for one in (parent_id, child_id)] == ["CANCELLED", "CANCELLED"]
    assert [world.messages(one) for one in (parent_id, child_id)] == [[], []]
    assert world.effects == []


def test_039_a_cancelled_child_fails_the_parents_step(world: World) -> None:
    child = workflow("waits").wait_for_signal("go").build()
    parent_id = world.begin(workflow("holds").run_workflow(child).then(gives(z=1), name="last").build())
    (child_id,) = world.children(parent_id)

    world.act(child_id, control.cancel, "budi", "batal")

    assert world.status(parent_id) == "failed"
    assert "cancelled" in world.error(parent_id)
