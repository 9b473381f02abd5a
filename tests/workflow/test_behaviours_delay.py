"""Behaviours 40 and 41: a delay holds a run and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from everest.errors import DefinitionError
from everest.workflow import control
from everest.workflow.builder import workflow
from tests.workflow.world import World, gives


def test_040_the_next_message_exists_and_is_due_when_the_delay_is_over(world: World) -> None:
    run_id = world.start(workflow("later").then(gives(a=1), name="a").delay(60).then(gives(b=2), name="b").build())
    began = world.now
    world.walk()

    (message,) = world.messages(run_id)
    ahead = message.due_at - began
    assert timedelta(seconds=60) <= ahead < timedelta(seconds=62)
    run = world.run(run_id)
    assert (run.status, run.current_step, run.wakes_at) == ("running", "delay", message.due_at)
    assert (run.n, message.n, world.job(run_id)) == (2, 2, "WAITING")
    world.walk()
    assert world.effects == ["a"], "it is not due"

    world.pass_time(timedelta(seconds=60))

    assert (world.status(run_id), world.effects, world.run(run_id).wakes_at) == ("completed", ["a", "b"], None)


def test_041_zero_goes_straight_on(world: World) -> None:
    run_id = world.begin(workflow("at_once").then(gives(a=1), name="a").delay(0).then(gives(b=2), name="b").build())

    assert (world.status(run_id), world.run(run_id).n, world.effects) == ("completed", 1, ["a", "b"])


def test_041_as_first_as_last_and_several(world: World) -> None:
    built = workflow("several").delay(10).then(gives(a=1), name="a").delay(10).delay(10).build()
    run_id = world.begin(built)
    seen = []
    for _ in range(3):
        seen.append((world.run(run_id).current_step, list(world.effects)))
        world.pass_time(timedelta(seconds=11))

    assert seen == [("delay", []), ("delay_2", ["a"]), ("delay_3", ["a"])]
    assert world.status(run_id) == "completed"


def test_041_days_hours_minutes_and_seconds_add_up(world: World) -> None:
    built = workflow("adds").delay(days=1, hours=1, minutes=2, seconds=30).then(gives(a=1), name="a").build()
    run_id = world.begin(built)
    assert built.steps[0].duration == timedelta(seconds=90_150)  # type: ignore[attr-defined]

    world.pass_time(timedelta(seconds=90_140))
    assert world.effects == []
    world.pass_time(timedelta(seconds=10))
    assert (world.status(run_id), world.effects) == ("completed", ["a"])


def test_041_a_negative_delay_is_refused_when_built() -> None:
    with pytest.raises(DefinitionError, match="negative"):
        workflow("never").delay(-1).build()


def test_041_a_pause_outlives_the_delay_and_a_resume_keeps_what_is_left_of_it(world: World) -> None:
    built = workflow("paused_delay").delay(60).then(gives(a=1), name="a").build()
    over, left = world.begin(built), world.begin(built)
    for run_id in (over, left):
        world.act(run_id, control.pause, "budi")
    assert world.messages(over) == []
    world.pass_time(timedelta(seconds=30))
    world.act(left, control.resume)
    assert (world.status(left), len(world.messages(left))) == ("running", 1)
    world.pass_time(timedelta(seconds=31))
    assert [world.status(one) for one in (over, left)] == ["paused", "completed"]

    world.act(over, control.resume)

    assert (world.status(over), world.effects) == ("completed", ["a", "a"])
