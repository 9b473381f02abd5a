"""Documents through the whole running stack: message, consumer, Airflow, books."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest import bootstrap
from tests import builders
from tests.acceptance.counting import DEAD_LETTER_QUEUE, assert_posted_once, count, queue_is_empty
from tests.acceptance.live import Live, until
from tests.builders import Document


def test_the_message_of_a_foreign_publisher_with_ids_as_text_posts(live: Live) -> None:
    document = live.document(count())

    live.publish({"transaksi_id": str(document.transaksi_id), "shadow_id": str(document.shadow_id), "nota": "X"})

    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    posting = assert_posted_once(live, document)
    assert str(posting["total_debet"]) == "8001.00"
    assert row["dag_run_id"] == f"opname_posting__{document.transaksi_id}__{document.shadow_id}__1"
    with live.airflow() as airflow:
        url = f"/dags/opname_posting/dagRuns/{row['dag_run_id']}/taskInstances"
        tasks = airflow.get(url).raise_for_status().json()["task_instances"]
    assert {task["task_id"] for task in tasks} == {"compute_variance", "clean_duplicate_notas", "post_jurnal"}


def test_h38_twenty_documents_in_one_second_are_twenty_dag_runs(live: Live) -> None:
    documents = [live.document(count()) for _ in range(20)]

    with live.channel() as channel:
        for document in documents:
            body = json.dumps(document.message).encode()
            channel.basic_publish("everest.jobs.x", "job.process", body, mandatory=True)

    runs = {live.wait_for(document.shadow_id, "COMPLETED", "FAILED")["dag_run_id"] for document in documents}
    assert len(runs) == 20
    for document in documents:
        assert_posted_once(live, document)


def test_the_same_message_five_times_posts_once(live: Live) -> None:
    document = live.document(count())

    for _ in range(5):
        live.publish(document.message)

    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
    until("the queue to be empty", lambda: queue_is_empty(live))
    assert live.dead_letters(document.shadow_id) == []


def test_broken_messages_are_dead_lettered_with_a_reason_and_the_consumer_goes_on(live: Live) -> None:
    other = live.document(count())
    before = live.shadow(other.shadow_id)
    known = {letter["letter"] for letter in live.dead_letters()}
    mark = time.time_ns()
    broken: list[bytes] = [
        b"not json %d" % mark,
        b"[%d]" % mark,
        b'{"transaksi_id": 1, "x": %d}' % mark,
        b'{"transaksi_id": true, "shadow_id": %d}' % mark,
        b'{"transaksi_id": 1, "shadow_id": 1, "v": 99, "x": %d}' % mark,
        b'{"transaksi_id": 1, "shadow_id": 1, "workflow": "nobody", "x": %d}' % mark,
        bytes(range(256)) + b"%d" % mark,
        b'{"x": "' + b"a" * 1_000_000 + b'%d"}' % mark,
        json.dumps({"transaksi_id": 999_999_999_999, "shadow_id": other.shadow_id}).encode(),
        json.dumps({"transaksi_id": 1, "shadow_id": mark}).encode(),
    ]

    for body in broken:
        live.publish(body)
    good = live.document(count())
    live.publish(good.message)

    live.wait_for(good.shadow_id, "COMPLETED")
    letters = until(
        "a dead letter of each",
        lambda: (lambda new: new if len(new) == len(broken) else None)(
            [letter for letter in live.dead_letters() if letter["letter"] not in known]
        ),
    )
    assert all(letter["reason"] for letter in letters)
    after = live.shadow(other.shadow_id)
    assert after == before, "another document's row is never touched"


# ------------------------------------------------------------------------- failed, corrected, and run again


def by_command(live: Live, document: Document, row: dict[str, Any]) -> None:
    live.run("everest", "rerun", document.nomer_nota)


def by_replay(live: Live, document: Document, row: dict[str, Any]) -> None:
    live.run("ingest_consumer", "dead-letters", "replay", document.nomer_nota)


def by_hand(live: Live, document: Document, row: dict[str, Any]) -> None:
    """As the broker's own page moves a message: body and headers stay."""
    with live.channel() as channel:
        while True:
            method, properties, body = channel.basic_get(DEAD_LETTER_QUEUE)
            assert method is not None, "the dead letter is there"
            if body == json.dumps(document.message).encode():
                channel.basic_publish("everest.jobs.x", "job.process", body, properties, mandatory=True)
                channel.basic_ack(method.delivery_tag)
                return


def by_clearing_in_airflow(live: Live, document: Document, row: dict[str, Any]) -> None:
    with live.airflow() as airflow:
        body = {"dry_run": False, "dag_run_id": row["dag_run_id"], "only_failed": True, "reset_dag_runs": True}
        until(
            "Airflow to have ended the run",
            lambda: airflow.get(f"/dags/opname_posting/dagRuns/{row['dag_run_id']}").json()["state"] == "failed",
        )
        cleared = airflow.post("/dags/opname_posting/clearTaskInstances", json=body).raise_for_status().json()
        assert cleared["total_entries"] >= 1


@pytest.mark.parametrize("again", [by_command, by_replay, by_hand, by_clearing_in_airflow])
def test_a_failed_document_corrected_and_run_again_posts_once(
    live: Live, again: Callable[[Live, Document, dict[str, Any]], None]
) -> None:
    document = live.document(count(cost=None))
    live.publish(document.message)
    row = live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 422)
    assert row["response"]["errors"][0] | {"baris": 1, "kolom": "harga_pokok"} == row["response"]["errors"][0]
    until("its dead letter", lambda: live.dead_letters(document.shadow_id))
    assert live.postings(document.nomer_nota) == []

    live.correct(document, count(cost="1500"))
    again(live, document, row)

    live.wait_for(document.shadow_id, "COMPLETED")
    assert_posted_once(live, document)
    live.run("ingest_consumer", "dead-letters", "settle")
    assert live.dead_letters(document.shadow_id) == []


def test_h36_every_one_of_ten_failures_of_a_document_is_accounted_for(live: Live) -> None:
    document = live.document(count(cost=None))
    live.publish(document.message)
    for failure in range(1, 11):
        row = until("failure", lambda n=failure: _failed(live, document, n))
        assert row["error_code"] == 422
        assert live.dead_letters(document.shadow_id), "never FAILED without a letter"
        if failure == 10:
            live.correct(document, count())
        with bootstrap.unit_of_work(live.mysql) as tx:
            tx.runs.rerun(document.shadow_id, "test", None)

    live.wait_for(document.shadow_id, "COMPLETED")
    assert_posted_once(live, document)
    attempts = live.rows(
        "SELECT outcome FROM posting_attempts WHERE transaksi_id = %s ORDER BY n", document.transaksi_id
    )
    assert [attempt["outcome"] for attempt in attempts] == ["FAILED"] * 10 + ["COMPLETED"]
    live.run("ingest_consumer", "dead-letters", "settle")
    assert live.dead_letters(document.shadow_id) == []


def _failed(live: Live, document: Document, n: int) -> dict[str, Any] | None:
    row = live.shadow(document.shadow_id)
    return row if (row["worker_status"], row["n"]) == ("FAILED", n) and row["dead_lettered_at"] else None


def test_two_documents_of_one_nota_end_as_one_posting_and_one_conflict(live: Live) -> None:
    lines = count()
    first = live.document(lines)
    second = live.document(lines, nomer_nota=first.nomer_nota)

    for document in (first, second):
        live.publish(document.message)

    rows = [live.wait_for(document.shadow_id, "COMPLETED", "FAILED") for document in (first, second)]
    assert sorted(row["worker_status"] for row in rows) == ["COMPLETED", "FAILED"]
    (failed,) = [row for row in rows if row["worker_status"] == "FAILED"]
    assert failed["error_code"] == 409
    assert len(live.postings(first.nomer_nota)) == 1
    assert live.books_agree([first.nomer_nota])


def test_a_second_job_for_a_document_shares_its_outcome(live: Live) -> None:
    document = live.document(count())
    with live.connection() as conn:
        second = builders.shadow_row(conn, document.transaksi_id, document.nomer_nota)

    live.publish(document.message)
    live.publish({"transaksi_id": document.transaksi_id, "shadow_id": second})

    assert live.wait_for(document.shadow_id, "COMPLETED", "FAILED")["worker_status"] == "COMPLETED"
    assert live.wait_for(second, "COMPLETED", "FAILED")["worker_status"] == "COMPLETED"
    assert_posted_once(live, document)


def test_a_run_that_a_person_marks_failed_in_airflow_is_a_499_until_somebody_runs_it_again(live: Live) -> None:
    document = live.document(count())
    with live.connection() as conn, conn.cursor() as cursor:
        # Holding the document keeps the first task waiting while the person marks the run.
        cursor.execute("SELECT id FROM so_headers_staging WHERE id = %s FOR UPDATE", (document.header_id,))
        live.publish(document.message)
        row = live.wait_for(document.shadow_id, "PROCESSING")
        until(
            "the task to wait",
            lambda: live.rows(
                "SELECT id FROM workflow_steps WHERE workflow_id ="
                " (SELECT workflow_id FROM rabbit_publish_shadow WHERE id = %s)",
                document.shadow_id,
            ),
        )
        with live.airflow() as airflow:
            url = f"/dags/opname_posting/dagRuns/{row['dag_run_id']}"
            airflow.patch(url, json={"state": "failed"}).raise_for_status()
        failed = live.wait_for(document.shadow_id, "FAILED")
        conn.rollback()
    assert failed["error_code"] == 499
    assert "Airflow" in failed["error"]
    until("its dead letter", lambda: live.dead_letters(document.shadow_id))
    assert live.postings(document.nomer_nota) == []

    live.run("everest", "rerun", document.nomer_nota)
    live.wait_for(document.shadow_id, "COMPLETED")
    assert_posted_once(live, document)


def test_a_run_that_was_marked_failed_in_the_queue_goes_on_when_its_tasks_are_cleared(live: Live) -> None:
    """No task of it was ever tried, so nothing about its tasks tells the clear: Airflow's count of them does."""
    document = live.document(count())
    scheduler = live.pid("airflow-scheduler")
    os.kill(scheduler, signal.SIGSTOP)
    try:
        live.publish(document.message)
        row = live.wait_for(document.shadow_id, "PROCESSING")
        with live.airflow() as airflow:
            url = f"/dags/opname_posting/dagRuns/{row['dag_run_id']}"
            until("its DAG run", lambda: airflow.get(url).status_code == 200)
            airflow.patch(url, json={"state": "failed"}).raise_for_status()
        assert live.wait_for(document.shadow_id, "FAILED")["error_code"] == 499
    finally:
        os.kill(scheduler, signal.SIGCONT)

    with live.airflow() as airflow:
        everything = {"dry_run": False, "dag_run_id": row["dag_run_id"], "only_failed": False, "reset_dag_runs": True}
        airflow.post("/dags/opname_posting/clearTaskInstances", json=everything).raise_for_status()

    live.wait_for(document.shadow_id, "COMPLETED")
    assert_posted_once(live, document)


def test_a_paused_dag_loses_nothing(live: Live) -> None:
    with live.airflow() as airflow:
        airflow.patch("/dags/opname_posting", json={"is_paused": True}).raise_for_status()
        try:
            time.sleep(3)  # longer than the consumer believes what it saw last
            document = live.document(count())
            live.publish(document.message)
            time.sleep(2)
            assert live.shadow(document.shadow_id)["worker_status"] in ("PENDING", "PROCESSING")
        finally:
            airflow.patch("/dags/opname_posting", json={"is_paused": False}).raise_for_status()
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)


def test_post_works_without_airflow_and_the_broker(live: Live) -> None:
    document = live.document(count(), publish_status="PENDING")

    done = live.run("everest", "post", document.nomer_nota, "--json")

    answer = json.loads(done.stdout)
    assert answer | {"status": "success", "code": 200} == answer
    assert_posted_once(live, document)
    live.publish(document.message)
    until("the stale message to be gone", lambda: queue_is_empty(live))
    assert_posted_once(live, document)


def test_h23_a_document_of_a_closed_month_is_refused_end_to_end(live: Live) -> None:
    year = 1900 + int(time.time()) % 90
    with live.connection() as conn:
        builders.period(conn, f"{year}-01", "CLOSED")
    last = datetime(year, 1, 31, 12, 0, tzinfo=UTC)
    document = live.document(count(), diotorisasi_at=last, snapshot_at=last - timedelta(hours=1))

    live.publish(document.message)

    failed = live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    with live.connection() as conn, conn.cursor() as cursor:
        cursor.execute("DELETE FROM periode_akuntansi WHERE periode = %s", (f"{year}-01",))
        conn.commit()
    assert failed["error_code"] == 423
    assert live.postings(document.nomer_nota) == []
