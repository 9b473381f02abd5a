"""The relay: what it publishes, when, and what it leaves behind when something breaks in the middle."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ingest_consumer import shadow
from ingest_consumer.database import Database
from ingest_consumer.relay import Relay
from ingest_consumer.settings import Settings
from tests.private_servers import free_port
from tests.queue_rig import Rows, Running, Vhost, until

QUEUE, DLQ = "everest.jobs.q", "everest.jobs.failed.dlq"
Process = Callable[..., subprocess.Popen[str]]

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


def announce(rows: Rows, transaksi_id: int, **enqueued: Any) -> int:
    """A submit of our own: row, run and outbox row."""
    shadow_id = rows.ours(transaksi_id, f"SO-{transaksi_id}", publish_status="PENDING")
    body = json.dumps(rows.body(shadow_id))
    with rows.database.transaction() as conn:
        shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=rows.get(shadow_id)["workflow_id"], body=body, **enqueued)
    return shadow_id


def is_published(rows: Rows, shadow_id: int) -> bool:
    return bool(rows.get(shadow_id)["publish_status"] == "PUBLISHED")


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


@pytest.fixture
def holder(settings: Settings) -> Iterator[Rows]:
    """Somebody else with a transaction of their own, who can hold a row."""
    database = Database(settings.mysql, settings.mysql_timeout)
    yield Rows(database)
    database.close()


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


def test_of_two_relays_one_is_active_and_the_other_takes_over(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, process: Process
) -> None:
    first = process("relay")
    lock = f"everest.relay.{settings.mysql.schema}"
    holder = until(lambda: rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0], "the first is active")
    running.relay(settings)
    published = announce(rows, 6018)
    until(lambda: is_published(rows, published), "published")
    assert rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0] == holder
    assert vhost.depth(QUEUE) == 1

    first.kill()
    first.wait(30)

    later = announce(rows, 6019)
    until(lambda: is_published(rows, later), "published by the second")
    assert rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0] != holder


def roles(rows: Rows) -> dict[int, str]:
    """What each relay's heartbeat says, by pid."""
    beats = rows.do("SELECT instance, detail FROM process_heartbeats WHERE name = 'relay'")
    return {int(instance.rpartition(":")[2]): json.loads(detail)["state"] for instance, detail in beats}


def role_told(port: int) -> tuple[str, float]:
    """What its health says, and its metrics."""
    place = f"http://127.0.0.1:{port}"
    health = httpx.get(f"{place}/readyz").raise_for_status().json()
    (active,) = (line for line in httpx.get(f"{place}/metrics").text.splitlines() if line.startswith("everest_active"))
    return str(health["state"]), float(active.split()[1])


def test_which_relay_is_active_and_which_stands_by_is_told_and_changes_within_seconds_of_a_kill(
    vhost: Vhost, rows: Rows, process: Process
) -> None:
    ports = [free_port(), free_port()]
    first = process("relay", EVEREST_METRICS_PORT_RELAY=str(ports[0]))
    until(lambda: roles(rows).get(first.pid) == "active", "the first is active")
    second = process("relay", EVEREST_METRICS_PORT_RELAY=str(ports[1]))
    until(lambda: roles(rows).get(second.pid) == "standby", "the second stands by")
    assert [role_told(port) for port in ports] == [("active", 1.0), ("standby", 0.0)]

    first.kill()
    shadow_id = announce(rows, 6024)

    until(lambda: is_published(rows, shadow_id), "published by the one that stood by")
    until(lambda: roles(rows)[second.pid] == "active", "and that it is active is told")
    assert role_told(ports[1]) == ("active", 1.0)


def test_a_relay_that_falls_silent_loses_its_turn_and_does_no_harm_when_it_comes_back(
    vhost: Vhost, rows: Rows, process: Process
) -> None:
    """As when its machine vanishes: the connection stays open, and nobody hears of it."""
    first = process("relay", EVEREST_STANDBY_AFTER_S="2")
    until(lambda: roles(rows).get(first.pid) == "active", "the first is active")
    second = process("relay", EVEREST_STANDBY_AFTER_S="2")
    until(lambda: roles(rows).get(second.pid) == "standby", "the second stands by")

    first.send_signal(signal.SIGSTOP)
    shadow_id = announce(rows, 6025)
    until(lambda: is_published(rows, shadow_id), "published by the one that stood by")
    first.send_signal(signal.SIGCONT)

    later = announce(rows, 6026)
    until(lambda: is_published(rows, later), "published")
    until(lambda: roles(rows)[first.pid] == "standby", "the first has found out")
    assert vhost.depth(QUEUE) == 2


def test_a_relay_whose_database_connection_dies_looks_for_its_lock_again(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    running.relay(settings)
    lock = f"everest.relay.{settings.mysql.schema}"
    holder = until(lambda: rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0], "active")

    rows.do(f"KILL {int(holder)}")

    shadow_id = announce(rows, 6020)
    until(lambda: is_published(rows, shadow_id), "published")


def test_sigterm_ends_a_relay_with_code_0(rows: Rows, process: Process, vhost: Vhost) -> None:
    relay = process("relay")
    shadow_id = announce(rows, 6021)
    until(lambda: is_published(rows, shadow_id), "published")

    relay.send_signal(signal.SIGTERM)

    assert relay.wait(30) == 0


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
