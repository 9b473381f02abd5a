"""What consumer and relay tell about their work: numbers for Prometheus, and log lines with the ids of the job."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ingest_consumer import logs, shadow
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import announce
from tests.ports import free_port
from tests.queue_rig import Rows, Vhost, until


class Told:
    """A program with metrics and JSON logs, and what it says."""

    def __init__(self, started: subprocess.Popen[str], port: int) -> None:
        self.process = started
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> httpx.Response | None:
        try:
            return httpx.get(self._url + path, timeout=10, trust_env=False)
        except httpx.HTTPError:
            return None

    def value(self, sample: str) -> float | None:
        answer = self.get("/metrics")
        found = re.search(rf"^{re.escape(sample)} (\S+)$", answer.text if answer else "", re.MULTILINE)
        return float(found[1]) if found else None

    def ended(self) -> list[dict[str, Any]]:
        self.process.terminate()
        output, _ = self.process.communicate(timeout=60)
        return [json.loads(line) for line in output.splitlines()]


def telling(process: Callable[..., subprocess.Popen[str]], command: str, name: str, **settings: str) -> Told:
    port = free_port()
    env = {f"EVEREST_METRICS_PORT_{name}": str(port), "EVEREST_LOG_FORMAT": "json", "EVEREST_WORKERS": "1"}
    env |= {"EVEREST_CHECK_EVERY_S": "1", "EVEREST_DAG_WAIT_S": "0"}
    return Told(process(command, **(env | settings)), port)


@pytest.fixture
def pair(process: Callable[..., subprocess.Popen[str]]) -> tuple[Told, Told]:
    """(relay, consumer)."""
    return telling(process, "relay", "RELAY"), telling(process, "consume", "CONSUMER")


def sent(rows: Rows, transaksi_id: int) -> int:
    shadow_id = rows.ours(transaksi_id, publish_status="PENDING")
    with rows.database.transaction() as conn:
        shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=None, body=json.dumps(rows.body(shadow_id)))
    return shadow_id


def test_a_job_leaves_its_numbers_and_its_ids_on_every_stage(
    pair: tuple[Told, Told], rows: Rows, airflow: FakeAirflow, vhost: Vhost
) -> None:
    relay, consumer = pair
    posted = sent(rows, 41)
    until(lambda: rows.get(posted)["dag_run_id"] in airflow.runs, "the run")
    until(lambda: consumer.value("everest_consumer_deliveries_held") == 1, "a delivery held")
    rows.end(posted, "COMPLETED")
    until(lambda: consumer.value('everest_consumer_deliveries_total{outcome="acked"}') == 1, "the ack")
    assert consumer.value("everest_consumer_deliveries_held") == 0
    for stage in ("publish_to_processing", "processing_to_end"):
        assert consumer.value(f'everest_stage_seconds_count{{stage="{stage}"}}') == 1
    assert relay.value('everest_stage_seconds_count{stage="submit_to_publish"}') == 1
    assert relay.value('everest_relay_published_total{exchange="everest.jobs.x"}') == 1

    failed = sent(rows, 42)
    until(lambda: rows.get(failed)["dag_run_id"] in airflow.runs, "the other run")
    rows.end(failed, "FAILED", "salah", 422)
    until(lambda: consumer.value('everest_consumer_deliveries_total{outcome="dead_lettered"}') == 1, "the rejection")
    vhost.publish(b"no message at all")
    until(lambda: relay.value('everest_dead_letters{standing="failed"}') == 1, "the letter of the document")
    until(lambda: relay.value('everest_dead_letters{standing="broken"}') == 1, "the broken letter")
    for one in pair:
        answer = one.get("/readyz")
        assert answer is not None
        assert (answer.status_code, answer.json()["state"]) == (200, "active")

    run = {"shadow_id": posted, "transaksi_id": 41, "nota": "SO-1", "n": 1,
           "workflow_id": rows.get(posted)["workflow_id"], "dag_run_id": rows.get(posted)["dag_run_id"]}  # fmt: skip
    for one, words in ((relay, "published outbox row"), (consumer, "acked: shadow row")):
        lines = [line for line in one.ended() if words in line["message"] and line["shadow_id"] == posted]
        assert [{name: line.get(name) for name in logs.IDS} for line in lines] == [run]


def test_what_is_in_the_way_is_counted_by_cause_and_makes_it_not_ready(
    pair: tuple[Told, Told], rows: Rows, airflow: FakeAirflow, vhost: Vhost
) -> None:
    _, consumer = pair
    until(lambda: (answer := consumer.get("/readyz")) is not None and answer.status_code == 200, "ready")
    airflow.script("trigger", 503, 503)
    job = sent(rows, 41)
    until(lambda: (consumer.value('everest_retries_total{cause="airflow"}') or 0) >= 1, "the retries")
    until(lambda: rows.get(job)["dag_run_id"] in airflow.runs, "the run after all")
    rows.end(job, "COMPLETED")
    until(lambda: consumer.value('everest_consumer_deliveries_total{outcome="acked"}') == 1, "the ack")

    until(lambda: vhost.cut_connections("everest worker") > 0, "the connection cut")
    until(lambda: (consumer.value('everest_retries_total{cause="broker"}') or 0) >= 1, "the retry")
    until(lambda: (answer := consumer.get("/readyz")) is not None and answer.status_code == 200, "ready again")


def test_what_the_broker_does_not_take_and_letters_that_are_settled_are_counted(
    process: Callable[..., subprocess.Popen[str]], rows: Rows, vhost: Vhost
) -> None:
    vhost.declare()
    done = rows.ours(43, worker_status="COMPLETED")
    vhost.publish(rows.body(done), exchange="everest.jobs.dlx")
    announce(rows, 44, routing_key="job.nobody")
    relay = telling(process, "relay", "RELAY")
    until(lambda: (relay.value("everest_relay_refused_total") or 0) >= 1, "the refusal")
    until(lambda: relay.value("everest_relay_settled_total") == 1, "the letter taken out")


def test_a_delivery_that_is_postponed_handed_over_or_left_is_counted_as_that(
    process: Callable[..., subprocess.Popen[str]], rows: Rows, airflow: FakeAirflow, vhost: Vhost
) -> None:
    vhost.declare()
    consumer = telling(
        process, "consume", "CONSUMER", EVEREST_WORKERS="2", EVEREST_FOREIGN_JOBS="leave", EVEREST_HOLD_LIMIT_S="1"
    )

    def ended(how: str) -> float:
        return consumer.value(f'everest_consumer_deliveries_total{{outcome="{how}"}}') or 0

    until(lambda: consumer.value("everest_consumer_workers") == 2, "both workers")
    vhost.publish(rows.body(rows.ours(45)))
    until(lambda: ended("handed_over") == 1, "handed over to the reconciler")
    vhost.publish(rows.body(foreign := rows.foreign(46)))
    until(lambda: ended("put_back") >= 1, "left to the older worker")
    rows.end(foreign, "COMPLETED")
    airflow.dags["opname_posting"] = {"is_paused": True}
    vhost.publish(rows.body(rows.ours(47)))
    until(lambda: ended("postponed") == 1, "postponed")
    assert ended("dead_lettered") == 0
