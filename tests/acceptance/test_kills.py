"""kill -9 of every process while documents flow: each posted exactly once, and nothing for anybody to do by hand."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.counting import assert_posted_once, count, open_ones
from tests.acceptance.live import Live, until
from tests.builders import Document

DOCUMENTS = 40
KILLED_IN_TURN = (
    "consumer",
    "relay",
    "reconciler",
    "airflow-dag-processor",
    "airflow-scheduler",
    "mariadb",
    "rabbitmq",
    "airflow-api-server",
    "postgresql",
)


def test_h34_forty_documents_outlive_the_death_of_every_process(live: Live) -> None:
    documents = [live.document(count()) for _ in range(DOCUMENTS)]
    letters_before = {letter["letter"] for letter in live.dead_letters()}
    waiting = iter(documents)
    for document in [next(waiting) for _ in range(10)]:
        live.publish(document.message)

    for number, program in enumerate(KILLED_IN_TURN):
        # A database that was just killed runs before it answers, so this looks until it does.
        until("documents on their way when the next process dies", lambda: open_ones(live, documents))
        pid = live.kill(program)
        live.wait_until_back(program, pid)
        later = [document for _, document in zip(range(4 if number < 6 else 2), waiting, strict=False)]
        for document in later:
            until("a broker that takes the message", lambda d=document: live.publish(d.message) or True)
    for document in waiting:
        live.publish(document.message)

    until("all to be completed", lambda: not open_ones(live, documents), every=1, patience=480)
    for document in documents:
        assert_posted_once(live, document)
    assert live.books_agree([document.nomer_nota for document in documents])
    assert {letter["letter"] for letter in live.dead_letters()} <= letters_before


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        pytest.param("%FROM gudang WHERE gudang_kode IN%FOR UPDATE%", "COMPLETED", id="in the posting"),
        pytest.param("%FROM so_headers_staging%FOR UPDATE%", "clean_duplicate_notas", id="in the variance"),
    ],
)
@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_h19_a_task_process_that_is_killed_posts_once(live: Live, statement: str, reached: str, moment: str) -> None:
    """A lock of the test holds the task inside its transaction; there it dies, or right behind its commit."""
    document = live.document(count(), gudang_kode=f"GD-KILL-{time.time_ns()}")
    with live.connection() as conn, conn.cursor() as cursor:
        if reached == "COMPLETED":
            cursor.execute(
                "SELECT gudang_kode FROM gudang WHERE gudang_kode ="
                " (SELECT gudang_kode FROM so_headers_staging WHERE id = %s) FOR UPDATE",
                (document.header_id,),
            )
        else:
            cursor.execute("SELECT id FROM so_headers_staging WHERE id = %s FOR UPDATE", (document.header_id,))
        live.publish(document.message)
        pid = live.task_process(statement)
        assert b"ingest_consumer" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        if moment == "before the commit":
            os.kill(pid, signal.SIGKILL)
            conn.rollback()
        else:
            conn.rollback()
            until("its commit", lambda: _has_committed(live, document, reached), every=0.002)
            _kill_if_there(pid)

    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
    assert live.dead_letters(document.shadow_id) == []


def _has_committed(live: Live, document: Document, reached: str) -> bool:
    row = live.shadow(document.shadow_id)
    return reached in (row["worker_status"], row["current_step"]) or row["worker_status"] == "COMPLETED"


def _kill_if_there(pid: int) -> None:
    with suppress(ProcessLookupError):  # it was quicker; the outcome must be the same
        os.kill(pid, signal.SIGKILL)


def test_h04_a_consumer_killed_right_after_processing_is_written_loses_nothing(live: Live) -> None:
    document = live.document(count())
    live.publish(document.message)
    until("PROCESSING", lambda: live.shadow(document.shadow_id)["worker_status"] != "PENDING", every=0.005)

    pid = live.kill("consumer")

    live.wait_until_back("consumer", pid)
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)


def test_a_document_that_fails_while_its_consumer_dies_still_gets_its_dead_letter(live: Live) -> None:
    """Between FAILED and the rejection: the redelivery or the reconciler owes the letter."""
    document = live.document(count(cost=None))
    live.publish(document.message)
    until("FAILED", lambda: live.shadow(document.shadow_id)["worker_status"] == "FAILED", every=0.002)

    pid = live.kill("consumer")

    live.wait_until_back("consumer", pid)
    assert until("its dead letter", lambda: live.dead_letters(document.shadow_id), every=1)
