"""Behaviours 1 to 17: steps in order, their state, failures, retries, pause and resume, history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from everest.errors import Conflict, DefinitionError, DocumentMissing
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.ticket import Forward
from tests.workflow.world import World, gives

THREE = (
    workflow("three").then(gives(a=1), name="a").then(gives(b=2), name="b").then(gives(c=3), name="c").max_attempts(1)
).build()


def breaks(state: dict[str, Any], step: Any) -> dict[str, Any]:
    raise RuntimeError("putus")


class Flaky:
    """Fails so many times, and remembers the state it was given each time."""

    def __init__(self, failures: int, **output: Any) -> None:
        self.failures, self.output = failures, output
        self.seen: list[dict[str, Any]] = []

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        self.seen.append(dict(state))
        step.tx.write(f"{step.step} {step.attempt}")
        if len(self.seen) <= self.failures:
            raise RuntimeError(f"putus {len(self.seen)}")
        return self.output


def test_001_three_steps_run_in_order_and_the_pointer_follows(world: World) -> None:
    run_id = world.start(THREE)
    ticket = world.deliver()
    pointers = [(world.run(run_id).current_step, world.run(run_id).transitions)]

    for name in "abc":
        world.step(ticket, name)
        pointers.append((world.run(run_id).current_step, world.run(run_id).transitions))

    assert pointers == [("a", 0), ("b", 1), ("c", 2), (None, 3)]
    assert (world.status(run_id), world.effects) == ("completed", ["a", "b", "c"])


def test_002_payload_and_every_output_are_visible_later(world: World) -> None:
    seen: list[dict[str, Any]] = []

    def look(state: dict[str, Any], step: Any) -> dict[str, Any]:
        seen.append(dict(state))
        return {"d": None}

    run_id = world.begin(
        workflow("looks").then(gives(a=1), name="a").then(gives(b=2), name="b").then(look).build(), {"p": 0}
    )

    assert seen == [{"p": 0, "a": 1, "b": 2}]
    assert world.state(run_id) == {"p": 0, "a": 1, "b": 2, "d": None}, "a returned None is stored"


def test_003_a_private_key_never_reaches_the_public_state(world: World) -> None:
    run_id = world.begin(workflow("private").then(gives(_secret=1, a=1), name="a").then(gives(), name="b").build())

    assert world.run(run_id).state == {"a": 1}
    assert world.records(run_id)["a", 1, ""]["output"] == {"a": 1}


def test_004_a_completed_step_hands_on_to_exactly_one_next_step_of_its_run(world: World) -> None:
    run_id = world.start(THREE)
    other_id = world.start(THREE)
    ticket = world.deliver()

    assert world.step(ticket, "a") == Forward("b")

    assert world.run(run_id).current_step == "b"
    assert (world.run(run_id).n, world.messages(run_id)) == (1, []), "the same DAG run goes on; no second message"
    assert (world.run(other_id).current_step, len(world.messages(other_id))) == ("a", 1)


def test_005_the_last_step_completes_run_and_job(world: World) -> None:
    run_id = world.begin(THREE)

    assert (world.status(run_id), world.job(run_id)) == ("completed", "COMPLETED")
    assert world.messages(run_id) == []


def test_006_a_failed_step_fails_the_run_and_keeps_its_state(world: World) -> None:
    built = workflow("fails").then(gives(a=1), name="a").then(breaks).max_attempts(1).build()

    run_id = world.begin(built, {"p": 0})

    run = world.run(run_id)
    assert (run.status, run.current_step, run.error_code) == ("failed", "breaks", 500)
    assert (world.state(run_id), world.job(run_id)) == ({"p": 0, "a": 1}, "FAILED")
    assert "RuntimeError: putus" in world.error(run_id)


def test_007_a_retry_sends_the_failed_step_again(world: World) -> None:
    flaky = Flaky(1, b=2)
    run_id = world.begin(workflow("again").then(gives(a=1), name="a").then(flaky, name="b").max_attempts(1).build())
    assert world.status(run_id) == "failed"

    world.do(run_id, control.retry, "budi")

    assert (world.status(run_id), world.run(run_id).current_step, len(world.messages(run_id))) == ("running", "b", 1)
    world.walk()
    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "b": 2})
    assert world.effects == ["a", "b 2"]


def test_008_a_running_or_unknown_run_cannot_be_tried_again(world: World) -> None:
    run_id = world.start(THREE)

    with pytest.raises(Conflict, match="is running"):
        world.do(run_id, control.retry)
    with pytest.raises(DocumentMissing):
        world.do(run_id + 100, control.retry)
    world.walk()
    with pytest.raises(Conflict, match="is completed"):
        world.do(run_id, control.retry)


def paused_at_work(world: World, *then: Any) -> Any:
    """A handler during whose work somebody pauses its run."""

    def handler(state: dict[str, Any], step: Any) -> dict[str, Any]:
        for action in (control.pause, *then):
            world.meanwhile(step.workflow_id, action, "budi")
        step.tx.write(step.step)
        return {"a": 1}

    return handler


def test_009_a_pause_lets_the_step_at_work_commit_and_starts_nothing_further(world: World) -> None:
    run_id = world.start(workflow("pauses").then(paused_at_work(world), name="a").then(gives(b=2), name="b").build())
    world.walk()

    run = world.run(run_id)
    assert (run.status, run.current_step, run.transitions, world.state(run_id)) == ("paused", "b", 1, {"a": 1})
    assert (world.messages(run_id), world.effects, world.job(run_id)) == ([], ["a"], "WAITING")


def test_010_resume_goes_on_at_the_pointer_and_only_a_paused_run_can(world: World) -> None:
    built = workflow("resumes").then(paused_at_work(world), name="a").then(gives(b=2), name="b").build()
    run_id = world.begin(built)

    world.do(run_id, control.resume, "budi")

    assert (world.status(run_id), len(world.messages(run_id))) == ("running", 1)
    with pytest.raises(Conflict, match="is running, not paused"):
        world.do(run_id, control.resume)
    world.walk()
    assert (world.status(run_id), world.effects) == ("completed", ["a", "b"])


def test_010_a_pause_before_the_first_step_and_a_resume_run_everything_once(world: World) -> None:
    run_id = world.start(THREE)
    world.do(run_id, control.pause)
    world.walk()
    assert (world.status(run_id), world.effects) == ("paused", [])

    world.act(run_id, control.resume)

    assert (world.status(run_id), world.effects) == ("completed", ["a", "b", "c"])


def test_010_a_resume_while_the_step_is_still_at_work_doubles_nothing(world: World) -> None:
    at_work = paused_at_work(world, control.resume)
    run_id = world.start(workflow("hasty").then(at_work, name="a").then(gives(b=2), name="b").build())
    ticket = world.deliver()

    assert world.step(ticket, "a") == Forward("b")
    assert world.messages(run_id) == [], "the DAG run at work goes on by itself"
    world.step(ticket, "b")

    assert (world.status(run_id), world.run(run_id).n, world.effects) == ("completed", 1, ["a", "b"])


def test_014_a_flaky_step_sees_the_same_state_at_every_try(world: World) -> None:
    flaky = Flaky(2, b=2)
    run_id = world.begin(workflow("flaky").then(gives(a=1), name="a").then(flaky, name="b").max_attempts(5).build())

    assert world.status(run_id) == "completed"
    assert flaky.seen == [{"a": 1}] * 3
    assert world.effects == ["a", "b 3"], "what failed tries wrote is gone"


def test_015_the_history_tells_every_try(world: World) -> None:
    run_id = world.begin(workflow("told").then(Flaky(2, b=2), name="b").max_attempts(5).build())

    told = [event for event, step in world.names(run_id) if step == "b"]
    assert told == ["started", "failed", "retried", "started", "failed", "retried", "started", "completed"]
    failed = [one for one in world.events(run_id) if one["event"] == "failed"]
    assert [one["attempt"] for one in failed] == [1, 2]
    for number, one in enumerate(failed, 1):
        assert one["detail"]["type"] == "RuntimeError"
        assert one["detail"]["message"] == f"kesalahan program: RuntimeError: putus {number}"
        assert one["detail"]["trace"][-1].startswith("test_behaviours_core.py:")
        assert one["detail"]["trace"][-1].endswith(" __call__")
    retried = next(one for one in world.events(run_id) if one["event"] == "retried")
    assert retried["detail"] == {"type": "RuntimeError", "message": "kesalahan program: RuntimeError: putus 1"}


def test_015_the_history_keeps_no_password(world: World) -> None:
    def calls(state: dict[str, Any], step: Any) -> None:
        raise ConnectionError("no answer from https://api:hunter2@prices.example/v1")

    run_id = world.begin(workflow("calls").then(calls).max_attempts(2).build())

    assert world.status(run_id) == "failed"
    assert "hunter2" not in str(world.events(run_id)) + world.error(run_id)
    assert "https://***@prices.example/v1" in world.error(run_id)


def test_016_interleaved_runs_keep_their_state_apart(world: World) -> None:
    def own(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {step.step: state["who"]}

    built = workflow("apart").then(own, name="a").then(own, name="b").build()
    runs = [world.start(built, {"who": who}) for who in ("x", "y", "z")]
    tickets = [world.deliver() for _ in runs]
    for name in "ab":
        for ticket in reversed(tickets):
            world.step(ticket, name)

    assert [world.state(one) for one in runs] == [{"who": who, "a": who, "b": who} for who in "xyz"]


def test_016_an_urgent_runs_tasks_outweigh_those_of_an_older_low_one(world: World) -> None:
    from everest.workflow.airflow_dag import to_dag

    low = workflow("low_first").then(gives(), name="a").with_priority("low").build()
    urgent = workflow("urgent_second").then(gives(), name="a").with_priority("urgent").build()
    runs = [world.start(low), world.start(urgent)]

    assert world.run(runs[0]).priority < world.run(runs[1]).priority
    tasks = [to_dag(one).get_task("a") for one in (low, urgent)]
    assert {task.weight_rule for task in tasks} == {"absolute"}
    assert [task.priority_weight for task in tasks] == [world.run(one).priority for one in runs]


def test_017_a_workflow_without_steps_cannot_be_built() -> None:
    with pytest.raises(DefinitionError, match="at least one step"):
        workflow("nothing").build()


@pytest.mark.parametrize("tasks", ["per_step", "fused"])
def test_what_a_function_does_to_the_state_it_was_given_is_kept_by_nobody(
    world: World, tasks: Literal["per_step", "fused"]
) -> None:
    """What it returns is."""

    def scribbles(state: dict[str, Any], *_: Any) -> dict[str, Any]:
        state["notes"].append("?")
        return {}

    def streams(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
        scribbles(state)
        yield 1

    built = (
        workflow("scribbled")
        .tasks(tasks)
        .then(scribbles, name="one")
        .then(scribbles, name="two")
        .parallel({"left": scribbles, "right": scribbles})
        .for_each("items", scribbles, name="each", reducer=scribbles)
        .repeat_until("two", condition=lambda state: not scribbles(state))
        .stream(streams, on_complete=lambda chunks, state: scribbles(state))
        .then(gives(last=True), name="last", compensate_with=scribbles)
        .build()
    )

    run_id = world.begin(built, {"notes": [], "items": [1, 2]})

    assert (world.status(run_id), world.state(run_id)["notes"]) == ("completed", [])
    left = {key[0]: one["state_after"]["notes"] for key, one in world.records(run_id).items() if one["state_after"]}
    assert left == {name: [] for name in ("one", "two", "parallel", "each", "repeat", "streams", "last")}
