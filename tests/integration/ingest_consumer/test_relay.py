"""The relay publishes what is due, once, in order, and loses none while the broker is away or does not take it."""

from __future__ import annotations

import json
import select
import signal
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from ingest_consumer import shadow
from ingest_consumer.settings import Settings
from tests.integration.ingest_consumer.handling import DLQ, QUEUE, Process, announce, is_published
from tests.queue_rig import Rows, Running, Vhost, until

DIE_BEFORE_THE_MARK = """
import os, signal
from ingest_consumer import __main__, relay
publish = relay._publish
def publish_and_die(*arguments):
    publish(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
relay._publish = publish_and_die
__main__.main()
"""


def test_a_due_row_is_published_persistently_and_marked_after_the_confirm(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = announce(rows, 6001)

    running.relay(settings)

    until(lambda: is_published(rows, shadow_id), "published")
    (row,) = rows.outbox()
    ((properties, body),) = vhost.read(QUEUE)
    assert json.loads(body) == rows.body(shadow_id)
    assert properties.delivery_mode == 2
    assert properties.content_type == "application/json"
    assert properties.message_id == f"outbox-{row['id']}"
    assert properties.type == "opname_posting"
    assert properties.timestamp is not None
    assert row["published_at"] is not None
    assert row["attempts"] == 1
    assert rows.get(shadow_id)["published_at"] is not None
    assert rows.get(shadow_id)["worker_status"] == "PENDING"


def test_rows_go_out_in_the_order_in_which_they_are_due_and_none_before_its_time(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    now = datetime.now(UTC)
    late = announce(rows, 6002, available_at=now + timedelta(hours=1))
    second = announce(rows, 6003, available_at=now - timedelta(minutes=1))
    first = announce(rows, 6004, available_at=now - timedelta(minutes=2))

    running.relay(settings)

    until(lambda: is_published(rows, first) and is_published(rows, second), "both published")
    assert [json.loads(body)["shadow_id"] for _, body in vhost.read(QUEUE)] == [first, second]
    assert not is_published(rows, late)


def test_more_rows_than_a_batch_are_all_published_once(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    ids = [announce(rows, 6100 + number) for number in range(25)]

    running.relay(settings, relay_batch=10)

    until(lambda: all(is_published(rows, one) for one in ids), "all published")
    assert [json.loads(body)["shadow_id"] for _, body in vhost.read(QUEUE)] == ids


def test_a_dead_letter_of_the_reconciler_goes_through_the_dead_letter_exchange_with_its_header(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = rows.ours(6007, worker_status="FAILED", error_code=503, publish_status="PENDING")
    with rows.database.transaction() as conn:
        shadow.enqueue(
            conn,
            shadow_id=shadow_id,
            workflow_id=None,
            body=json.dumps(rows.body(shadow_id)),
            exchange="everest.jobs.dlx",
            headers={"x-everest-dead": "run lost"},
        )

    running.relay(settings)

    until(lambda: vhost.has_queue(DLQ) and vhost.depth(DLQ) == 1, "in the dead-letter queue")
    ((properties, _),) = vhost.read(DLQ)
    assert properties.headers == {"x-everest-dead": "run lost"}
    assert rows.get(shadow_id)["publish_status"] == "PENDING"


def test_a_row_that_no_queue_takes_waits_without_holding_up_the_others(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    unroutable = announce(rows, 6008, routing_key="job.nobody")
    nowhere = announce(rows, 6009, exchange="no.such.exchange")
    good = announce(rows, 6010)

    running.relay(settings)

    until(lambda: is_published(rows, good), "the good one published")
    until(lambda: all(row["attempts"] >= 1 for row in rows.outbox()), "each was tried")
    bad = {row["shadow_id"]: row for row in rows.outbox() if row["shadow_id"] != good}
    assert "no queue took it" in bad[unroutable]["last_error"]
    assert "no.such.exchange" in bad[nowhere]["last_error"]
    for row in bad.values():
        assert row["published_at"] is None
        assert row["available_at"] > row["created_at"]
    assert not is_published(rows, unroutable)


def test_a_lost_binding_is_made_again_and_its_rows_go_out(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    running.relay(settings)
    first = announce(rows, 6011)
    until(lambda: is_published(rows, first), "published")
    vhost.api("DELETE", f"queues/{vhost.name}/{QUEUE}")

    second = announce(rows, 6012)

    until(lambda: is_published(rows, second), "published after the queue was made again")
    assert vhost.depth(QUEUE) == 1


def test_h35_a_broker_that_is_away_delays_rows_and_loses_none(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, proxy: Proxy
) -> None:
    """H35: rows are written while nobody can publish them, and go out once the broker is back."""
    running.relay(settings, amqp_url=proxy.url(settings.amqp_url))
    first = announce(rows, 6013)
    until(lambda: is_published(rows, first), "published")

    proxy.drop_all()
    proxy.refuse = True
    second = announce(rows, 6014)
    until(lambda: proxy.refused > 0, "the relay tried")
    assert not is_published(rows, second)
    proxy.refuse = False

    until(lambda: is_published(rows, second), "published once it was back")
    assert [json.loads(body)["shadow_id"] for _, body in vhost.read(QUEUE)] == [first, second]


def test_h35_a_broker_that_stops_answering_does_not_hang_the_relay(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, proxy: Proxy
) -> None:
    """H35: what a memory alarm looks like from outside. The heartbeat ends the wait for a confirm that never comes."""
    running.relay(settings, amqp_url=proxy.url(settings.amqp_url), heartbeat=2)
    first = announce(rows, 6015)
    until(lambda: is_published(rows, first), "published")

    proxy.silent = True
    second = announce(rows, 6016)
    until(lambda: proxy.opened > 1, "the relay gave the silent connection up and opened another")
    proxy.drop_all()
    proxy.silent = False

    until(lambda: is_published(rows, second), "published once it answered again")


def test_a_relay_killed_between_the_confirm_and_the_mark_publishes_again_which_is_harmless(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, process: Process
) -> None:
    shadow_id = announce(rows, 6017)
    victim = process("relay", code=DIE_BEFORE_THE_MARK)
    assert victim.wait(30) == -signal.SIGKILL
    assert not is_published(rows, shadow_id)

    running.relay(settings)

    until(lambda: is_published(rows, shadow_id), "published by the next relay")
    (_, first), (_, second) = vhost.read(QUEUE)
    assert first == second


def test_settled_letters_are_taken_out_by_the_relay_and_others_stay(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    vhost.declare()
    done = rows.ours(6022, worker_status="COMPLETED")
    cancelled = rows.ours(6023, worker_status="CANCELLED")
    failed = rows.ours(6024, worker_status="FAILED", error_code=422)
    for shadow_id in (done, failed, cancelled):
        vhost.publish(rows.body(shadow_id), exchange="everest.jobs.dlx")
    vhost.publish(b"broken", exchange="everest.jobs.dlx")

    running.relay(settings)

    until(lambda: vhost.depth(DLQ) == 2, "settled ones gone")
    running.stop()
    assert [body for _, body in vhost.read(DLQ)] == [json.dumps(rows.body(failed)).encode(), b"broken"]


class Proxy:
    """A TCP proxy before the broker: it can refuse, fall silent, or drop what it holds."""

    def __init__(self, host: str, port: int) -> None:
        self.refuse = self.silent = False
        self.opened = self.refused = 0
        self._target = (host, port)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def url(self, amqp_url: str) -> str:
        parts = urlsplit(amqp_url)
        login = f"{parts.username}:{parts.password}@" if parts.username else ""
        return parts._replace(netloc=f"{login}127.0.0.1:{self._listener.getsockname()[1]}").geturl()

    def drop_all(self) -> None:
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                one.close()

    def close(self) -> None:
        self._closed = True
        self._thread.join(5)
        self.drop_all()
        self._listener.close()

    def _run(self) -> None:
        while not self._closed:
            pairs = list(self._pairs)
            ends = {end: other for one, two in pairs for end, other in ((one, two), (two, one)) if end.fileno() >= 0}
            watched = [self._listener, *([] if self.silent else ends)]
            try:
                ready, _, _ = select.select(watched, [], [], 0.05)
            except (OSError, ValueError):  # dropped in between
                continue
            for end in ready:
                if end is self._listener:
                    self._accept()
                else:
                    self._forward(end, ends[end])

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self.refuse:
            self.refused += 1
            client.close()
            return
        self.opened += 1
        self._pairs.append((client, socket.create_connection(self._target)))

    def _forward(self, end: socket.socket, other: socket.socket) -> None:
        try:
            data = end.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for one in (end, other):
            one.close()
        self._pairs = [pair for pair in self._pairs if end not in pair]


@pytest.fixture
def proxy(settings: Settings) -> Iterator[Proxy]:
    parts = urlsplit(settings.amqp_url)
    between = Proxy(parts.hostname or "", parts.port or 5672)
    yield between
    between.close()
