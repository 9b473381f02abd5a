"""The waiting rule: a delivery is held until its run is over, and its run is told what became of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ingest_consumer import delivery
from ingest_consumer.settings import Settings
from ingest_consumer.watch import Watch
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ, deliver, rows_end
from tests.queue_rig import Rows, Running, Vhost, until


def test_waiting_ends_in_one_dead_letter_and_a_note_when_the_row_says_failed(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = rows.ours(1012)
    body = rows.body(shadow_id)
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, shadow_id, "FAILED", "baris 3: harga kosong", 422)

    deliver(vhost, running, settings, body)

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")
    assert rows.get(shadow_id)["dead_lettered_at"] is not None
    until(lambda: airflow.notes, "the note on the run")
    assert airflow.notes == {body["dag_run_id"]: "FAILED: baris 3: harga kosong"}


def test_waiting_that_loses_the_right_to_the_dead_letter_acks(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    """The reconciler marked and published it first: one letter, not two."""
    shadow_id = rows.ours(1013)

    def fail_with_letter_owed_elsewhere(run_id: str, conf: dict[str, Any]) -> None:
        rows.database.close()
        rows.do(
            "UPDATE rabbit_publish_shadow SET worker_status = 'FAILED', error_code = 503,"
            " dead_lettered_at = UTC_TIMESTAMP(6) WHERE id = %s",
            shadow_id,
        )

    airflow.on_trigger = fail_with_letter_owed_elsewhere
    deliver(vhost, running, settings, rows.body(shadow_id))

    until(lambda: airflow.runs, "triggered")
    assert vhost.finished() == []


@pytest.mark.parametrize("status", ["WAITING", "CANCELLED"])
def test_waiting_ends_in_an_ack_when_the_row_is_parked_or_cancelled(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, status: str
) -> None:
    shadow_id = rows.ours(1014)
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, shadow_id, status, "menunggu persetujuan")

    deliver(vhost, running, settings, rows.body(shadow_id))

    until(lambda: airflow.runs, "triggered")
    assert vhost.finished() == []
    if status == "WAITING":
        until(lambda: airflow.notes, "the note on the run")
        assert list(airflow.notes.values()) == ["WAITING: menunggu persetujuan"]


def test_waiting_ends_in_an_ack_when_the_row_goes_on_to_another_run(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    """The next run's message has its own delivery; this one has nothing left to wait for."""
    shadow_id = rows.ours(1015)
    deliver(vhost, running, settings, rows.body(shadow_id))
    until(lambda: airflow.runs, "triggered")

    rows.do("UPDATE rabbit_publish_shadow SET dag_run_id = 'opname_posting__next', n = 2 WHERE id = %s", shadow_id)

    assert vhost.finished() == []
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"
    until(lambda: airflow.notes, "the note on the run")
    assert list(airflow.notes.values()) == [
        "goes on in [opname_posting__next](/dags/opname_posting/runs/opname_posting__next)"
    ]


def test_a_parked_run_says_what_it_waits_for_and_where_it_goes_on(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = rows.ours(1019)

    def park(run_id: str, conf: dict[str, Any]) -> None:
        rows_end(rows, shadow_id, "WAITING", "menunggu persetujuan")
        rows.do("UPDATE rabbit_publish_shadow SET dag_run_id = 'opname_posting__next', n = 2 WHERE id = %s", shadow_id)

    airflow.on_trigger = park
    deliver(vhost, running, settings, rows.body(shadow_id))

    until(lambda: airflow.notes, "the note on the run")
    onward = "[opname_posting__next](/dags/opname_posting/runs/opname_posting__next)"
    assert list(airflow.notes.values()) == [f"WAITING: menunggu persetujuan; goes on in {onward}"]


def test_a_continuation_names_the_run_before_it(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = rows.ours(1021)
    rows.do("UPDATE rabbit_publish_shadow SET dag_run_id = 'opname_posting__7__2', n = 2 WHERE id = %s", shadow_id)
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, shadow_id, "WAITING", "menunggu persetujuan")
    deliver(vhost, running, settings, rows.body(shadow_id))

    until(lambda: airflow.notes, "the note on the run")
    back = "[opname_posting__7__1](/dags/opname_posting/runs/opname_posting__7__1)"
    assert list(airflow.notes.values()) == [f"WAITING: menunggu persetujuan; continues {back}"]


def test_past_the_hold_limit_the_run_is_handed_over_with_its_body(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = rows.ours(1016)
    body = rows.body(shadow_id)
    vhost.declare()
    vhost.publish(body)

    running.consumer(settings, hold_limit=timedelta(milliseconds=300))

    until(lambda: rows.get(shadow_id)["handed_over_at"], "handed over")
    assert vhost.finished() == []
    row = rows.get(shadow_id)
    assert row["worker_status"] == "PROCESSING"
    assert f'"shadow_id": {shadow_id}' in row["handed_over_body"]
    assert list(airflow.runs) == [body["dag_run_id"]]


def test_h38_one_consumer_finishes_twenty_documents_of_one_second_each_as_its_own_run(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    """H38: 20 documents at once are 20 runs."""
    ids = [rows.foreign(3000 + number, f"SO-{number}") for number in range(20)]
    vhost.declare()
    for number, shadow_id in enumerate(ids):
        vhost.publish({"transaksi_id": 3000 + number, "shadow_id": shadow_id, "nota": f"SO-{number}"})

    running.consumer(settings, workers=3)

    until(lambda: all(rows.get(one)["worker_status"] == "COMPLETED" for one in ids), "all completed")
    assert len(posts.runs) == 20
    assert posts.count("trigger") == 20


def test_the_watch_wakes_a_worker_that_would_not_look_by_itself_for_an_hour(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "OWN_LOOK_S", 3600.0)
    shadow_id = rows.ours(1017)
    deliver(vhost, running, settings, rows.body(shadow_id))
    until(lambda: airflow.count("trigger"), "triggered")

    rows.end(shadow_id, "COMPLETED")

    assert vhost.finished() == []


def test_a_watch_that_never_sees_anything_delays_an_ack_and_no_more(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def blind(_watch: Watch) -> None:
        raise OSError("no database")

    monkeypatch.setattr(Watch, "look", blind)
    shadow_id = rows.ours(1018)
    deliver(vhost, running, settings, rows.body(shadow_id))
    until(lambda: airflow.count("trigger"), "triggered")

    rows.end(shadow_id, "COMPLETED")

    assert vhost.finished() == []


def test_a_nested_run_and_its_parent_link_to_each_other(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    """The parent waits: its next run is announced and may never come, so a child links to the one that began it."""
    parent, child = rows.ours(1030), rows.ours(1031)
    parent_run, child_run = rows.get(parent)["workflow_id"], rows.get(child)["workflow_id"]

    def park(run_id: str, conf: dict[str, Any]) -> None:
        rows_end(rows, parent, "WAITING", "menunggu alur kerja")
        rows.do(
            "UPDATE workflow_runs SET current_step = 'nested', n = 2, dag_run_id = %s WHERE id = %s",
            run_id[:-1] + "2",
            parent_run,
        )
        rows.do(
            "UPDATE workflow_runs SET parent_id = %s, parent_step = 'nested', parent_visit = 1 WHERE id = %s",
            parent_run,
            child_run,
        )
        airflow.on_trigger = lambda run_id, conf: rows_end(rows, child, "COMPLETED", "selesai")

    airflow.on_trigger = park
    names = [rows.get(one)["dag_run_id"] for one in (parent, child)]
    to_parent, to_child = (f"[{name}](/dags/opname_posting/runs/{name})" for name in names)
    deliver(vhost, running, settings, rows.body(parent))
    until(lambda: names[0] in airflow.notes, "the note on the parent's run")
    vhost.publish(rows.body(child))
    until(lambda: names[1] in airflow.notes, "the note on the child's run")

    assert airflow.notes == {
        names[0]: f"WAITING: menunggu alur kerja; runs {to_child}",
        names[1]: f"part of {to_parent}",
    }


def test_of_many_workflows_that_a_run_started_its_note_names_three(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    parent, *agents = (rows.ours(1040 + number) for number in range(6))
    parent_run = rows.get(parent)["workflow_id"]

    def start(run_id: str, conf: dict[str, Any]) -> None:
        for agent in agents[:4]:
            rows.do(
                "UPDATE workflow_runs SET parent_id = %s, created_at = UTC_TIMESTAMP(6) WHERE id = %s",
                parent_run,
                rows.get(agent)["workflow_id"],
            )
        rows.do(  # begun by an earlier DAG run
            "UPDATE workflow_runs SET parent_id = %s, created_at = '2020-01-01' WHERE id = %s",
            parent_run,
            rows.get(agents[4])["workflow_id"],
        )
        rows_end(rows, parent, "COMPLETED", "selesai")

    airflow.on_trigger = start
    deliver(vhost, running, settings, rows.body(parent))

    until(lambda: airflow.notes, "the note")
    (note,) = airflow.notes.values()
    shown = [rows.get(agent)["dag_run_id"] for agent in agents[:3]]
    links = ", ".join(f"[{name}](/dags/opname_posting/runs/{name})" for name in shown)
    assert note == f"started {links} and others"
