"""A person clears tasks in Airflow: only that reopens a failed run, once for each clear, whatever task comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import engine
from everest.workflow.builder import workflow
from everest.workflow.ticket import Forward, Leave, Replay
from tests.workflow.world import World, gives


class Broken:
    def __init__(self) -> None:
        self.is_broken = True

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        if self.is_broken:
            raise DocumentRefused(f"{step.branch or step.step} is broken")
        return {step.branch or step.step: 1}


def note_failure(state: dict[str, Any], step: Any, error: Exception) -> None:
    step.tx.write("failed")


def test_a_run_that_was_failed_before_any_task_began_goes_on_when_its_tasks_are_cleared(world: World) -> None:
    built = workflow("queued").then(gives(a=1), name="a").build()
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        engine.fail_run(tx, built, tx.runs.lock(run_id), DocumentRefused("ditandai failed", code=499), None)
    assert isinstance(world.step(ticket, "a"), Leave)
    assert world.status(run_id) == "failed"

    world.step(replace(ticket, clears=1), "a")

    assert (world.status(run_id), world.job(run_id)) == ("completed", "COMPLETED")


def test_the_first_try_of_a_cleared_sibling_does_not_undo_the_fresh_failure_of_the_other(world: World) -> None:
    left, right = Broken(), Broken()
    built = workflow("group").parallel({"left": left, "right": right}, name="both").on_failure(note_failure).build()
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        beside = engine.begin(tx, built, ticket, "both", "right")
    assert isinstance(beside, engine.Go)
    with pytest.raises(DocumentRefused):
        world.step(ticket, "both", "left")
    assert world.effects == ["failed"]

    both_cleared = replace(ticket, clears=1)
    with pytest.raises(DocumentRefused):
        world.step(both_cleared, "both", "left")
    right.is_broken = False

    assert isinstance(world.step(both_cleared, "both", "right"), Leave)
    assert (world.status(run_id), world.job(run_id), world.effects) == ("failed", "FAILED", ["failed", "failed"])

    left.is_broken = False
    again = replace(ticket, clears=2)
    world.step(again, "both", "right")
    world.step(again, "both", "left")
    assert world.status(run_id) == "completed"


def test_a_clear_of_a_run_at_work_is_no_reason_to_undo_a_later_failure(world: World) -> None:
    bad = Broken()
    built = workflow("group").parallel({"bad": bad, "slow": gives(slow=1)}, name="both").build()
    run_id = world.start(built)
    ticket = replace(world.deliver(), clears=1)  # somebody was impatient
    with pytest.raises(DocumentRefused):
        world.step(ticket, "both", "bad")

    assert isinstance(world.step(ticket, "both", "slow"), Leave)
    assert world.status(run_id) == "failed"


def test_a_task_that_died_after_its_failure_was_recorded_does_not_undo_it_when_it_is_tried_again(
    world: World,
) -> None:
    bad = Broken()
    built = workflow("dies").then(bad, name="work").on_failure(note_failure).build()
    run_id = world.start(built)
    ticket = world.deliver()
    with pytest.raises(DocumentRefused):
        world.step(ticket, "work")

    assert isinstance(world.step(ticket, "work"), Leave)
    assert (world.status(run_id), world.effects) == ("failed", ["failed"])


def test_the_count_begins_anew_with_each_dag_run(world: World) -> None:
    bad = Broken()
    built = workflow("again").then(gives(a=1), name="a").then(bad, name="work").build()
    run_id = world.start(built)
    first = world.deliver()
    cleared = replace(first, clears=3)
    assert world.step(cleared, "a") == Forward("work")
    with pytest.raises(DocumentRefused):
        world.step(cleared, "work")
    world.do(run_id, lambda tx, definition, one: tx.runs.rerun(tx.runs.get(one).carrier_shadow_id, "ann", None))
    second = world.deliver()
    with pytest.raises(DocumentRefused):
        world.step(second, "work")
    bad.is_broken = False

    cleared = replace(second, clears=1)
    assert world.step(cleared, "a") == Replay()
    world.step(cleared, "work")
    assert world.status(run_id) == "completed"
