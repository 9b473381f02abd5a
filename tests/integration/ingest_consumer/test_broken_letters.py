"""Broken messages as rows beside the queue: what the pages show, and what becomes of a drop at every step."""

from __future__ import annotations

from contextlib import closing

import pytest

from ingest_consumer import broken_letters
from ingest_consumer.broken_letters import BrokenLetters
from tests.broken_messages import broken_bodies
from tests.integration.ingest_consumer.handling import DLQ, Settle, dead, drop, told
from tests.queue_rig import Rows, Vhost, until


def test_each_broken_message_is_a_row_once_and_stays_in_the_queue(vhost: Vhost, rows: Rows, settle: Settle) -> None:
    for body in (b"no json", b"no json", b"\xff\x00 {{<script>"):
        dead(vhost, body)
    for _ in range(2):
        assert settle() == (0, {"broken": 3, "failed": 0, "at_work": 0})
    assert told(rows) == [("no json", 2, 0, None), ("\\xff\x00 {{<script>", 1, 0, None)]
    assert [bool(reason) for (reason,) in told(rows, "reason")] == [True, True]
    assert told(rows, "origin")[0] == ("everest.jobs.dlx / job.process",)
    assert vhost.depth(DLQ) == 3


def test_every_kind_of_broken_message_has_a_row(vhost: Vhost, rows: Rows, settle: Settle) -> None:
    bodies = {body for body, _ in broken_bodies(rows.foreign(1, "SO-OTHER", worker_status="WAITING"))}
    for body in bodies:
        dead(vhost, body)
    settle()
    assert len(told(rows)) == len(bodies) == vhost.depth(DLQ)


def test_of_a_message_of_a_megabyte_the_beginning_is_kept(vhost: Vhost, rows: Rows, settle: Settle) -> None:
    dead(vhost, b"x" + "é".encode() * 524_288)
    settle()
    ((text, size),) = told(rows, "body, body_bytes")
    assert text == "x" + "é" * 499, "no half of a character"
    assert size == 1_048_577


def test_a_dropped_message_leaves_with_all_its_copies_and_the_same_later_is_a_new_one(
    vhost: Vhost, rows: Rows, settle: Settle
) -> None:
    for body in (b"bad", b"other", b"bad"):
        dead(vhost, body)
    settle()
    rows.do("UPDATE broken_letters SET dropped_by = 'finance', dropped_at = UTC_TIMESTAMP(6) WHERE body = 'bad'")
    assert settle() == (2, {"broken": 1, "failed": 0, "at_work": 0})
    assert told(rows) == [("bad", 2, 1, "finance"), ("other", 1, 0, None)]
    dead(vhost, b"bad")
    assert settle() == (0, {"broken": 2, "failed": 0, "at_work": 0})
    assert told(rows) == [("bad", 1, 0, None), ("other", 1, 0, None)]


def test_a_death_after_the_letter_is_out_leaves_a_drop_that_ends_at_the_next_look(
    vhost: Vhost, rows: Rows, settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(vhost, b"bad")
    settle()
    drop(rows)
    with monkeypatch.context() as patch:
        patch.setattr(BrokenLetters, "keep", _dies)
        with pytest.raises(SystemError):
            settle()
    assert vhost.depth(DLQ) == 0
    assert told(rows) == [("bad", 1, 0, "finance")]
    settle()
    assert told(rows) == [("bad", 1, 1, "finance")]


def test_a_death_before_the_rows_are_written_loses_no_letter(
    vhost: Vhost, rows: Rows, settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(vhost, b"bad")
    with monkeypatch.context() as patch:
        patch.setattr(BrokenLetters, "keep", _dies)
        with pytest.raises(SystemError):
            settle()
    assert (told(rows), vhost.depth(DLQ)) == ([], 1)
    settle()
    assert told(rows) == [("bad", 1, 0, None)]


def test_a_letter_whose_job_row_appeared_is_not_dropped(vhost: Vhost, rows: Rows, settle: Settle) -> None:
    late = rows.foreign(77, "SO-77")
    body = rows.body(late)
    rows.do("UPDATE rabbit_publish_shadow SET transaksi_id = 78 WHERE id = %s", late)
    dead(vhost, body)
    assert settle() == (0, {"broken": 1, "failed": 0, "at_work": 0})
    drop(rows)
    rows.do("UPDATE rabbit_publish_shadow SET transaksi_id = 77 WHERE id = %s", late)
    assert settle() == (0, {"broken": 0, "failed": 0, "at_work": 1})
    assert vhost.depth(DLQ) == 1
    assert told(rows, "gone_at IS NOT NULL") == [(1,)]


def test_what_the_command_line_takes_out_is_gone_on_the_pages(vhost: Vhost, rows: Rows, settle: Settle) -> None:
    dead(vhost, b"bad")
    settle()
    vhost.api("DELETE", f"queues/{vhost.name}/{DLQ}/contents")
    settle()
    assert told(rows) == [("bad", 1, 1, None)]
    rows.do("UPDATE broken_letters SET gone_at = gone_at - INTERVAL 91 DAY")
    settle()
    assert told(rows) == []


@pytest.mark.long
def test_a_thousand_and_more_have_rows_up_to_the_bound_and_all_are_counted(
    vhost: Vhost, rows: Rows, settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken_letters, "KEPT_MAX", 900)
    with closing(vhost.connect()) as connection:
        channel = connection.channel()
        for number in range(1000):
            channel.basic_publish("everest.jobs.dlx", "job.process", b"bad %d" % number)
    until(lambda: vhost.depth(DLQ) == 1000, "all of them in the queue")
    assert settle() == (0, {"broken": 1000, "failed": 0, "at_work": 0})
    assert told(rows, "COUNT(*), SUM(gone_at IS NULL)") == [(900, 900)]
    assert vhost.depth(DLQ) == 1000


def _dies(self: BrokenLetters) -> None:
    raise SystemError("killed here")
