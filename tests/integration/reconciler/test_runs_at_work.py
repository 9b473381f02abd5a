"""Rows of the reconciler table about PROCESSING jobs: what became of the DAG run that owns them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from everest.errors import DocumentRefused
from everest.opname.workflow import POST_OPNAME
from everest.reconciler.settings import Limits
from everest.workflow import runner
from tests import builders
from tests.integration.reconciler.world import LONG_AGO, World


def test_a_failed_run_without_a_recorded_failure_begins_again_as_the_next_run(world: World) -> None:
    ticket = world.at_work("failed")

    assert world.reconciler().round() == 1

    row, run = world.row(ticket.shadow_id), world.run_of(ticket.shadow_id)
    assert (row["worker_status"], row["n"], row["error"]) == ("PENDING", 2, None)
    assert (run["status"], run["n"], run["recovered"]) == ("running", 2, 1)
    assert row["dag_run_id"] == run["dag_run_id"] != ticket.dag_run_id
    (message,) = world.unsent()
    assert json.loads(message["body"])["dag_run_id"] == run["dag_run_id"]
    events = builders.rows(world.conn, "SELECT event, detail FROM workflow_events WHERE event = 'recovered'")
    assert ticket.dag_run_id in json.loads(events[0]["detail"])["reason"]


def test_a_step_that_was_done_is_not_done_again_after_a_recovery(world: World) -> None:
    """H04: killed right after PROCESSING, it is resumed and ends COMPLETED without anyone's doing."""
    first = world.at_work("failed")
    world.step(first, "a")
    world.age(timedelta(seconds=30))

    world.reconciler().round()
    second = world.claimed(first.shadow_id)
    for name in ("a", "b"):
        world.step(second, name)

    assert world.status(first.shadow_id) == "COMPLETED"
    assert world.effects() == ["a", "b"]


def test_a_run_that_airflow_no_longer_knows_begins_again_after_the_hold_limit(world: World) -> None:
    ticket = world.at_work(None)
    reconciler = world.reconciler()

    assert reconciler.round() == 0
    assert world.status(ticket.shadow_id) == "PROCESSING"

    world.age(timedelta(minutes=20))
    assert reconciler.round() == 1
    assert (world.status(ticket.shadow_id), world.run_of(ticket.shadow_id)["recovered"]) == ("PENDING", 1)


@pytest.mark.parametrize("state", ["failed", "success"])
def test_a_run_that_a_person_marked_fails_the_job_with_499_and_their_name(world: World, state: str) -> None:
    ticket = world.at_work("running")
    world.airflow.marked(ticket.dag_run_id, state, "sari")

    assert world.reconciler().round() == 1

    row, run = world.row(ticket.shadow_id), world.run_of(ticket.shadow_id)
    assert (row["worker_status"], row["error_code"], row["response"]["code"]) == ("FAILED", 499, 499)
    assert f"ditandai {state} di Airflow oleh sari" in row["error"]
    assert (run["status"], run["failed_n"], run["recovered"]) == ("failed", 1, 0)
    assert world.unsent() == []
    (told,) = builders.rows(
        world.conn, "SELECT actor, action, shadow_id, workflow_id FROM audit_log WHERE actor = 'sari'"
    )
    assert (told["actor"], told["action"], told["shadow_id"]) == ("sari", f"mark_{state}", ticket.shadow_id)


def test_a_mark_that_was_cleared_since_is_no_mark(world: World) -> None:
    ticket = world.at_work("running")
    world.airflow.marked(ticket.dag_run_id, "failed", "sari")
    world.airflow.event_logs.insert(0, {"event": "clear_dag_run", "owner": "sari", "extra": "{}"})

    world.reconciler().round()

    assert world.status(ticket.shadow_id) == "PENDING"


def test_a_mark_on_a_run_whose_workflow_reached_its_end_changes_nothing(world: World) -> None:
    ticket = world.at_work("success")
    for name in ("a", "b"):
        world.step(ticket, name)
    world.airflow.marked(ticket.dag_run_id, "failed", "sari")
    world.age(LONG_AGO)

    assert world.reconciler().round() == 0
    assert world.status(ticket.shadow_id) == "COMPLETED"


def test_a_green_run_whose_pointer_is_not_at_the_end_begins_again(world: World) -> None:
    ticket = world.at_work("success")

    assert world.reconciler().round() == 1

    assert (world.status(ticket.shadow_id), world.run_of(ticket.shadow_id)["recovered"]) == ("PENDING", 1)


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_run_that_waits_or_runs_is_left_whatever_its_age(world: World, state: str) -> None:
    """Also while the scheduler is down: then every run is queued."""
    world.at_work(state)
    world.age(timedelta(days=3))
    before = world.picture()

    assert world.reconciler().round() == 0
    assert world.picture() == before


def test_after_three_recoveries_the_job_is_failed_503_and_says_why(world: World) -> None:
    document = builders.document(world.conn)
    reconciler = world.reconciler()
    for _ in range(4):
        ticket = world.claimed(document.shadow_id)
        world.airflow.has(ticket.dag_run_id, "failed")
        world.age(timedelta(seconds=30))
        assert reconciler.round() == 1

    row, run = world.row(document.shadow_id), world.run_of(document.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 503)
    assert "menyerah setelah 3 kali" in row["error"]
    assert ticket.dag_run_id in row["error"]
    assert (run["status"], run["n"], run["recovered"]) == ("failed", 4, 3)
    attempts = builders.rows(world.conn, "SELECT n, outcome, code FROM posting_attempts")
    assert attempts == [{"n": 4, "outcome": "FAILED", "code": 503}]


def test_a_person_who_runs_it_again_gets_the_full_number_of_recoveries(world: World) -> None:
    ticket = world.at_work("failed")
    world.execute("UPDATE workflow_runs SET recovered = 3")
    reconciler = world.reconciler()
    assert reconciler.round() == 1
    assert world.status(ticket.shadow_id) == "FAILED"
    with world.database.transaction() as tx:
        tx.runs.rerun(ticket.shadow_id, "sari", None)
    again = world.claimed(ticket.shadow_id)
    world.airflow.has(again.dag_run_id, "failed")
    world.age(timedelta(seconds=30))

    assert reconciler.round() == 1

    assert (world.status(ticket.shadow_id), world.run_of(ticket.shadow_id)["recovered"]) == ("PENDING", 1)


def test_a_foreign_document_whose_first_task_never_came_gets_its_run_and_posts(world: World) -> None:
    document = builders.document(world.conn)
    first = world.claimed(document.shadow_id)
    world.airflow.has(first.dag_run_id, "failed")
    world.age(timedelta(seconds=30))

    assert world.reconciler().round() == 1

    run = world.run_of(document.shadow_id)
    assert (run["workflow"], run["idempotency_key"]) == ("opname_posting", str(document.transaksi_id))
    assert (run["n"], run["recovered"], run["carrier_shadow_id"]) == (2, 1, document.shadow_id)
    second = world.claimed(document.shadow_id)
    for step in POST_OPNAME.steps:
        runner.run_step(POST_OPNAME, second, step.name, world.database.transaction, is_last_try=True)
    assert world.status(document.shadow_id) == "COMPLETED"
    assert builders.books(world.conn).postings == 1


def test_a_second_foreign_row_of_a_document_at_work_is_linked_and_waits(world: World) -> None:
    document = builders.document(world.conn)
    first = world.claimed(document.shadow_id)
    runner.run_step(POST_OPNAME, first, "compute_variance", world.database.transaction, is_last_try=True)
    world.airflow.has(first.dag_run_id, "running")
    other = builders.shadow_row(world.conn, document.transaksi_id, document.nomer_nota)
    second = world.claimed(other)
    world.airflow.has(second.dag_run_id, "failed")
    world.age(timedelta(seconds=30))

    assert world.reconciler().round() == 1

    row = world.row(other)
    assert (row["worker_status"], row["workflow_id"]) == ("WAITING", world.run_of(document.shadow_id)["id"])
    assert world.status(document.shadow_id) == "PROCESSING"


def test_what_a_clock_that_was_ahead_has_written_is_not_left_alone_until_that_hour(world: World) -> None:
    """The database's clock was an hour ahead and has been set right; then the run died."""
    failed, gone = world.at_work("failed"), world.at_work(None, key="gone")
    world.age(-LONG_AGO)

    assert world.reconciler().round() == 4  # each run's own times are set right, too

    assert {world.status(one.shadow_id) for one in (failed, gone)} == {"PENDING"}


def test_a_job_with_fresh_news_is_not_asked_about(world: World) -> None:
    world.airflow.has(world.claimed(world.sent()).dag_run_id, "failed")

    assert world.reconciler().round() == 0
    assert world.airflow.count("run") == 0


def test_long_runs_do_not_hide_the_jobs_behind_them(world: World) -> None:
    for number in range(3):
        world.at_work("running", key=f"long-{number}")
    last = world.at_work("failed", key="dead")
    reconciler = world.reconciler(replace(world.settings, limits=Limits(batch=2)))

    assert [reconciler.round() for _ in range(3)] == [0, 1, 0]
    assert world.status(last.shadow_id) == "PENDING"


def test_a_failed_task_that_a_person_cleared_is_told_in_the_audit_log(world: World) -> None:
    ticket = world.failed(DocumentRefused("isi salah"))

    world.step(replace(ticket, clears=1), "a")

    (told,) = builders.rows(world.conn, "SELECT * FROM audit_log WHERE action = 'clear'")
    assert (told["actor"], told["shadow_id"]) == ("airflow", ticket.shadow_id)
    assert json.loads(told["before_value"])["worker_status"] == "FAILED"
