"""A database clock that was ahead and has gone back: what it told runs counts from now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from tests import builders
from tests.integration.reconciler.world import World, note

HOUR = timedelta(hours=1)
SOON = timedelta(minutes=10)
SLACK = timedelta(seconds=30)

DELAYED = workflow("delayed").delay(minutes=10).then(note("a"), name="a").build()
WAITS = workflow("waits").wait_for_signal("go", timeout=SOON, on_timeout={"late": True}).build()
APPROVED = workflow("approved").wait_for_approval(timeout=SOON).build()
DUE = workflow("due").wait_for_signal("go").must_complete_within(SOON).build()


@contextmanager
def clock_ahead(world: World, by: timedelta) -> Iterator[None]:
    """The database tells our side a later time; afterwards its own."""
    with world.database.transaction() as tx:
        tx.conn.query(f"SET SESSION timestamp = {(datetime.now(UTC) + by).timestamp():.6f}")
    yield
    world.database.close()


def parked_ahead(world: World, definition: Definition) -> int:
    """A run that reached its wait while the clock was an hour ahead. Returns its shadow id."""
    with clock_ahead(world, HOUR):
        shadow_id = world.sent_of(definition)
        world.step(world.claimed(shadow_id), definition.steps[0].name, definition)
    assert world.status(shadow_id) == "WAITING"
    return shadow_id


def away(instant: datetime | None) -> timedelta:
    """How far from now a naive UTC instant of a row is."""
    assert instant is not None
    return instant.replace(tzinfo=UTC) - datetime.now(UTC)


def unsent(world: World, shadow_id: int) -> list[Any]:
    return builders.rows(
        world.conn, "SELECT available_at FROM outbox WHERE shadow_id = %s AND published_at IS NULL", shadow_id
    )


@pytest.mark.parametrize("definition", [DELAYED, WAITS, APPROVED], ids=lambda one: one.name)
def test_a_wait_that_began_while_the_clock_was_ahead_is_as_long_as_it_was_said(
    world: World, definition: Definition
) -> None:
    shadow_id = parked_ahead(world, definition)

    assert world.reconciler().round() == 1

    assert SOON - SLACK < away(world.run_of(shadow_id)["wakes_at"]) <= SOON
    (message,) = unsent(world, shadow_id)
    assert SOON - SLACK < away(message["available_at"]) <= SOON
    told = datetime.fromisoformat(world.row(shadow_id)["response"]["waiting"]["until"])
    assert SOON - SLACK < away(told.replace(tzinfo=None)) <= SOON, "and its sender is told so"
    assert world.reconciler().round() == 0, "once"


def test_when_that_time_has_come_the_wait_is_over(world: World) -> None:
    shadow_id = parked_ahead(world, DELAYED)
    world.reconciler().round()
    with clock_ahead(world, SOON + SLACK):
        world.execute(
            "UPDATE rabbit_publish_shadow SET worker_status = 'PENDING' WHERE id = %s", shadow_id
        )  # the relay, ten minutes later
        world.execute("UPDATE outbox SET published_at = UTC_TIMESTAMP(6)")
        ticket = world.claimed(shadow_id)
        world.step(ticket, "delay", DELAYED)

    assert world.run_of(shadow_id)["current_step"] == "a"


def test_a_deadline_that_was_set_while_the_clock_was_ahead_passes_in_time(world: World) -> None:
    shadow_id = parked_ahead(world, DUE)

    world.reconciler().round()

    assert SOON - SLACK < away(world.run_of(shadow_id)["deadline_at"]) <= SOON


def test_a_pause_that_began_while_the_clock_was_ahead_takes_no_time_from_the_deadline(world: World) -> None:
    shadow_id = world.sent_of(DUE)
    world.step(world.claimed(shadow_id), DUE.steps[0].name, DUE)
    before = away(world.run_of(shadow_id)["deadline_at"])
    with clock_ahead(world, HOUR):
        world.act(shadow_id, control.pause)

    world.act(shadow_id, control.resume)

    assert before - SLACK < away(world.run_of(shadow_id)["deadline_at"]) <= before
