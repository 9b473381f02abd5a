"""A run whose definition is not the deployed one: it stops as it stands, and goes on once its own is deployed, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, deployment, runner
from everest.workflow.builder import Builder, workflow
from everest.workflow.definition import Definition
from everest.workflow.ticket import Leave, Result, Ticket
from tests.workflow.world import World, gives


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write("undo")


def flow(version: str) -> Builder:
    dag_id = None if version == "2" else "report_v1"
    return workflow("report", version, dag_id=dag_id).then(gives(a=1), name="a", compensate_with=undo)


OLD = flow("1").parallel({"b": gives(b=1), "c": gives(c=1)}, name="both").build()
AS_IT_WAS = replace(OLD, dag_id="report")
NEW = flow("2").parallel({"b": gives(b=1), "c": gives(c=1)}, name="both").compensate_on_failure().build()


def task(world: World, ticket: Ticket, step: str, branch: str = "", *deployed: Definition) -> Result:
    """A task of the DAG that the new version has now."""

    def find(*which: str) -> Definition | None:
        return deployment.among([NEW, *deployed], *which)

    return runner.run_step(NEW, ticket, step, world.transaction, True, branch=branch, deployed=find)


@pytest.fixture
def stopped(world: World) -> tuple[int, Ticket]:
    """It had done its first step when the new version came, and nobody thought of the old one."""
    run_id = world.start(AS_IT_WAS)
    ticket = world.deliver()
    world.step(ticket, "a")
    world.know(NEW)
    assert isinstance(task(world, ticket, "both", "b"), Leave)
    assert world.status(run_id) == "failed"
    return run_id, ticket


def test_a_run_that_stopped_has_nothing_undone_by_the_new_versions_options(
    world: World, stopped: tuple[int, Ticket]
) -> None:
    run_id, _ = stopped

    world.walk()

    assert (world.run(run_id).compensation, world.effects) == (None, ["a"])


def test_it_goes_on_in_the_old_versions_dag_after_a_retry(world: World, stopped: tuple[int, Ticket]) -> None:
    run_id, _ = stopped
    world.do(run_id, control.retry, "ann")
    task(world, world.deliver(), "both", "b", OLD)
    assert world.run(run_id).dag_id == "report_v1"
    world.know(OLD)

    world.walk()

    assert (world.status(run_id), sorted(world.effects)) == ("completed", ["a", "b", "c"])


def test_it_goes_on_in_the_old_versions_dag_after_a_clear(world: World, stopped: tuple[int, Ticket]) -> None:
    run_id, ticket = stopped
    task(world, replace(ticket, clears=1), "both", "b", OLD)
    run = world.run(run_id)
    assert (run.status, run.error, run.dag_id, run.n, world.job(run_id)) == ("running", None, "report_v1", 2, "PENDING")
    world.know(OLD)

    world.walk()

    assert (world.status(run_id), sorted(world.effects)) == ("completed", ["a", "b", "c"])


def test_a_sibling_that_comes_late_moves_nothing(world: World, stopped: tuple[int, Ticket]) -> None:
    run_id, ticket = stopped
    before = world.run(run_id)

    assert isinstance(task(world, ticket, "both", "c", OLD), Leave)

    after = world.run(run_id)
    assert (after.status, after.error, after.n, world.job(run_id)) == ("failed", before.error, before.n, "FAILED")
    assert world.messages(run_id) == []


def test_a_run_that_had_failed_before_the_deployment_stays_failed_with_its_own_error(world: World) -> None:
    broken = flow("1").then(lambda state, step: _refuse(), name="b").build()
    run_id = world.start(replace(broken, dag_id="report"))
    ticket = world.deliver()
    world.step(ticket, "a")
    with pytest.raises(DocumentRefused):
        world.step(ticket, "b")

    assert isinstance(task(world, ticket, "both", "b", broken), Leave)

    run = world.run(run_id)
    assert (run.status, run.n, run.compensation, world.error(run_id)) == ("failed", 1, None, "isi salah")


def _refuse() -> None:
    raise DocumentRefused("isi salah")
