"""The rows of a closed month, after everything that people and crashes do to its documents again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests import builders
from tests.acceptance.counting import DEAD_LETTER_QUEUE, assert_posted_once, count, queue_is_empty
from tests.acceptance.live import Live, until


def checksum(live: Live, month: str) -> str:
    """Over every column of every journal and stock-card row that is dated in the month."""
    found = [
        live.rows(f"SELECT * FROM {table} WHERE CAST(tanggal_wib AS CHAR) LIKE %s ORDER BY id", f"{month}-%")
        for table in ("jurnal", "kartu_stok")
    ]
    assert all(found), "a checksum over nothing proves nothing"
    return hashlib.sha256(json.dumps(found, default=str).encode()).hexdigest()


def move_a_letter(live: Live, shadow_id: int) -> None:
    """As the broker's own page moves a message: body and headers stay."""
    with live.channel() as channel:
        while True:
            method, properties, body = channel.basic_get(DEAD_LETTER_QUEUE)
            assert method is not None, "a dead letter is there"
            if json.loads(body).get("shadow_id") == shadow_id:
                channel.basic_publish("everest.jobs.x", "job.process", body, properties, mandatory=True)
                channel.basic_ack(method.delivery_tag)
                return


def clear(live: Live, dag_run_id: str, ended: str, only_failed: bool) -> None:
    body = {"dry_run": False, "dag_run_id": dag_run_id, "only_failed": only_failed, "reset_dag_runs": True}
    run = f"/dags/opname_posting/dagRuns/{dag_run_id}"
    with live.airflow() as airflow:
        until("Airflow to have ended the run", lambda: airflow.get(run).json()["state"] == ended)
        cleared = airflow.post("/dags/opname_posting/clearTaskInstances", json=body).raise_for_status().json()
        assert cleared["total_entries"] >= 1
        until("Airflow to have ended it again", lambda: airflow.get(run).json()["state"] == ended)


def test_a_closed_month_keeps_its_rows_whatever_is_done_to_its_documents_again(live: Live) -> None:
    moment = time.time_ns() // 1000
    inside = datetime(1990 + moment % 30, 1 + moment // 30 % 12, 15, 5, 0, tzinfo=UTC)
    month = f"{inside:%Y-%m}"
    when = {"diotorisasi_at": inside, "snapshot_at": inside - timedelta(hours=1)}
    done, refused = live.document(count(), **when), live.document(count(cost=None), **when)
    for document in (done, refused):
        live.publish(document.message)
    live.wait_for(done.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, done)
    live.wait_for(refused.shadow_id, "FAILED", "COMPLETED")
    until("its dead letter", lambda: live.dead_letters(refused.shadow_id))

    closed = live.run("everest", "period", "close", month, "--reason", "tutup buku")
    assert refused.nomer_nota in closed.stderr, "FAILED documents of the month are a hint"
    before = checksum(live, month)
    for document in (done, refused):  # what was posted says something else now, what was refused would post
        live.correct(document, count())

    def assert_untouched(what: str) -> None:
        assert checksum(live, month) == before, what
        assert (len(live.postings(done.nomer_nota)), live.postings(refused.nomer_nota)) == (1, []), what

    def fails_again(what: str, act: Callable[[], Any]) -> None:
        was = live.shadow(refused.shadow_id)["worker_at"]
        act()

        def look() -> bool:
            row = live.shadow(refused.shadow_id)
            return row["worker_status"] == "FAILED" and row["worker_at"] > was and row["error_code"] == 423

        until(f"423 after {what}", look)
        assert_untouched(what)

    def rerun_and_kill() -> None:
        live.run("everest", "rerun", refused.nomer_nota)
        live.wait_until_back("consumer", live.kill("consumer"))

    fails_again("a rerun", lambda: live.run("everest", "rerun", refused.nomer_nota))
    until("its dead letter", lambda: live.dead_letters(refused.shadow_id))
    replay = ("ingest_consumer", "dead-letters", "replay", refused.nomer_nota)
    # Its exit code is that of the older letter, which finds the document at work again.
    fails_again("a replay", lambda: live.run(*replay, check=False))
    until("its dead letter", lambda: live.dead_letters(refused.shadow_id))
    fails_again("a letter moved by hand", lambda: move_a_letter(live, refused.shadow_id))
    failed_run = live.shadow(refused.shadow_id)["dag_run_id"]
    fails_again("a clear in Airflow", lambda: clear(live, failed_run, "failed", only_failed=True))
    by_hand = ("everest", "post", refused.nomer_nota, "--json")
    fails_again("a post by hand", lambda: live.run(*by_hand, check=False))
    fails_again("a consumer killed in a rerun", rerun_and_kill)

    for document in (done, refused):
        for _ in range(3):
            live.publish(document.message)
    until("the old messages to be gone", lambda: queue_is_empty(live))
    assert_untouched("old messages")
    clear(live, live.shadow(done.shadow_id)["dag_run_id"], "success", only_failed=False)
    assert_untouched("a clear of the posted one")
    assert live.run("everest", "post", done.nomer_nota).returncode == 0
    assert live.run("everest", "rerun", done.nomer_nota, check=False).returncode == 3
    with live.connection() as conn:
        second = builders.shadow_row(conn, done.transaksi_id, done.nomer_nota)
    live.publish({"transaksi_id": done.transaksi_id, "shadow_id": second, "nota": done.nomer_nota})
    live.wait_for(second, "COMPLETED", "FAILED")
    assert_untouched("a second job of the posted one")
    answer = json.loads(live.run("everest", "reverse", done.nomer_nota, "--reason", "salah rak", "--json").stdout)
    live.wait_for(answer["shadow_id"], "COMPLETED", "FAILED")
    assert_untouched("a reversal, which posts into the present month")

    live.run("everest", "period", "open", month, "--reason", "koreksi")
    live.run("everest", "rerun", refused.nomer_nota)
    live.wait_for(refused.shadow_id, "COMPLETED")
    assert_posted_once(live, refused)
    assert checksum(live, month) != before, "nothing but the closed month had kept it out"
