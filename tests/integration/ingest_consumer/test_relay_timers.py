"""Rows that are due at a time, clocks that were ahead, and jobs that somebody holds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ingest_consumer.relay import Relay
from ingest_consumer.settings import Settings
from tests.integration.ingest_consumer.handling import QUEUE, announce, is_published
from tests.queue_rig import Rows, Running, Vhost, until


def test_a_delay_that_comes_due_wakes_its_job_before_the_message_is_out(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = announce(rows, 6005)
    rows.end(shadow_id, "WAITING")

    running.relay(settings, amqp_url="amqp://guest:guest@127.0.0.1:1/x")  # a broker that is not there

    until(lambda: rows.get(shadow_id)["worker_status"] == "PENDING", "woken")
    assert rows.outbox()[0]["published_at"] is None


def test_a_timer_that_comes_due_between_the_look_and_the_publishing_is_left_for_the_next_round(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message would be acked as that of a job that waits, and the job would never wake."""
    shadow_id = announce(rows, 6030)
    rows.end(shadow_id, "WAITING")
    rounds: list[Relay] = []
    wake = Relay._wake

    def sees_nothing_the_first_time(relay: Relay) -> None:
        rounds.append(relay)
        if len(rounds) > 1:
            wake(relay)

    monkeypatch.setattr(Relay, "_wake", sees_nothing_the_first_time)
    running.relay(settings)

    until(lambda: is_published(rows, shadow_id), "published")
    assert rows.get(shadow_id)["worker_status"] == "PENDING"
    running.stop()
    assert len(rounds) > 1


def test_a_timer_that_an_answer_has_overtaken_wakes_nobody(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = announce(rows, 6006)
    rows.do(
        "UPDATE rabbit_publish_shadow SET dag_run_id = 'opname_posting__6006__next', n = 2 WHERE id = %s", shadow_id
    )
    rows.end(shadow_id, "WAITING")

    running.relay(settings)

    until(lambda: rows.outbox()[0]["published_at"], "published")
    assert rows.get(shadow_id)["worker_status"] == "WAITING"


AHEAD = "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(f"available_at = {AHEAD}, created_at = {AHEAD}", id="written by a clock that was ahead"),
        pytest.param(f"available_at = {AHEAD}, attempts = 3, last_error = 'no queue took it'", id="put off by it"),
    ],
)
@pytest.mark.parametrize("exchange", ["everest.jobs.x", "everest.jobs.dlx"])
def test_a_message_of_an_hour_that_is_still_to_come_goes_out_now(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, written: str, exchange: str
) -> None:
    announce(rows, 6050, exchange=exchange)
    rows.do(f"UPDATE outbox SET {written}")

    running.relay(settings)

    until(lambda: rows.outbox()[0]["published_at"], "published")


def test_a_delay_of_a_clock_that_was_ahead_lasts_as_long_as_it_was_meant_to(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    announce(rows, 6051)
    meant, other = announce(rows, 6052), announce(rows, 6053)
    rows.do(
        f"UPDATE outbox SET created_at = {AHEAD}, available_at = {AHEAD} + INTERVAL 10 MINUTE WHERE shadow_id = %s",
        meant,
    )

    running.relay(settings)

    until(lambda: is_published(rows, other), "another message")
    row = next(row for row in rows.outbox() if row["shadow_id"] == meant)
    assert row["published_at"] is None
    assert row["available_at"] - row["created_at"] == timedelta(minutes=10)
    assert rows.do("SELECT created_at <= UTC_TIMESTAMP(6) FROM outbox WHERE shadow_id = %s", meant) == ((1,),)


def test_a_job_that_somebody_holds_has_its_batch_published_once_and_its_mark_later(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, holder: Rows
) -> None:
    held, free = announce(rows, 6040), announce(rows, 6041)
    with holder.database.transaction() as conn:
        with conn.cursor() as cursor:
            cursor.execute("SELECT id FROM rabbit_publish_shadow WHERE id = %s FOR UPDATE", (held,))
        running.relay(settings)

        until(lambda: is_published(rows, free), "the other one is marked")
        assert not is_published(rows, held)
        assert all(row["published_at"] for row in rows.outbox())

    until(lambda: is_published(rows, held), "marked once it is free")
    assert vhost.depth(QUEUE) == 2
    assert [row["attempts"] for row in rows.outbox()] == [1, 1]


def test_a_timer_of_a_job_that_somebody_holds_keeps_no_other_message_back(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, holder: Rows
) -> None:
    held, free = announce(rows, 6042), announce(rows, 6043)
    rows.end(held, "WAITING")
    with holder.database.transaction() as conn:
        with conn.cursor() as cursor:
            cursor.execute("SELECT id FROM rabbit_publish_shadow WHERE id = %s FOR UPDATE", (held,))
        running.relay(settings)

        until(lambda: is_published(rows, free), "published")
        assert rows.get(held)["worker_status"] == "WAITING"

    until(lambda: is_published(rows, held), "woken and published once it is free")


def test_a_job_that_a_dead_relay_did_not_come_to_mark_is_marked_by_the_next_one(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = announce(rows, 6044)
    rows.do("UPDATE outbox SET published_at = UTC_TIMESTAMP(6)")

    running.relay(settings)

    until(lambda: is_published(rows, shadow_id), "marked")
    running.stop()
    assert vhost.depth(QUEUE) == 0, "and not sent again"
