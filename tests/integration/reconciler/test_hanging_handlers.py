"""A handler that hangs in the reconciler is interrupted: its run is told, and the repairs of other runs go on."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused, TransientDatabaseError
from everest.reconciler.rounds import Reconciler
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from ingest_consumer import metrics
from tests import builders
from tests.integration.reconciler.world import World, note

LIMIT = timedelta(seconds=0.3)
FOR_EVER = 600


def hangs(state: dict[str, Any], step: Any, *_: Any) -> None:
    note("half done")(state, step)
    time.sleep(FOR_EVER)


def swallows(state: dict[str, Any], step: Any, *_: Any) -> None:
    while True:
        try:
            time.sleep(FOR_EVER)
        except Exception:
            continue


def waits_in_the_database(state: dict[str, Any], step: Any, *_: Any) -> None:
    with step.tx.conn.cursor() as cursor:
        cursor.execute("SELECT SLEEP(1)")


def undo_hangs(state: dict[str, Any], step: Any) -> None:
    hangs(state, step)


def asks_another_database(state: dict[str, Any], step: Any, *_: Any) -> None:
    raise TransientDatabaseError("Can't connect to server", 2002)


def due(handler: Any, name: str = "due") -> Definition:
    built = workflow(name).wait_for_signal("go").must_complete_within(timedelta(hours=1))
    return built.on_deadline(handler).build()


def parked(world: World, definition: Definition, step: str = "go") -> int:
    shadow_id = world.sent_of(definition)
    ticket = world.claimed(shadow_id)
    for one in definition.steps:
        world.step(ticket, one.name, definition)
    assert world.status(shadow_id) == "WAITING"
    return shadow_id


def impatient(world: World) -> Reconciler:
    settings = world.settings
    return world.reconciler(replace(settings, limits=replace(settings.limits, handler_timeout=LIMIT)))


@pytest.mark.parametrize("handler", [hangs, swallows, waits_in_the_database], ids=lambda one: one.__name__)
def test_a_deadline_whose_handler_hangs_passes_without_it_and_others_pass_too(
    world: World, handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = parked(world, due(handler))
    sound = parked(world, due(note("sound"), "sound"))
    owed = world.failed(DocumentRefused("salah"))
    world.age(timedelta(hours=2))

    reconciler = impatient(world)
    reconciler._vitals.meter.switch_on(metrics.RECONCILER)
    changed = reconciler.round()

    assert changed >= 3
    assert [world.status(one) for one in (stuck, sound)] == ["FAILED", "FAILED"]
    assert world.row(stuck)["error_code"] == 504
    assert world.effects() == ["sound"], "what it wrote before is gone"
    assert world.row(owed.shadow_id)["dead_lettered_at"] is not None
    events = [one["event"] for one in builders.rows(world.conn, "SELECT event FROM workflow_events ORDER BY id")]
    assert events.count("deadline_handler_failed") == 1
    assert "does not end within 0.3 s" in caplog.text
    assert b"everest_reconciler_handlers_hung_total 1.0" in reconciler._vitals.meter.render()


def test_a_compensation_that_hangs_fails_and_is_given_up_like_one_that_raises(world: World) -> None:
    definition = workflow("undo").then(note("a"), name="a", compensate_with=undo_hangs).wait_for_signal("go").build()
    shadow_id = parked(world, definition)
    world.act(shadow_id, control.cancel)
    reconciler = impatient(world)

    for _ in range(3):
        reconciler.round()

    assert world.run_of(shadow_id)["compensation"] == "failed"
    (record,) = builders.rows(world.conn, "SELECT status, attempts, error FROM workflow_compensations")
    assert (record["status"], record["attempts"]) == ("failed", 3)
    assert "tidak selesai dalam 0.3 detik" in record["error"]
    assert world.effects() == ["a"]


def test_a_handler_whose_own_database_is_away_holds_up_no_other_run(world: World) -> None:
    stuck = parked(world, due(asks_another_database))
    sound = parked(world, due(note("sound"), "sound"))
    world.age(timedelta(hours=2))

    world.reconciler().round()

    assert [world.status(one) for one in (stuck, sound)] == ["WAITING", "FAILED"]


def test_a_handler_that_ends_in_time_is_not_interrupted_afterwards(world: World) -> None:
    shadow_id = parked(world, due(note("in time")))
    world.age(timedelta(hours=2))

    impatient(world).round()
    time.sleep(2 * LIMIT.total_seconds())

    assert (world.status(shadow_id), world.effects()) == ("FAILED", ["in time"])
