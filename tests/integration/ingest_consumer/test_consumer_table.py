"""One test per row of the consumer table and of the waiting rule (state protocol), on the real broker and database."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from ingest_consumer import delivery
from ingest_consumer.settings import Settings
from ingest_consumer.watch import Watch
from tests.fake_airflow import FakeAirflow
from tests.queue_rig import Rows, Running, Vhost, until

QUEUE, DLQ = "everest.jobs.q", "everest.jobs.failed.dlq"


def deliver(vhost: Vhost, running: Running, settings: Settings, body: Any, **publishing: Any) -> None:
    vhost.declare()
    vhost.publish(body, **publishing)
    running.consumer(settings)


@pytest.fixture
def posts(airflow: FakeAirflow, rows: Rows) -> FakeAirflow:
    """An Airflow whose runs post the document at once."""
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, conf["shadow_id"], "COMPLETED")
    return airflow


def rows_end(rows: Rows, shadow_id: int, status: str, error: str | None = None, code: int | None = None) -> None:
    """From the fake's thread: with a connection of its own."""
    from ingest_consumer.database import Database

    database = Database(rows.database._url, timedelta(seconds=5))
    Rows(database).end(shadow_id, status, error, code)
    database.close()


def test_a_foreign_message_as_the_web_application_sends_it_starts_run_1_and_is_acked_when_completed(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    shadow_id = rows.foreign(1001, "X")

    deliver(vhost, running, settings, {"transaksi_id": "1001", "shadow_id": str(shadow_id), "nota": "X"})

    until(lambda: rows.get(shadow_id)["worker_status"] == "COMPLETED", "completed")
    assert vhost.finished() == []
    row = rows.get(shadow_id)
    run_id = f"opname_posting__1001__{shadow_id}__1"
    assert (row["dag_id"], row["dag_run_id"], row["n"], row["attempts"]) == ("opname_posting", run_id, 1, 1)
    assert posts.runs[run_id]["conf"] == {"shadow_id": shadow_id, "transaksi_id": 1001, "n": 1, "nota": "X"}


def test_a_pending_row_is_claimed_by_the_run_it_announces(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    shadow_id = rows.ours(1002, n=3)
    body = rows.body(shadow_id)

    deliver(vhost, running, settings, body)

    until(lambda: rows.get(shadow_id)["worker_status"] == "COMPLETED", "completed")
    assert vhost.finished() == []
    assert list(posts.runs) == [body["dag_run_id"]]
    assert posts.runs[body["dag_run_id"]]["conf"] == {
        "shadow_id": shadow_id,
        "workflow_id": body["workflow_id"],
        "transaksi_id": 1002,
        "n": 3,
        "nota": "SO-1",
    }


def test_a_pending_row_that_announces_another_run_acks_the_stale_duplicate(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = rows.ours(1003, n=2)
    stale = rows.body(shadow_id, n=1, dag_run_id=f"opname_posting__1003__{shadow_id}__1")
    before = rows.get(shadow_id)

    deliver(vhost, running, settings, stale)

    assert vhost.finished() == []
    assert rows.get(shadow_id) == before
    assert airflow.runs == {}


def test_h38_a_processing_row_of_the_same_run_attaches_to_it_on_409(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    """H38: 409 on the own run id means it exists; the delivery waits for it."""
    shadow_id = rows.ours(1004, worker_status="PROCESSING")
    body = rows.body(shadow_id)
    airflow.runs[body["dag_run_id"]] = {"state": "running"}

    deliver(vhost, running, settings, body)

    until(lambda: airflow.count("trigger") == 1, "triggered again")
    rows.end(shadow_id, "COMPLETED")
    assert vhost.finished() == []
    assert rows.get(shadow_id)["attempts"] == 0


def test_a_processing_row_of_another_owner_acks_the_stale_duplicate(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = rows.ours(1005, n=2, worker_status="PROCESSING")
    stale = rows.body(shadow_id, n=1, dag_run_id=f"opname_posting__1005__{shadow_id}__1")

    deliver(vhost, running, settings, stale)

    assert vhost.finished() == []
    assert airflow.runs == {}
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"


@pytest.mark.parametrize(
    ("status", "code"), [("WAITING", None), ("COMPLETED", None), ("CANCELLED", 499), ("FAILED", 403)]
)
def test_h32_a_row_with_nothing_to_run_is_acked(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, status: str, code: int | None
) -> None:
    """H32: a replayed copy of a posted document is acked as done."""
    shadow_id = rows.ours(1006, worker_status=status, error_code=code)
    before = rows.get(shadow_id)

    deliver(vhost, running, settings, rows.body(shadow_id))

    assert vhost.finished() == []
    assert rows.get(shadow_id) == before
    assert airflow.runs == {}


def test_a_failed_row_that_never_was_a_dead_letter_is_rejected(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = rows.ours(1007, worker_status="FAILED", error="stok kurang", error_code=422)

    deliver(vhost, running, settings, rows.body(shadow_id))

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")
    assert rows.get(shadow_id)["dead_lettered_at"] is not None


def test_a_failed_row_marked_but_never_rejected_is_rejected_all_the_same(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    """The crash between the mark and the rejection: the mark alone is no dead letter."""
    shadow_id = rows.ours(1008, worker_status="FAILED", error_code=422, dead_lettered_at="2026-01-01 00:00:00")

    deliver(vhost, running, settings, rows.body(shadow_id))

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")


@pytest.mark.parametrize("header", [{"x-everest-dead": "1"}, {"x-death": [{"queue": QUEUE, "count": 1}]}])
def test_a_dead_letter_moved_back_by_hand_is_run_again(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, header: dict[str, Any]
) -> None:
    shadow_id = rows.ours(
        1009, run_status="failed", worker_status="FAILED", error="lama", error_code=422, dead_lettered_at="2026-01-01"
    )

    deliver(vhost, running, settings, rows.body(shadow_id), headers=header)

    until(lambda: rows.get(shadow_id)["worker_status"] == "PENDING", "pending again")
    assert vhost.finished() == []
    row = rows.get(shadow_id)
    assert (row["n"], row["error"], row["error_code"], row["dead_lettered_at"]) == (2, None, None, None)
    assert [message["shadow_id"] for message in rows.outbox()] == [shadow_id]
    assert rows.do("SELECT actor, action FROM audit_log") == (("dead-letter queue", "rerun"),)


def test_a_failed_row_that_is_redelivered_is_rejected_even_with_the_marks_of_a_dead_letter(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    """A crash had prevented its rejection; nobody asked for a rerun."""
    vhost.declare()
    shadow_id = rows.ours(1017, run_status="failed", worker_status="FAILED", error_code=422)
    vhost.publish(rows.body(shadow_id), headers={"x-everest-dead": "1"})
    with closing(vhost.connect()) as connection:  # taken and given back: from now on it is redelivered
        method, _, _ = connection.channel().basic_get(QUEUE)
        assert method is not None

    running.consumer(settings)

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")
    assert rows.get(shadow_id)["worker_status"] == "FAILED"
    assert rows.outbox() == []


def test_a_moved_back_letter_whose_workflow_is_gone_goes_back(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    """Purged, or not restored: there is nothing to run again, however often one looks."""
    shadow_id = rows.ours(1018, run_status="failed", worker_status="FAILED", error_code=500)
    body = rows.body(shadow_id, workflow_id=None, workflow=None)
    rows.do("DELETE FROM workflow_runs")

    deliver(vhost, running, settings, body, headers={"x-everest-dead": "1"})

    until(lambda: vhost.depth(DLQ) == 1, "back in the dead-letter queue")
    assert rows.get(shadow_id)["worker_status"] == "FAILED"


def test_a_moved_back_letter_that_cannot_run_again_goes_back_instead_of_vanishing(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = rows.ours(1010, run_status="failed", worker_status="FAILED", error_code=500)
    rows.do("UPDATE workflow_runs SET compensation = 'done'")

    deliver(vhost, running, settings, rows.body(shadow_id), headers={"x-everest-dead": "1"})

    until(lambda: vhost.depth(DLQ) == 1, "back in the dead-letter queue")
    assert rows.get(shadow_id)["worker_status"] == "FAILED"
    assert rows.outbox() == []


def test_a_message_without_a_row_or_of_another_document_is_rejected_and_touches_nothing(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    others = rows.foreign(2000)
    before = rows.get(others)
    vhost.declare()
    vhost.publish({"transaksi_id": 1, "shadow_id": others + 1000, "nota": "X"})
    vhost.publish({"transaksi_id": 2001, "shadow_id": others, "nota": "X"})

    running.consumer(settings)

    until(lambda: vhost.depth(DLQ) == 2, "both rejected")
    assert rows.get(others) == before
    assert airflow.runs == {}


def test_a_nota_that_differs_is_only_logged(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    shadow_id = rows.foreign(1011, "SO-11")

    deliver(vhost, running, settings, {"transaksi_id": 1011, "shadow_id": shadow_id, "nota": ["?"]})

    until(lambda: rows.get(shadow_id)["worker_status"] == "COMPLETED", "completed")
    assert rows.get(shadow_id)["nomer_nota"] == "SO-11"


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
