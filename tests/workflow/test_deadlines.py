"""The clock of `must_complete_within`: whoever runs a failed workflow again has the whole time again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.ticket import Ticket
from tests.workflow.world import World, gives

LIMIT = timedelta(hours=1)


def too_late(state: dict[str, Any], step: Any) -> None:
    step.tx.write("too late")


LIMITED = (
    workflow("limited")
    .then(gives(a=1), name="a")
    .then(gives(b=1), name="b")
    .must_complete_within(LIMIT)
    .on_deadline(too_late)
    .build()
)


def by_retry(world: World, run_id: int, ticket: Ticket) -> None:
    world.do(run_id, control.retry, "ann")


def by_clearing(world: World, run_id: int, ticket: Ticket) -> None:
    with world.transaction() as tx:
        assert isinstance(engine.begin(tx, LIMITED, replace(ticket, clears=1), "b"), engine.Go)


def by_taking_it_over(world: World, run_id: int, ticket: Ticket) -> None:
    with world.transaction() as tx:
        engine.take_over(tx, LIMITED, ticket.shadow_id)


@pytest.mark.parametrize("again", [by_retry, by_clearing, by_taking_it_over])
def test_the_clock_starts_anew_when_a_failed_run_goes_on(
    world: World, again: Callable[[World, int, Ticket], None]
) -> None:
    run_id = world.start(LIMITED)
    ticket = world.deliver()
    world.step(ticket, "a")
    world.database.move_clock(LIMIT + timedelta(minutes=5))
    assert world.do(run_id, control.expire)
    world.database.move_clock(timedelta(days=2))

    again(world, run_id, ticket)

    assert not world.do(run_id, control.expire), "it has the whole hour again"
    world.database.move_clock(timedelta(minutes=55))
    assert not world.do(run_id, control.expire)
    world.database.move_clock(timedelta(minutes=10))
    assert world.do(run_id, control.expire), "and not more"
    assert world.effects == ["a", "too late", "too late"]


def test_pauses_before_a_failure_do_not_lengthen_the_time_after_it(world: World) -> None:
    run_id = world.start(LIMITED)
    world.do(run_id, control.pause)
    world.database.move_clock(timedelta(hours=10))
    world.do(run_id, control.resume)
    world.database.move_clock(LIMIT * 2)
    assert world.do(run_id, control.expire)

    world.do(run_id, control.retry, "ann")
    world.database.move_clock(LIMIT * 2)

    assert world.do(run_id, control.expire)
