"""Two versions of a workflow beside each other: what the reconciler does to a run goes by the one it began under."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from tests import builders
from tests.integration.reconciler.world import World, note


def version(number: str, attempts: int = 3) -> Definition:
    """Both say the same, with other handlers and options."""
    built = workflow("report", version=number, dag_id=None if number == "2" else "report_v1").max_attempts(attempts)
    return (
        built.then(note(f"first of {number}"), name="first", compensate_with=fails)
        .wait_for_signal("go", name="gate")
        .must_complete_within(timedelta(hours=1))
        .on_deadline(note(f"late, says {number}"))
        .on_failure(lambda state, step, error: note(f"failed, says {number}")(state, step) and None)
        .build()
    )


def fails(state: dict[str, Any], step: Any) -> None:
    raise RuntimeError("cannot be undone")


@pytest.fixture
def shadow_id(world: World) -> int:
    """A run of version 1 that waits at its gate; version 2 is the current one by now."""
    old, new = version("1", attempts=1), version("2", attempts=3)
    shadow_id = world.sent_of(old)
    ticket = world.claimed(shadow_id)
    for name in ("first", "gate"):
        world.step(ticket, name, old)
    world.definitions["report"] = new
    world.older.append(old)
    return shadow_id


def test_a_deadline_is_told_to_the_handlers_of_the_runs_own_version(world: World, shadow_id: int) -> None:
    world.age(timedelta(hours=2))

    world.reconciler().round()

    assert world.run_of(shadow_id)["error_code"] == 504
    assert world.effects() == ["first of 1", "failed, says 1", "late, says 1"]


def test_a_deadline_of_a_run_whose_definition_is_gone_is_kept_without_a_handler(world: World, shadow_id: int) -> None:
    world.older.clear()
    world.age(timedelta(hours=2))

    world.reconciler().round()

    assert (world.run_of(shadow_id)["status"], world.run_of(shadow_id)["error_code"]) == ("failed", 504)
    assert world.effects() == ["first of 1"]


def test_a_failure_from_outside_is_told_to_the_handler_of_the_runs_own_version(world: World, shadow_id: int) -> None:
    world.act(shadow_id, control.signal, "go")
    ticket = world.claimed(shadow_id)
    world.airflow.marked(ticket.dag_run_id, "failed", "ann")
    world.age(timedelta(seconds=30))

    world.reconciler().round()

    assert world.run_of(shadow_id)["error_code"] == 499
    assert world.effects()[-1] == "failed, says 1"


def test_a_compensation_has_the_tries_of_the_runs_own_version(world: World, shadow_id: int) -> None:
    world.act(shadow_id, control.cancel)

    world.reconciler().round()

    (record,) = builders.rows(world.conn, "SELECT attempts FROM workflow_compensations")
    assert (world.run_of(shadow_id)["compensation"], record["attempts"]) == ("failed", 1)
