"""Chunks that are kept, and a death around the commit of a wait (the situations: see conftest.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, engine, runner
from everest.workflow.builder import workflow
from tests.workflow.situations.handlers import CHILD, Died
from tests.workflow.world import World, gives


def test_21_chunks_survive_a_retry_by_hand(world: World) -> None:
    produced: list[int] = []
    broken = [True]

    def numbers(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
        for number in range(len(chunks), 5):
            if number == 3 and broken:
                raise DocumentRefused("putus")
            produced.append(number)
            yield number

    run_id = world.begin(workflow("streams").stream(numbers, lambda chunks, state: {"all": chunks}).build())
    assert (world.status(run_id), world.chunks(run_id, "numbers")) == ("failed", [0, 1, 2])
    broken.clear()

    world.act(run_id, control.retry)

    assert (world.state(run_id), produced) == ({"all": [0, 1, 2, 3, 4]}, [0, 1, 2, 3, 4])
    assert world.chunks(run_id, "numbers") == []


WAITING_STEPS: dict[str, Callable[[], Any]] = {
    "signal": lambda: workflow("w_signal").wait_for_signal("go", name="wait"),
    "delay": lambda: workflow("w_delay").delay(60, name="wait"),
    "workflows": lambda: workflow("w_workflows").wait_for_workflows("ids", name="wait"),
    "nested": lambda: workflow("w_nested").run_workflow(CHILD, name="wait"),
}


@pytest.mark.parametrize("kind", WAITING_STEPS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_22_a_crash_around_the_commit_of_a_wait_leaves_a_task_or_a_recorded_wait(
    world: World, kind: str, moment: str
) -> None:
    built = WAITING_STEPS[kind]().then(gives(z=1), name="z").build()
    other = world.begin(CHILD)
    run_id = world.start(built, {"ids": [other]})
    ticket = world.deliver()

    with pytest.raises(Died):
        runner.run_step(built, ticket, "wait", dying_at(world, 2, moment), is_last_try=True)

    if moment == "before":
        assert (world.status(run_id), world.job(run_id)) == ("running", "PROCESSING"), "its DAG run is known to be dead"
        with world.transaction() as tx:
            engine.recover(tx, built, tx.runs.lock(run_id), 3, "died")
        world.walk()
    assert world.job(run_id) == "WAITING"
    assert world.waiting(run_id)["step"] == "wait"
    assert len(world.children(run_id)) == (1 if kind == "nested" else 0)
    for one in (run_id, other, *world.children(run_id)):
        if world.status(one) == "waiting_for_signal":
            world.signal(one, "go")
    world.pass_time(timedelta(minutes=2))
    assert (world.status(run_id), world.effects) == ("completed", ["z"])


def dying_at(world: World, number: int, moment: str) -> Callable[[], Any]:
    """Transactions of a process that dies right before or right after the commit of this one."""
    seen: list[int] = []

    @contextmanager
    def transaction() -> Iterator[Any]:
        seen.append(1)
        with world.transaction() as tx:
            yield tx
            if len(seen) == number and moment == "before":
                raise Died
        if len(seen) == number:
            raise Died

    return transaction
