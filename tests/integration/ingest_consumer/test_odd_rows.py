"""Rows that other programs and people have written in their own way: a status in another spelling, a word that is none
of ours, columns that are empty. Nothing of it is acked in silence, and nobody else's message waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from ingest_consumer import by_hand, dead_letters
from ingest_consumer.dead_letters import Standing
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import rows_end
from tests.queue_rig import Rows, Running, Vhost, until

STATUSES = "'PENDING', 'PROCESSING', 'WAITING', 'FAILED', 'COMPLETED', 'CANCELLED'"


@contextmanager
def any_status(rows: Rows) -> Iterator[None]:
    """As on a large table that was adopted without our CHECK."""
    rows.do("ALTER TABLE rabbit_publish_shadow DROP CONSTRAINT ck_shadow_worker_status")
    try:
        yield
    finally:
        rows.do("DELETE FROM rabbit_publish_shadow")
        rows.do(
            "ALTER TABLE rabbit_publish_shadow"
            f" ADD CONSTRAINT ck_shadow_worker_status CHECK (worker_status IN ({STATUSES}))"
        )


def letters(vhost: Vhost, rows: Rows) -> list[tuple[Standing, str]]:
    with closing(vhost.connect()) as connection, dead_letters.opened(connection, rows.database, 5) as box:
        assert box is not None
        return [(letter.standing, letter.reason) for letter in box.letters]


def test_a_job_whose_status_is_spelled_in_another_case_is_done_like_any_other(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    """The CHECK of the column compares without capitals, so such words stand there."""
    vhost.declare()
    foreign, ours = rows.foreign(3001, worker_status="pending"), rows.ours(3002, worker_status="Pending")
    attached = rows.ours(3003, worker_status="processing")
    failed = rows.ours(3004, worker_status="Failed", error_code=422, error="stok kurang")
    done = rows.ours(3005, worker_status="completed")
    for shadow_id in (foreign, ours, attached, failed, done):
        vhost.publish(rows.body(shadow_id))

    running.consumer(settings)

    (letter,) = vhost.finished()
    assert f'"shadow_id": {failed}'.encode() in letter
    for shadow_id in (foreign, ours, attached, done):
        assert rows.get(shadow_id)["worker_status"] == "COMPLETED"
    assert len(posts.runs) == 3
    assert (rows.get(failed)["worker_status"], rows.get(failed)["dead_lettered_at"] is None) == ("FAILED", False)


@pytest.mark.parametrize(("word", "is_letter"), [("Failed", True), ("completed", False)])
@pytest.mark.long
def test_a_run_that_a_program_ends_in_its_own_spelling_has_ended_as_it_means(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, word: str, is_letter: bool
) -> None:
    shadow_id = rows.ours(3006)
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, shadow_id, word, "stok kurang", 422)
    vhost.declare()
    vhost.publish(rows.body(shadow_id))

    running.consumer(settings)

    assert len(vhost.finished()) == is_letter
    assert rows.get(shadow_id)["worker_status"] == word.upper()


def test_a_job_whose_status_is_a_word_of_nobody_is_a_letter_that_says_so(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    words = ["DONE", "", "PENDING?", "SELESAI", "PÉNDING\u00a0"]
    vhost.declare()
    with any_status(rows):
        odd = [rows.foreign(3010 + number, worker_status=word) for number, word in enumerate(words)]
        spaced = rows.foreign(3020, worker_status=" pending ")
        for shadow_id in (*odd, spaced):
            vhost.publish(rows.body(shadow_id))

        running.consumer(settings)

        until(lambda: rows.get(spaced)["worker_status"] == "COMPLETED", "what is behind them")
        assert [rows.get(one)["worker_status"] for one in odd] == words, "nobody guesses what they mean"
        told = letters(vhost, rows)
        assert [standing for standing, _ in told] == [Standing.BROKEN] * len(words)
        for (_, reason), word in zip(told, words, strict=True):
            assert f"has the status {word!a}, which is none of ours" in reason
        running.stop()


@pytest.mark.long
def test_a_run_whose_row_comes_to_a_word_of_nobody_is_a_letter(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    vhost.declare()
    with any_status(rows):
        shadow_id = rows.ours(3021)
        airflow.on_trigger = lambda run_id, conf: rows_end(rows, shadow_id, "DONE")
        vhost.publish(rows.body(shadow_id))

        running.consumer(settings)

        assert len(vhost.finished()) == 1
        running.stop()


def test_a_row_spelled_by_hand_is_run_again_and_dropped_like_any_other(rows: Rows) -> None:
    with_a_run = rows.ours(3030, run_status="failed", worker_status="failed", error_code=422)
    without = rows.foreign(3031, worker_status="Failed", error_code=422)
    dropped = rows.foreign(3032, worker_status="fAILED", error_code=422)
    with rows.database.transaction() as conn:
        for shadow_id in (with_a_run, without):
            by_hand.rerun(conn, shadow_id, "dewi")
        assert by_hand.cancel_dropped(conn, dropped, "dewi", "dobel")

    ends = [rows.get(one)["worker_status"] for one in (with_a_run, without, dropped)]
    assert ends == ["PENDING", "PENDING", "CANCELLED"]


def test_a_message_of_a_later_run_of_a_row_that_never_had_one_is_a_stale_duplicate(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    """The row went back in time, the message did not. A row without a run stands at its first one."""
    vhost.declare()
    shadow_id = rows.foreign(3040)
    before = rows.get(shadow_id)
    vhost.publish(rows.body(shadow_id, n=2))
    vhost.publish(rows.body(shadow_id, dag_run_id=f"opname_posting__3040__{shadow_id}__9"))

    running.consumer(settings)

    assert vhost.finished() == []
    assert (rows.get(shadow_id), airflow.runs) == (before, {})


@pytest.mark.long
def test_odd_columns_of_a_foreign_row_stop_nobody(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow
) -> None:
    """Each is either posted or a letter; none of them is taken for another document's, and none stops a worker."""
    vhost.declare()
    cases: list[dict[str, Any]] = [
        {"nomer_nota": None},
        {"nomer_nota": "\U0001f600 nota\n'; DROP TABLE outbox; --"},
        {"payload": "not json"},
        {"response": '"a text"', "error": "x" * 60_000},
        {"n": 0},
        {"attempts": 2_147_483_647},
        {"created_at": "9999-12-31 23:59:59", "worker_at": "1000-01-01"},
        {"workflow_id": 999_999_999},
        {"dag_run_id": "", "n": 1},
        {"dag_id": "../../x?y#z"},
    ]
    found = [rows.foreign(3050 + number, **columns) for number, columns in enumerate(cases)]
    posts.dags["../../x?y#z"] = None
    for shadow_id in found:
        row = rows.get(shadow_id)
        vhost.publish({"transaksi_id": row["transaksi_id"], "shadow_id": shadow_id})

    running.consumer(settings)

    dead = vhost.finished()
    assert running.are_alive()
    ends = [rows.get(one)["worker_status"] for one in found]
    told = [any(f'"shadow_id": {one}'.encode() in body for body in dead) for one in found]
    waits = {row["shadow_id"] for row in rows.outbox()}
    assert all(end == "COMPLETED" or letter or one in waits for end, letter, one in zip(ends, told, found, strict=True))
