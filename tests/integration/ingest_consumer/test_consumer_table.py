"""The consumer table of the state protocol, row by row: what a message and its shadow row make of each other."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ, QUEUE, deliver
from tests.queue_rig import Rows, Running, Vhost, until


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
