"""A commit and a failure from outside cannot both win, and two reconcilers repair once."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from everest import bootstrap
from everest.errors import DocumentRefused
from everest.opname.workflow import POST_OPNAME
from everest.settings import Settings
from everest.workflow import engine, runner
from everest.workflow.engine import Fenced, Go, Leave
from tests import builders
from tests.integration.reconciler.world import LONG_AGO, TWO, World
from tests.queue_rig import until


def test_a_step_that_holds_the_runs_lock_commits_and_the_failure_finds_it_done(world: World) -> None:
    ticket = world.at_work("failed")
    world.step(ticket, "a")
    world.age(timedelta(seconds=30))
    reconciler = world.reconciler()
    with world.database.transaction() as tx:
        start = engine.begin(tx, TWO, ticket, "b")
    assert isinstance(start, Go)
    world.age(timedelta(seconds=30))

    with world.database.transaction() as late:
        assert isinstance(engine.settle(late, TWO, start.token, {}), Leave)
        assert reconciler.round() == 0, "the run is held by a step that is about to commit"

    world.age(timedelta(seconds=30))
    assert reconciler.round() == 0
    assert world.status(ticket.shadow_id) == "COMPLETED"
    assert world.unsent() == []


def test_a_step_that_commits_while_airflow_answers_wins(world: World) -> None:
    ticket = world.at_work("failed")
    world.step(ticket, "a")
    world.age(timedelta(seconds=30))
    world.airflow.on_run_asked = lambda: world.step(ticket, "b")

    assert world.reconciler().round() == 0
    assert world.status(ticket.shadow_id) == "COMPLETED"
    assert world.run_of(ticket.shadow_id)["n"] == 1


@pytest.mark.parametrize("marked", [False, True])
def test_a_step_that_comes_after_the_failure_cannot_commit(world: World, marked: bool) -> None:
    ticket = world.at_work("failed")
    with world.database.transaction() as tx:
        start = engine.begin(tx, TWO, ticket, "a")
    assert isinstance(start, Go)
    world.age(timedelta(seconds=30))
    if marked:
        world.airflow.marked(ticket.dag_run_id, "failed", "sari")

    def late_commit() -> None:
        with world.database.transaction() as late:
            context = engine.StepContext(late, 1, "a", 1, 1, ticket.shadow_id, ticket.dag_run_id, 1)
            TWO.step("a").handler(start.state, context)
            assert world.reconciler().round() == 1, "a step at work holds no lock of the run"
            engine.settle(late, TWO, start.token, {})

    with pytest.raises(Fenced):
        late_commit()

    assert world.effects() == []
    assert world.status(ticket.shadow_id) == ("FAILED" if marked else "PENDING")


def test_a_task_that_a_person_cleared_while_airflow_answered_keeps_its_run(world: World) -> None:
    ticket = world.at_work("failed")

    def cleared() -> None:
        with world.database.transaction() as tx:
            engine.begin(tx, TWO, ticket, "a")

    world.airflow.on_run_asked = cleared

    assert world.reconciler().round() == 0
    assert (world.status(ticket.shadow_id), world.run_of(ticket.shadow_id)["n"]) == ("PROCESSING", 1)


def test_a_foreign_document_whose_first_task_comes_while_airflow_answers_keeps_its_run(world: World) -> None:
    document = builders.document(world.conn)
    ticket = world.claimed(document.shadow_id)
    world.airflow.has(ticket.dag_run_id, "failed")
    world.age(timedelta(seconds=30))
    world.airflow.on_run_asked = lambda: runner.run_step(
        POST_OPNAME, ticket, "compute_variance", world.database.transaction, is_last_try=True
    )

    assert world.reconciler().round() == 0
    assert (world.status(document.shadow_id), world.run_of(document.shadow_id)["n"]) == ("PROCESSING", 1)


def test_two_reconcilers_at_once_repair_everything_once(world: World) -> None:
    begun_again = [world.at_work("failed", key=f"dead-{number}") for number in range(6)]
    failed = [world.failed(DocumentRefused("salah"), key=f"failed-{number}") for number in range(6)]
    lost = [world.sent(key=f"lost-{number}") for number in range(6)]
    world.age(LONG_AGO)
    start = threading.Barrier(3)
    changed: list[int] = []

    def work() -> None:
        reconciler = world.always_active()
        start.wait(30)
        changed.append(sum(reconciler.round() for _ in range(3)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sum(changed) == 18
    assert {world.run_of(ticket.shadow_id)["n"] for ticket in begun_again} == {2}
    assert {world.row(shadow_id)["requeued"] for shadow_id in lost} == {1}
    sent = [message["shadow_id"] for message in world.unsent()]
    assert sorted(sent) == sorted([ticket.shadow_id for ticket in begun_again + failed] + lost)


def test_one_of_two_is_active_and_the_other_takes_over_when_it_is_gone(world: World) -> None:
    database = bootstrap.database(world.url, Settings())
    first, second = world.reconciler(database=database), world.reconciler()
    assert first.round() == 0
    ticket = world.at_work("failed")

    assert second.round() == 0, "the first one holds the lock"
    assert world.status(ticket.shadow_id) == "PROCESSING"

    database.close()
    until(second.round, "the server has noticed that the first one's connection is gone")
    assert world.status(ticket.shadow_id) == "PENDING"
    assert first.round() == 0, "standing by now"


def test_a_reconciler_of_which_nothing_is_heard_loses_its_turn(world: World) -> None:
    """As when its machine vanishes: the connection stays open."""
    short = replace(world.settings, limits=replace(world.settings.limits, standby_after=timedelta(seconds=1)))
    first, second = world.reconciler(short), world.reconciler()
    assert first.round() == 0
    ticket = world.at_work("failed")
    assert second.round() == 0, "the first one holds the lock"

    until(second.round, "the server has given it up")
    assert world.status(ticket.shadow_id) == "PENDING"
    assert first.round() == 0, "standing by now"
