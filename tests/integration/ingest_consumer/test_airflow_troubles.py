"""An Airflow that will not, cannot or does not answer: documents wait, none fails for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ingest_consumer.delivery import Delivery
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ, QUEUE, at_work
from tests.queue_rig import Rows, Running, Vhost, until


@pytest.mark.parametrize(
    ("dag", "word"),
    [
        ({"is_paused": True}, "PAUSED"),
        (None, "MISSING"),
        ({"is_stale": True}, "MISSING"),
        ({"has_import_errors": True}, "BROKEN"),
    ],
)
def test_a_dag_that_would_not_run_postpones_the_message_and_leaves_the_row_pending(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    caplog: pytest.LogCaptureFixture,
    dag: dict[str, Any] | None,
    word: str,
) -> None:
    airflow.dags["opname_posting"] = dag
    vhost.declare()
    shadow_id = rows.ours(5001)
    body, before = rows.body(shadow_id), rows.get(shadow_id)
    vhost.publish(body)

    running.consumer(settings)

    assert vhost.finished() == []
    assert rows.get(shadow_id) == before
    assert airflow.runs == {}
    (message,) = rows.outbox()
    assert json.loads(message["body"]) == body
    assert message["available_at"] - message["created_at"] >= timedelta(seconds=29)
    assert message["published_at"] is None
    assert any(word in record.message and record.levelname == "ERROR" for record in caplog.records)


def test_one_paused_dag_does_not_hold_up_another_workflow(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    airflow.dags["opname_reversal"] = {"is_paused": True}
    vhost.declare()
    paused, ready = rows.ours(5002), rows.ours(5003)
    rows.do("UPDATE workflow_runs SET workflow = 'opname_reversal' WHERE id = %s", rows.get(paused)["workflow_id"])
    rows.do("UPDATE rabbit_publish_shadow SET dag_id = 'opname_reversal' WHERE id = %s", paused)
    vhost.publish(rows.body(paused, workflow="opname_reversal"))
    vhost.publish(rows.body(ready))

    running.consumer(settings)

    at_work(rows, airflow, ready)
    assert rows.get(paused)["worker_status"] == "PENDING"
    assert [message["shadow_id"] for message in rows.outbox()] == [paused]
    rows.end(ready, "COMPLETED")


def test_the_second_message_of_a_paused_dag_does_not_wait_as_the_first_did(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pile of them before another workflow's message would else hold that up for half a minute each."""
    waited: list[int] = []
    pause = Delivery.pause

    def noting(one: Delivery, seconds: float) -> None:
        waited.append(one.ids["shadow_id"])
        pause(one, seconds)

    monkeypatch.setattr(Delivery, "pause", noting)
    airflow.dags["opname_reversal"] = {"is_paused": True}
    vhost.declare()
    *paused, ready = (rows.ours(5020 + number) for number in range(6))
    for one in paused:
        workflow_id = rows.get(one)["workflow_id"]
        rows.do("UPDATE workflow_runs SET workflow = 'opname_reversal' WHERE id = %s", workflow_id)
        rows.do("UPDATE rabbit_publish_shadow SET dag_id = 'opname_reversal' WHERE id = %s", one)
        vhost.publish(rows.body(one, workflow="opname_reversal"))
    vhost.publish(rows.body(ready))

    running.consumer(settings, dag_wait=timedelta(milliseconds=200))

    at_work(rows, airflow, ready)
    assert [message["shadow_id"] for message in rows.outbox()] == paused
    assert set(waited) <= {paused[0], ready}
    rows.end(ready, "COMPLETED")


def test_a_paused_dag_that_is_unpaused_in_time_takes_the_message_it_kept_waiting(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    airflow.dags["opname_posting"] = {"is_paused": True}
    shadow_id = held()
    running.consumer(settings, dag_wait=timedelta(minutes=5))
    until(lambda: airflow.count("dag") >= 1, "asked for the DAG")

    airflow.dags["opname_posting"] = {}

    at_work(rows, airflow, shadow_id)
    assert rows.outbox() == []
    rows.end(shadow_id, "COMPLETED")


@pytest.mark.parametrize("answers", [(404,), (400,), (403,), (429,), (500, 503), ("hang",)])
def test_an_airflow_that_cannot_do_it_now_is_asked_again_and_never_fails_the_document(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    answers: tuple[int | str, ...],
) -> None:
    airflow.script("trigger", *answers)
    shadow_id = held()

    running.consumer(settings, airflow_timeout=timedelta(milliseconds=300))

    at_work(rows, airflow, shadow_id)
    assert airflow.count("trigger") == len(answers) + 1
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"
    rows.end(shadow_id, "COMPLETED")
    assert vhost.finished() == []


def test_an_expired_token_is_replaced(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    running.consumer(settings)
    first = held()
    at_work(rows, airflow, first)
    airflow.expire_tokens()
    rows.end(first, "COMPLETED")

    second = rows.ours(5004)
    vhost.publish(rows.body(second))

    at_work(rows, airflow, second)
    assert airflow.count("token") == 2
    rows.end(second, "COMPLETED")


def test_a_body_of_ours_that_airflow_calls_malformed_is_kept_and_alarmed(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    airflow.script("trigger", 422)
    shadow_id = held()

    running.consumer(settings)

    until(lambda: any("OUR BUG" in record.message for record in caplog.records), "the alarm")
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"
    running.stop()
    assert vhost.depth(QUEUE) == 1
    assert vhost.depth(DLQ) == 0


def test_an_airflow_that_stays_away_beyond_the_hold_limit_postpones_what_it_never_claimed(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    airflow.script("dag", *[503] * 50)
    shadow_id = held()

    running.consumer(settings, hold_limit=timedelta(milliseconds=100))

    until(rows.outbox, "postponed")
    assert vhost.finished() == []
    assert rows.get(shadow_id)["worker_status"] == "PENDING"
