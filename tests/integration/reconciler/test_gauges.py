"""What the rows say for Prometheus: counts and ages by status, backlog, owed letters, heartbeats, retries."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from everest import bootstrap
from everest.errors import DocumentRefused
from everest.reconciler import gauges
from everest.reconciler.gauges import Gauges
from everest.settings import Settings
from everest.workflow import runner
from everest.workflow.builder import workflow
from ingest_consumer import metrics
from ingest_consumer.metrics import Metric
from ingest_consumer.vitals import ACTIVE, Vitals
from tests.integration.reconciler.process import environment, start
from tests.integration.reconciler.world import LONG_AGO, World
from tests.ports import free_port
from tests.queue_rig import until


def found(world: World, site: Settings | None = None) -> dict[Metric, Any]:
    with world.database.transaction() as tx:
        return gauges.found(tx, site or Settings())


def test_an_empty_installation_has_zeros_and_not_gaps(world: World) -> None:
    told = found(world)
    assert told[metrics.JOBS] == {(kind, status): 0 for kind in ("document", "workflow") for status in gauges.OPEN}
    assert told[metrics.JOBS_OLDEST] == {(status,): 0 for status in gauges.OPEN}
    assert told[metrics.OUTBOX_DUE] == told[metrics.OUTBOX_LATER] == told[metrics.LETTERS_OWED] == {(): 0}
    assert told[metrics.OUTBOX_OLDEST] == {(): 0}
    assert told[metrics.JOBS_FAILED] == told[metrics.HEARTBEAT_AGE] == {}


def test_jobs_are_counted_by_kind_and_status_with_the_age_of_the_oldest(world: World) -> None:
    world.at_work("running", key="a")
    world.sent("b")
    world.execute(
        "INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, worker_status, worker_at, error_code) VALUES"
        " (1, 'SO-1', 'FAILED', UTC_TIMESTAMP(6) - INTERVAL 2 HOUR, 422),"
        " (2, 'SO-2', 'FAILED', UTC_TIMESTAMP(6), NULL),"
        " (3, 'SO-3', 'COMPLETED', UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE, NULL),"
        " (4, 'SO-4', 'COMPLETED', UTC_TIMESTAMP(6) - INTERVAL 2 HOUR, NULL)"
    )

    told = found(world)

    assert told[metrics.JOBS][("workflow", "PROCESSING")] == 1
    assert told[metrics.JOBS][("workflow", "PENDING")] == 1
    assert told[metrics.JOBS][("document", "FAILED")] == 2
    assert told[metrics.JOBS_FAILED] == {("422",): 1, ("0",): 1}
    assert told[metrics.JOBS_ENDED] == {("COMPLETED",): 1, ("FAILED",): 1, ("CANCELLED",): 0}
    assert 7200 <= told[metrics.JOBS_OLDEST][("FAILED",)] < 7500
    assert 30 <= told[metrics.JOBS_OLDEST][("PROCESSING",)] < 300


def test_a_foreign_job_that_nobody_touched_is_as_old_as_its_writers_zone_says(world: World) -> None:
    world.execute(
        "INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, created_at) VALUES"
        " (1, 'SO-1', UTC_TIMESTAMP(6) + INTERVAL 7 HOUR - INTERVAL 10 MINUTE)"
    )
    site = Settings.from_environment({"EVEREST_FOREIGN_ZONE": "Asia/Jakarta"})
    assert 600 <= found(world, site)[metrics.JOBS_OLDEST][("PENDING",)] < 900
    assert found(world)[metrics.JOBS_OLDEST][("PENDING",)] == 0, "a time to come has no age"


def test_a_status_that_has_more_jobs_than_the_cap_is_counted_up_to_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "CAP", 3)
    values = ", ".join(f"({number}, 'FAILED', UTC_TIMESTAMP(6), 422)" for number in range(5))
    world.execute(
        f"INSERT INTO rabbit_publish_shadow (transaksi_id, worker_status, worker_at, error_code) VALUES {values}"
    )
    told = found(world)
    assert told[metrics.JOBS][("document", "FAILED")] == 3
    assert told[metrics.JOBS_FAILED] == {("422",): 3}
    assert told[metrics.JOBS_ENDED][("FAILED",)] == 3


def test_the_backlog_is_what_is_due_refused_rows_included_and_timers_apart(world: World) -> None:
    world.execute(
        "INSERT INTO outbox (exchange, routing_key, body, available_at, published_at, attempts, created_at) VALUES"
        " ('x', 'k', '{}', UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE, NULL, 0, UTC_TIMESTAMP(6) - INTERVAL 1 DAY),"
        " ('x', 'k', '{}', UTC_TIMESTAMP(6) + INTERVAL 30 SECOND, NULL, 4, UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE),"
        " ('x', 'k', '{}', UTC_TIMESTAMP(6) + INTERVAL 30 SECOND, NULL, 0, UTC_TIMESTAMP(6)),"
        " ('x', 'k', '{}', UTC_TIMESTAMP(6) + INTERVAL 3 DAY, NULL, 0, UTC_TIMESTAMP(6)),"
        " ('x', 'k', '{}', UTC_TIMESTAMP(6) - INTERVAL 9 DAY, UTC_TIMESTAMP(6), 1, UTC_TIMESTAMP(6))"
    )
    told = found(world)
    assert told[metrics.OUTBOX_DUE] == {(): 2}
    assert told[metrics.OUTBOX_LATER] == {(): 2}
    assert 600 <= told[metrics.OUTBOX_OLDEST][()] < 900, "of a delay since it was due, of a refused row since written"


def test_a_letter_is_owed_a_minute_after_the_failure_and_not_for_a_refusal(world: World) -> None:
    world.failed(DocumentRefused("no", code=422), key="fault")
    assert found(world)[metrics.LETTERS_OWED] == {(): 0}, "its consumer is about to reject it"
    world.age(timedelta(minutes=2))
    world.failed(DocumentRefused("no", code=403), key="refused")
    world.age(timedelta(minutes=2))
    assert found(world)[metrics.LETTERS_OWED] == {(): 1}
    world.age(-LONG_AGO)
    assert found(world)[metrics.LETTERS_OWED] == {(): 1}, "of a clock that was ahead"
    world.reconciler().round()
    assert found(world)[metrics.LETTERS_OWED] == {(): 0}


def test_heartbeats_tell_the_newest_of_each_program_and_how_many_are_there(world: World) -> None:
    world.execute(
        "INSERT INTO process_heartbeats (name, instance, started_at, seen_at, detail) VALUES"
        " ('consumer', 'a:1', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), '{\"state\": \"active\"}'),"
        " ('consumer', 'a:2', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), '{\"state\": \"stopped\"}'),"
        " ('consumer', 'a:3', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, '{\"state\": \"active\"}'),"
        " ('relay', 'a:4', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) - INTERVAL 10 MINUTE, '{\"state\": \"active\"}'),"
        " ('reconciler', 'a:5', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, '{\"state\": \"active\"}')"
    )
    told = found(world)
    assert told[metrics.PROCESSES] == {("consumer",): 1, ("relay",): 0, ("reconciler",): 0}
    assert told[metrics.HEARTBEAT_AGE][("reconciler",)] > 3500, "of a clock that was ahead: no sign of life"
    assert told[metrics.HEARTBEAT_AGE][("consumer",)] < 60
    assert 600 <= told[metrics.HEARTBEAT_AGE][("relay",)] < 900


def test_findings_that_nobody_acknowledged_and_the_age_of_each_audit_that_came_to_its_end(world: World) -> None:
    assert found(world)[metrics.AUDIT_FINDINGS] == {}
    assert list(found(world)[metrics.AUDIT_AGE]) == [("none",)]
    world.execute(
        "INSERT INTO audit_runs (invariant, actor, outcome, started_at, finished_at) VALUES"
        " ('posting_is_balanced', 'night', 'CLEAN', '2020-01-01', UTC_TIMESTAMP(6) - INTERVAL 2 HOUR),"
        " ('posting_is_balanced', 'night', 'NOT_CHECKED', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)),"
        " ('each_job_ends', 'night', 'RUNNING', UTC_TIMESTAMP(6) - INTERVAL 5 HOUR, NULL)"
    )
    world.execute(
        "INSERT INTO audit_findings (invariant, finding_key, pesan, first_seen_at, last_seen_at, first_run_id,"
        " last_run_id, resolved_at, diakui_oleh) VALUES"
        " ('posting_is_balanced', 'a', 'x', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 1, 1, NULL, NULL),"
        " ('posting_is_balanced', 'b', 'x', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 1, 1, NULL, 'tini'),"
        " ('posting_is_balanced', 'c', 'x', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 1, 1, UTC_TIMESTAMP(6), NULL)"
    )
    told = found(world)
    assert told[metrics.AUDIT_FINDINGS] == {("posting_is_balanced",): 1}
    ages = told[metrics.AUDIT_AGE]
    assert 7200 <= ages[("posting_is_balanced",)] < 7500, "one that could not look to the end is none"
    assert 18000 <= ages[("each_job_ends",)] < 18300


@pytest.fixture
def vitals() -> Vitals:
    one = Vitals(metrics.RECONCILER)
    one.meter.switch_on(metrics.RECONCILER)
    one.know(state=ACTIVE)
    return one


def text(vitals: Vitals) -> str:
    return vitals.meter.render().decode()


def test_tries_of_steps_are_counted_once_by_class_from_the_first_look_on(world: World, vitals: Vitals) -> None:
    shadow_id = world.sent()
    run_id = world.run_of(shadow_id)["id"]

    def tried(error: str) -> None:
        world.execute(
            "INSERT INTO workflow_events (workflow_id, event, detail, created_at) VALUES"
            " (%s, 'retried', JSON_OBJECT('type', %s), UTC_TIMESTAMP(6)), (%s, 'failed', '{}', UTC_TIMESTAMP(6))",
            run_id, error, run_id,
        )  # fmt: skip

    looks = Gauges(world.database, Settings(), vitals)
    tried("OSError")
    looks.look()
    tried("StepTimeout")
    tried("StepTimeout")
    looks.look()
    looks.look()
    assert 'everest_step_retries_total{error="StepTimeout"} 2.0' in text(vitals)
    assert "OSError" not in text(vitals)


def test_a_real_failed_try_of_a_step_is_counted_and_one_that_is_the_last_is_not(world: World, vitals: Vitals) -> None:
    def breaks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        raise ConnectionResetError

    fragile = workflow("fragile").then(breaks, name="a").idempotency_key("{key}").build()
    ticket = world.claimed(world.sent_of(fragile, key="k"))
    looks = Gauges(world.database, Settings(), vitals)
    looks.look()
    for is_last in (False, True):
        with pytest.raises(ConnectionResetError):
            runner.run_step(fragile, ticket, "a", world.database.transaction, is_last_try=is_last)
    looks.look()
    assert 'everest_step_retries_total{error="ConnectionResetError"} 1.0' in text(vitals)


def test_on_standby_and_without_a_database_there_are_no_numbers_instead_of_old_ones(
    world: World, vitals: Vitals
) -> None:
    looks = Gauges(world.database, Settings(), vitals)
    looks.look()
    assert "\neverest_outbox_due 0.0\n" in text(vitals)
    assert "\neverest_database_up 1.0\n" in text(vitals)

    vitals.know(state="standby")
    looks.look()
    assert "\neverest_outbox_due " not in text(vitals)

    vitals.know(state=ACTIVE)
    looks.look()
    Gauges(bootstrap.database(replace(world.url, port=1), Settings()), Settings(), vitals).look()
    assert "\neverest_outbox_due " not in text(vitals)
    assert "\neverest_database_up 0.0\n" in text(vitals)


def test_the_process_tells_its_repairs_and_the_rows(world: World) -> None:
    ticket = world.at_work("failed")
    port = free_port()
    process = start(environment(world, EVEREST_METRICS_PORT_RECONCILER=str(port), EVEREST_LOG_FORMAT="json"))

    def told(words: str) -> bool:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10, trust_env=False)
        except httpx.HTTPError:
            return False
        return words in answer.text

    until(lambda: told('everest_reconciler_repairs_total{action="began-again"} 1.0'), "the repair")
    until(lambda: told("everest_reconciler_round_seconds_count"), "the length of a round")
    assert not told("everest_reconciler_round_seconds_count 0.0")
    until(lambda: told('everest_jobs{kind="workflow",worker_status="'), "the rows")
    assert httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=10, trust_env=False).json()["state"] == "active"
    process.terminate()
    output, _ = process.communicate(timeout=60)
    (line,) = [line for line in output.splitlines() if "action=began-again" in line]
    assert f'"shadow_id": {ticket.shadow_id}' in line
    assert f'"dag_run_id": "{ticket.dag_run_id}"' in line


def test_a_look_that_fails_in_any_way_leaves_no_numbers_and_the_next_one_brings_them(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vitals = Vitals("reconciler")
    vitals.know(state=ACTIVE)
    looking = Gauges(world.database, Settings(), vitals)
    looking.look()
    assert vitals.meter.told()
    found = gauges.found

    def breaks(*_: object) -> dict[Metric, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(gauges, "found", breaks)
    looking.look()
    assert not vitals.meter.told()
    assert "OUR BUG in reading the rows" in caplog.text

    monkeypatch.setattr(gauges, "found", found)
    looking.look()
    assert vitals.meter.told()
