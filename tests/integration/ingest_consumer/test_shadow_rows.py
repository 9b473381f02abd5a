"""The transitions of the shadow row, with both drivers: each is a compare-and-set, and rerun is one primitive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from ingest_consumer import by_hand, shadow
from ingest_consumer.database import Database
from ingest_consumer.errors import RerunRefused
from tests.queue_rig import Rows


@pytest.fixture
def rows(database: MysqlUrl) -> Iterator[Rows]:
    opened = Database(database, timedelta(seconds=10))
    yield Rows(opened)
    opened.close()


@pytest.fixture(params=["PyMySQL", "mysqlclient"])
def conn(request: pytest.FixtureRequest, database: MysqlUrl, rows: Rows) -> Iterator[Any]:
    """The consumer's driver, and the one that everest calls the same functions with."""
    if request.param == "mysqlclient":
        opened = store.connect(database)
        yield opened
        opened.close()
        return
    with Database(rows.database._url, timedelta(seconds=10)).transaction() as opened:
        yield opened
        opened.rollback()
    opened.close()


def run_of(rows: Rows, shadow_id: int) -> dict[str, Any]:
    columns = ("status", "n", "dag_run_id", "carrier_shadow_id", "recovered", "error_code", "error", "finished_at")
    (found,) = rows.do(
        f"SELECT {', '.join(columns)} FROM workflow_runs WHERE id = %s", rows.get(shadow_id)["workflow_id"]
    )
    return dict(zip(columns, found, strict=True))


def test_a_claim_is_won_once(conn: Any, rows: Rows) -> None:
    shadow_id = rows.foreign(7001)
    run_id = shadow.dag_run_id("opname_posting", 7001, None, shadow_id, 1)

    assert shadow.claim(conn, shadow_id, None, "opname_posting", run_id, 1)
    assert not shadow.claim(conn, shadow_id, None, "opname_posting", run_id, 1)
    conn.commit()

    row = shadow.get(conn, shadow_id)
    assert row is not None
    assert (row.worker_status, row.dag_id, row.dag_run_id, row.n, row.attempts) == (
        "PROCESSING",
        "opname_posting",
        run_id,
        1,
        1,
    )
    assert row.worker_at is not None


def test_a_claim_of_another_run_than_the_announced_one_is_lost(conn: Any, rows: Rows) -> None:
    shadow_id = rows.ours(7002, n=2)
    assert not shadow.claim(conn, shadow_id, None, "opname_posting", "another", 1)
    assert not shadow.claim(conn, shadow_id, "another", "opname_posting", "another", 1)


def test_the_right_to_a_dead_letter_is_won_once_and_only_for_the_run_that_failed(conn: Any, rows: Rows) -> None:
    shadow_id = rows.ours(7003, worker_status="FAILED", error_code=422)
    run_id = rows.get(shadow_id)["dag_run_id"]

    assert not shadow.mark_dead_lettered(conn, shadow_id, "another")
    assert shadow.mark_dead_lettered(conn, shadow_id, run_id)
    assert not shadow.mark_dead_lettered(conn, shadow_id, run_id)


def test_only_a_run_still_at_work_can_be_handed_over(conn: Any, rows: Rows) -> None:
    at_work = rows.ours(7004, worker_status="PROCESSING")
    ended = rows.ours(7005, worker_status="FAILED")

    assert shadow.hand_over(conn, at_work, rows.get(at_work)["dag_run_id"], "the body")
    assert not shadow.hand_over(conn, at_work, "another", "the body")
    assert not shadow.hand_over(conn, ended, rows.get(ended)["dag_run_id"], "the body")


def test_postponing_twice_leaves_one_message_and_the_row_as_it_is(conn: Any, rows: Rows) -> None:
    shadow_id = rows.ours(7006)
    before, body = rows.get(shadow_id), json.dumps(rows.body(shadow_id))

    shadow.postpone(conn, body, shadow_id, 30)
    shadow.postpone(conn, body, shadow_id, 30)
    conn.commit()

    (message,) = rows.outbox()
    assert (message["shadow_id"], message["workflow_id"], message["body"]) == (shadow_id, before["workflow_id"], body)
    assert (message["exchange"], message["routing_key"]) == ("everest.jobs.x", "job.process")
    assert rows.get(shadow_id) == before


def test_a_message_that_is_postponed_for_a_week_is_one_row(conn: Any, rows: Rows) -> None:
    shadow_id = rows.ours(7008)
    body, other = json.dumps(rows.body(shadow_id)), json.dumps(rows.body(shadow_id, n=2))
    shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=None, body=other)
    for _ in range(5):
        shadow.postpone(conn, body, shadow_id, 30)
        conn.commit()
        rows.do("UPDATE outbox SET published_at = UTC_TIMESTAMP(6)")
    shadow.postpone(conn, body, shadow_id, 30)
    conn.commit()

    assert [(row["body"], row["published_at"] is None) for row in rows.outbox()] == [(other, False), (body, True)]


def test_a_message_that_comes_back_before_its_row_is_marked_as_published_is_postponed_and_not_lost(
    conn: Any, rows: Rows
) -> None:
    """The relay marks a batch after the last of its rows; the consumer may have the first one by then."""
    shadow_id = rows.ours(7007)
    body = json.dumps(rows.body(shadow_id))
    shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=None, body=body)
    conn.commit()
    with rows.database.transaction() as relay:
        ((outbox_id, *_),) = shadow.queries.take_due(relay, batch=10)

        shadow.postpone(conn, body, shadow_id, 30)
        conn.commit()

        shadow.queries.mark_published(relay, ids=(outbox_id,))

    assert [row["published_at"] is None for row in rows.outbox()] == [False, True]


def test_an_instant_in_another_zone_is_written_as_utc(conn: Any, rows: Rows) -> None:
    wib = timezone(timedelta(hours=7))
    shadow.enqueue(conn, shadow_id=1, workflow_id=None, body="{}", available_at=datetime(2026, 2, 1, 0, 30, tzinfo=wib))
    shadow.enqueue(conn, shadow_id=1, workflow_id=None, body="{}", available_at=datetime(2026, 2, 1, 0, 30, tzinfo=UTC))
    conn.commit()

    assert [row["available_at"] for row in rows.outbox()] == [
        datetime(2026, 1, 31, 17, 30),
        datetime(2026, 2, 1, 0, 30),
    ]


def test_a_rerun_announces_the_next_run_everywhere_in_one_transaction(conn: Any, rows: Rows) -> None:
    shadow_id = rows.ours(
        7007,
        n=2,
        run_status="failed",
        worker_status="FAILED",
        error="stok kurang",
        error_code=422,
        response='{"message": "x"}',
        dead_lettered_at="2026-01-01",
        handed_over_at="2026-01-01",
        handed_over_body="old",
        requeued=2,
    )
    rows.do("UPDATE workflow_runs SET recovered = 3, error_code = 422, error = '{}', finished_at = UTC_TIMESTAMP(6)")

    run_id = by_hand.rerun(conn, shadow_id, "budi", "sudah diperbaiki")

    assert rows.get(shadow_id)["worker_status"] == "FAILED"  # nobody sees it before the caller commits
    conn.commit()
    assert run_id == f"opname_posting__7007__{shadow_id}__3"
    row = rows.get(shadow_id)
    assert (row["worker_status"], row["n"], row["dag_run_id"]) == ("PENDING", 3, run_id)
    for cleared in ("error", "error_code", "response", "dead_lettered_at", "handed_over_at", "handed_over_body"):
        assert row[cleared] is None
    assert row["requeued"] == 0
    assert run_of(rows, shadow_id) == {
        "status": "running",
        "n": 3,
        "dag_run_id": run_id,
        "carrier_shadow_id": shadow_id,
        "recovered": 0,
        "error_code": None,
        "error": None,
        "finished_at": None,
    }
    (message,) = rows.outbox()
    assert json.loads(message["body"]) == rows.body(shadow_id)
    ((actor, action, reason, before),) = rows.do("SELECT actor, action, reason, before_value FROM audit_log")
    assert (actor, action, reason) == ("budi", "rerun", "sudah diperbaiki")
    assert json.loads(before)["error"] == "stok kurang"
    assert rows.do("SELECT event, n FROM workflow_events") == (("rerun", 3),)


def test_a_rerun_makes_the_row_the_carrier_and_the_documents_other_rows_wait(conn: Any, rows: Rows) -> None:
    first = rows.ours(7008, run_status="failed", worker_status="FAILED", error_code=422)
    run = rows.get(first)
    second = rows.foreign(7008, workflow_id=run["workflow_id"], worker_status="FAILED", error_code=422, n=1)
    old = rows.foreign(7008, workflow_id=run["workflow_id"], worker_status="CANCELLED")

    run_id = by_hand.rerun(conn, second, "budi")
    conn.commit()

    assert run_of(rows, second)["carrier_shadow_id"] == second
    assert [rows.get(one)["worker_status"] for one in (first, second, old)] == ["WAITING", "PENDING", "CANCELLED"]
    assert rows.get(first)["dag_run_id"] == run_id


def test_a_row_without_a_run_can_be_run_again_too(conn: Any, rows: Rows) -> None:
    shadow_id = rows.foreign(7009, worker_status="FAILED", n=1, dag_run_id="opname_posting__7009__x__1")

    assert by_hand.rerun(conn, shadow_id, "budi") == f"opname_posting__7009__{shadow_id}__2"
    conn.commit()

    (message,) = rows.outbox()
    body = json.loads(message["body"])
    assert (body["n"], body["transaksi_id"], body["workflow"]) == (2, 7009, "opname_posting")


@pytest.mark.parametrize("status", ["PENDING", "PROCESSING", "WAITING", "COMPLETED", "CANCELLED"])
def test_only_a_failed_row_can_be_run_again(conn: Any, rows: Rows, status: str) -> None:
    shadow_id = rows.ours(7010, worker_status=status)
    before = rows.get(shadow_id)

    with pytest.raises(RerunRefused, match=status) as refusal:
        by_hand.rerun(conn, shadow_id, "budi")
    conn.rollback()

    assert refusal.value.status == status
    assert rows.get(shadow_id) == before


def test_a_compensated_or_unfailed_run_and_a_missing_row_are_refused(conn: Any, rows: Rows) -> None:
    compensated = rows.ours(7011, run_status="failed", worker_status="FAILED")
    rows.do("UPDATE workflow_runs SET compensation = 'done'")
    running = rows.ours(7012, run_status="running", worker_status="FAILED")

    for shadow_id, words in ((compensated, "compensated"), (running, "running"), (999_999, "no job #999999")):
        with pytest.raises(RerunRefused, match=words):
            by_hand.rerun(conn, shadow_id, "budi")
        conn.rollback()
    assert rows.outbox() == []


def test_two_reruns_at_once_start_one_run(database: MysqlUrl, rows: Rows) -> None:
    """Two sessions: the second waits for the run row, then finds the document at work."""
    import threading

    shadow_id = rows.ours(7013, run_status="failed", worker_status="FAILED")
    first, second = store.connect(database), store.connect(database)
    refusals: list[RerunRefused] = []

    def run_again() -> None:
        try:
            by_hand.rerun(second, shadow_id, "sari")
        except RerunRefused as refusal:
            refusals.append(refusal)
        second.rollback()

    by_hand.rerun(first, shadow_id, "budi")
    waiter = threading.Thread(target=run_again)
    waiter.start()
    first.commit()
    waiter.join(20)
    first.close()
    second.close()

    assert [refusal.status for refusal in refusals] == ["PENDING"]
    assert len(rows.outbox()) == 1


def test_a_dropped_document_is_cancelled_with_499_and_keeps_what_was_wrong(conn: Any, rows: Rows) -> None:
    shadow_id = rows.ours(
        7014,
        run_status="failed",
        worker_status="FAILED",
        error="baris 3: harga kosong",
        error_code=422,
        response='{"errors": [{"baris": 3}]}',
    )
    follower = rows.foreign(7014, workflow_id=rows.get(shadow_id)["workflow_id"], worker_status="FAILED")

    assert by_hand.cancel_dropped(conn, shadow_id, "budi", "salah gudang")
    conn.commit()

    row = rows.get(shadow_id)
    response = json.loads(row["response"])
    assert (row["worker_status"], row["error_code"], response["code"]) == ("CANCELLED", 499, 499)
    assert response["errors"] == [{"baris": 3}]
    assert "salah gudang" in row["error"]
    assert "harga kosong" in row["error"]
    assert rows.get(follower)["worker_status"] == "CANCELLED"
    assert run_of(rows, shadow_id)["status"] == "cancelled"
    assert not by_hand.cancel_dropped(conn, shadow_id, "budi", "lagi")
    assert rows.do("SELECT action FROM audit_log") == (("drop",),)
