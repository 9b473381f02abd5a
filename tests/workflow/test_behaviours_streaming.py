"""Behaviours 76 to 79: chunks of a stream, and work whose process vanished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from everest.errors import EverestError
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from tests.workflow.world import World, gives


class Speaker:
    """Yields what is still missing of five chunks; fails once behind `breaks_after` of them."""

    def __init__(self, breaks_after: int | None = None) -> None:
        self.breaks_after = breaks_after
        self.produced: list[str] = []

    def speak(self, state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[str]:
        for number in range(len(chunks), 5):
            if number == self.breaks_after:
                self.breaks_after = None
                raise RuntimeError("putus")
            self.produced.append(f"c{number}")
            yield f"c{number}"


def join(chunks: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    return {"text": " ".join(chunks), "count": len(chunks)}


def test_076_five_chunks_are_joined_and_gone(world: World) -> None:
    speaker = Speaker()
    built = workflow("speaks").then(gives(a=1), name="a").stream(speaker.speak, join).then(gives(z=1), name="z").build()

    run_id = world.begin(built, {"p": 0})

    assert world.status(run_id) == "completed"
    assert world.state(run_id) == {"p": 0, "a": 1, "text": "c0 c1 c2 c3 c4", "count": 5, "z": 1}
    assert world.chunks(run_id, "speak") == []


def test_077_a_retry_produces_only_what_is_missing_and_all_are_delivered(world: World) -> None:
    speaker = Speaker(breaks_after=3)
    run_id = world.begin(workflow("resumes").stream(speaker.speak, join).max_attempts(1).build())
    assert world.chunks(run_id, "speak") == ["c0", "c1", "c2"]
    speaker.produced.clear()

    world.act(run_id, control.retry)

    assert speaker.produced == ["c3", "c4"]
    assert (world.status(run_id), world.state(run_id)["count"]) == ("completed", 5)
    assert world.chunks(run_id, "speak") == []


def test_078_what_was_yielded_before_a_failure_is_kept(world: World) -> None:
    speaker = Speaker(breaks_after=2)
    run_id = world.begin(workflow("breaks").stream(speaker.speak, join).max_attempts(1).build())

    assert (world.status(run_id), world.state(run_id)) == ("failed", {})
    assert world.chunks(run_id, "speak") == ["c0", "c1"]


def test_078_a_try_of_its_own_goes_on_behind_them_too(world: World) -> None:
    speaker = Speaker(breaks_after=2)
    run_id = world.begin(workflow("goes_on").stream(speaker.speak, join).max_attempts(2).build())

    assert (world.status(run_id), speaker.produced) == ("completed", ["c0", "c1", "c2", "c3", "c4"])


def test_078_a_stream_in_a_loop_begins_anew_with_each_pass(world: World) -> None:
    def speak(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
        yield step.visit

    def passes(chunks: list[Any], state: dict[str, Any]) -> dict[str, Any]:
        return {"n": sum(chunks)}

    run_id = world.begin(workflow("loops").stream(speak, passes).repeat_until("speak", "n", 3).build())

    assert (world.status(run_id), world.state(run_id), world.run(run_id).visit) == ("completed", {"n": 3}, 3)


def recover(world: World, run_id: int, limit: int = 3) -> bool:
    with world.transaction() as tx:
        run = tx.runs.lock(run_id)
        return engine.recover(tx, world.definitions[run.workflow], run, limit, "hilang")


def test_079_work_whose_process_vanished_begins_again_and_the_run_goes_on(world: World) -> None:
    built = workflow("vanishes").then(gives(a=1), name="a").then(gives(b=2), name="b").build()
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")
    with world.transaction() as tx:
        lost = engine.begin(tx, built, ticket, "b")

    assert recover(world, run_id) is True

    assert (world.status(run_id), len(world.messages(run_id)), world.run(run_id).n) == ("running", 1, 2)
    world.walk()
    assert (world.status(run_id), world.effects) == ("completed", ["a", "b"])
    with pytest.raises(EverestError), world.transaction() as tx:
        engine.settle(tx, built, lost.token, {"b": 3})
    assert world.state(run_id) == {"a": 1, "b": 2}


def test_079_after_so_many_times_the_run_fails(world: World) -> None:
    run_id = world.start(workflow("dies").then(gives(a=1), name="a").build())

    assert [recover(world, run_id, limit=2) for _ in range(3)] == [True, True, False]

    assert (world.status(run_id), world.run(run_id).error_code, world.job(run_id)) == ("failed", 503, "FAILED")
    assert (world.messages(run_id), world.effects) == ([], [])
    world.act(run_id, control.retry)
    assert (world.status(run_id), world.run(run_id).recovered) == ("completed", 0)
