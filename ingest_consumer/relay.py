"""The relay: the only publisher. It sends the outbox rows that are due; settling.py looks after the dead letters beside
it.

A named MySQL lock keeps one relay active and the others on standby; nothing rests on it, because each batch holds its
rows FOR UPDATE SKIP LOCKED while it publishes. A crash between the broker's confirm and our mark publishes twice,
which is harmless: both messages announce the same run. A broker that is down or blocked delays rows, never loses one.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPConnectionError, UnroutableError
from pika.spec import PERSISTENT_DELIVERY_MODE

from ingest_consumer import broker, endpoints, logs, metrics, topology
from ingest_consumer.broker import BROKER_ERRORS
from ingest_consumer.database import Connection, Database, passes, said
from ingest_consumer.errors import TopologyError
from ingest_consumer.json_text import object_in
from ingest_consumer.pauses import Backoff, Complaints
from ingest_consumer.published_marks import Marks, free_of
from ingest_consumer.settings import Settings
from ingest_consumer.settling import Settler
from ingest_consumer.shadow import DEAD_LETTER_EXCHANGE, JOBS_EXCHANGE, OPNAME_POSTING, queries
from ingest_consumer.vitals import ACTIVE, STANDBY, Pulse, Vitals

log = logging.getLogger(__name__)

STANDBY_LOOK_S = 1.0
HEARTBEAT_S_MAX = 20
"""Shorter than a worker's: while a silent broker is not yet given up, a batch of rows stays locked."""
ROW_RETRY_S_MAX = 60
PULSE_JOIN_S = 5.0
SETTLER_JOIN_S = 5.0
ERROR_MAX = 500
LOST_BROKER = (AMQPConnectionError, OSError)
"""The broker is gone. Any other error is the row's own: the broker does not take it, or it cannot be said in AMQP at
all. Then it waits its turn, and the others go on."""


class Relay:
    """One connection to the broker and one to MySQL, which also holds the lock; `run` returns when `stop` is set."""

    def __init__(self, settings: Settings, stop: threading.Event, vitals: Vitals | None = None) -> None:
        self._settings = settings
        self._stop = stop
        self._vitals = vitals or Vitals("relay")
        self._complaints = Complaints(log, "relay", self._vitals)
        self._database = Database(settings.mysql, settings.mysql_timeout)
        self._lock_name = self._database.lock_name("relay")
        self._has_lock = False
        self._connection: pika.BlockingConnection | None = None
        self._channel: BlockingChannel | None = None
        self._blocked = False
        self._broker_backoff = Backoff(settings.retry_max)
        self._broker_not_before = 0.0
        self._checked_at = 0.0
        self._marks = Marks()
        self._settler = Settler(settings, self._vitals)

    def run(self) -> None:
        settling = threading.Thread(target=self._settler.run, args=(self._stop,), name="dead letters", daemon=True)
        settling.start()
        backoff = Backoff(self._settings.retry_max)
        while not self._stop.is_set():
            self._vitals.turn()
            try:
                if not self._is_active():
                    self._stop.wait(STANDBY_LOOK_S)
                    continue
                sent = self.round()
                backoff.reset()
                self._complaints.over("database")
                if sent < self._settings.relay_batch:  # a full batch means more is due
                    self._stop.wait(self._settings.relay_poll.total_seconds())
            except Exception as error:
                if passes(error):
                    self._complaints.say("database", f"database: {said(error)}; trying again")
                else:
                    self._vitals.meter.count(metrics.RETRIES, cause="bug")
                    log.exception("relay: OUR BUG; beginning anew")
                self._database.close()
                self._stop.wait(backoff.next_s())
        self._drop_broker()
        self._database.close()
        settling.join(SETTLER_JOIN_S)

    def round(self) -> int:
        """Wakes and publishes; the number of rows published. Raises what the database raises."""
        self._wake()
        channel = self._ready_channel()
        sent = self._publish_due(channel) if channel is not None else 0
        self._marks.write(self._database)
        return sent

    def _is_active(self) -> bool:
        """Whether the lock is ours, looked at anew each time: it dies unseen with its connection."""
        with self._database.transaction() as conn:
            owned = self._has_lock and bool(queries.owns_lock(conn, name=self._lock_name))
            if not owned:
                owned = queries.get_lock(conn, name=self._lock_name, wait_seconds=0) == 1
                if owned:
                    seconds = int(self._settings.standby_after.total_seconds())
                    queries.end_when_silent(conn, seconds=seconds)
                    self._marks.look_back(conn)
        if owned != self._has_lock:
            log.info("relay: %s", "active" if owned else "on standby, another relay is active")
        self._vitals.know(state=ACTIVE if owned else STANDBY)
        if not owned:
            self._vitals.meter.forget()
        self._has_lock = owned
        return owned

    def _wake(self) -> None:
        """A delay or timeout that came due: its job is PENDING before its message can reach anybody."""
        with self._database.transaction() as conn:
            due = list(queries.due_of_waiting(conn, exchange=JOBS_EXCHANGE, batch=self._settings.relay_batch))
            for body, shadow_id, dag_run_id in due:
                # an answer that came first has announced another run: that timer is stale and wakes nobody
                # and one that somebody holds just now is woken in a later round: nobody else waits for that
                if _announces(body, dag_run_id) and free_of(conn, {shadow_id}):
                    queries.wake(conn, shadow_id=shadow_id, dag_run_id=dag_run_id)

    def _publish_due(self, channel: BlockingChannel) -> int:
        published: list[int] = []
        shadow_ids: list[int] = []
        enough = time.monotonic() + self._settings.standby_after.total_seconds() / 4
        with self._database.transaction() as conn:
            for row in _awake(conn, list(queries.take_due(conn, batch=self._settings.relay_batch))):
                if time.monotonic() > enough:
                    break  # a slow broker: mark what it took, before the database takes us for dead
                try:
                    if not channel.is_open:  # the row before cost us the channel
                        channel = self._open_channel()
                    with logs.about(**_ids(row)):
                        _publish(channel, row)
                        log.info("relay: published outbox row %s", row[0])
                except LOST_BROKER as error:
                    self._lose_broker(error)
                    break  # what was confirmed is marked; the rest is still due
                except Exception as error:
                    broker.close_quietly(channel)  # half of a message may be on it
                    self._set_back(conn, row, error)
                else:
                    self._count(row)
                    published.append(row[0])
                    if row[1] is not None and row[2] == JOBS_EXCHANGE:
                        shadow_ids.append(row[1])
            if published:
                queries.mark_published(conn, ids=tuple(published))
        self._marks.add(shadow_ids)
        return len(published)

    def _count(self, row: Any) -> None:
        self._vitals.meter.count(metrics.PUBLISHED, exchange=row[2])
        if row[2] == JOBS_EXCHANGE:
            self._vitals.meter.observe(metrics.STAGE_SECONDS, row[7], stage="submit_to_publish")

    def _set_back(self, conn: Connection, row: Any, error: Exception) -> None:
        """Back-off in the row itself; and the topology is looked at again, it is the likeliest cause."""
        self._vitals.meter.count(metrics.REFUSED)
        words = f"{type(error).__name__}: {error}"
        if isinstance(error, UnroutableError):
            words = f"no queue took it: exchange {row[2]}, routing key {row[3]}"
        seconds = min(2 ** min(row[6], 10), ROW_RETRY_S_MAX)
        queries.mark_unpublished(conn, outbox_id=row[0], error=words[:ERROR_MAX], seconds=seconds)
        self._complaints.say("unpublished", f"outbox row {row[0]}: {words}; trying again", logging.ERROR)
        self._checked_at = 0.0
        if row[2] == DEAD_LETTER_EXCHANGE:
            self._settler.soon()

    def _ready_channel(self) -> BlockingChannel | None:
        """A channel the broker listens on, the topology checked within the last minute; None while there is none."""
        now = time.monotonic()
        if now < self._broker_not_before:
            return None
        try:
            if self._connection is None:
                self._connect()
            assert self._connection is not None
            broker.serve(self._connection, 0)  # heartbeats, and whether the broker is blocked
            if self._blocked:
                self._complaints.say("blocked", "the broker is blocked (memory or disk alarm); rows wait in the outbox")
                return None
            self._complaints.over("blocked")
            if self._checked_at == 0.0 or now - self._checked_at >= self._settings.check_every.total_seconds():
                topology.ensure_jobs(self._connection, self._settings.amqp_url, self._settings.management)
                self._checked_at = now
                with self._database.transaction() as conn:
                    queries.due_as_meant(conn)
                    queries.due_again(conn, most_s=2 * ROW_RETRY_S_MAX)
            if self._channel is None or not self._channel.is_open:
                self._open_channel()
            self._broker_backoff.reset()
            self._complaints.over("broker")
            self._complaints.over("topology")
        except TopologyError as error:
            self._complaints.say("topology", error.message, logging.ERROR)
            self._broker_not_before = time.monotonic() + self._broker_backoff.next_s()
            return None
        except BROKER_ERRORS as error:
            self._lose_broker(error)
            return None
        return self._channel

    def _connect(self) -> None:
        heartbeat_s = min(self._settings.heartbeat, HEARTBEAT_S_MAX)
        self._blocked = False
        connection = broker.connect(self._settings.amqp_url, "everest relay", heartbeat_s)
        connection.add_on_connection_blocked_callback(lambda _connection, _frame: self._set_blocked(True))
        connection.add_on_connection_unblocked_callback(lambda _connection, _frame: self._set_blocked(False))
        self._connection = connection
        self._checked_at = 0.0
        self._settler.soon()

    def _set_blocked(self, blocked: bool) -> None:
        self._blocked = blocked

    def _open_channel(self) -> BlockingChannel:
        assert self._connection is not None
        channel = self._connection.channel()
        channel.confirm_delivery()
        self._channel = channel
        return channel

    def _lose_broker(self, error: BaseException) -> None:
        self._complaints.say("broker", f"broker: {broker.said(error)}; rows wait in the outbox")
        self._drop_broker()
        self._broker_not_before = time.monotonic() + self._broker_backoff.next_s()

    def _drop_broker(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        broker.close_quietly(connection)


def _awake(conn: Connection, rows: list[Any]) -> list[Any]:
    """Without the timers that came due after `_wake` looked: their message would reach a job that still waits, be
    acked as such, and the job would never wake. The next round wakes them."""
    shadow_ids = tuple({row[1] for row in rows if row[1] is not None and row[2] == JOBS_EXCHANGE})
    waiting = dict(queries.waiting_runs(conn, shadow_ids=shadow_ids)) if shadow_ids else {}
    return [row for row in rows if not (row[2] == JOBS_EXCHANGE and _announces(row[4], waiting.get(row[1])))]


def _announces(body: str, dag_run_id: str | None) -> bool:
    return dag_run_id is not None and object_in(body).get("dag_run_id") == dag_run_id


def _publish(channel: BlockingChannel, row: Any) -> None:
    """Returns when the broker has confirmed it. Raises one of LOST_BROKER when there is none, anything else for a row
    that it does not take."""
    outbox_id, _shadow_id, exchange, routing_key, body, headers, _attempts, _waited_s = row
    properties = pika.BasicProperties(
        content_type="application/json",
        delivery_mode=PERSISTENT_DELIVERY_MODE,
        message_id=f"outbox-{outbox_id}",
        type=str(object_in(body).get("workflow") or OPNAME_POSTING),
        timestamp=int(time.time()),
        headers=object_in(headers) or None,
    )
    channel.basic_publish(exchange, routing_key, body.encode(), properties, mandatory=True)


def _ids(row: Any) -> dict[str, Any]:
    """Of the job whose message it is, for the log."""
    body = object_in(row[4])
    return {name: body.get(name) for name in logs.IDS} | ({} if row[1] is None else {"shadow_id": row[1]})


def relay(settings: Settings, stop: threading.Event) -> None:
    """Runs until `stop` is set, with a heartbeat beside it."""
    vitals = Vitals(metrics.RELAY, settings.retry_max.total_seconds())
    vitals.know(metrics_port=endpoints.serve(settings.relay_endpoint, vitals))
    database = Database(settings.mysql, settings.mysql_timeout)
    pulse = threading.Thread(
        target=Pulse(vitals, database.transaction).run, args=(stop,), name="heartbeat", daemon=True
    )
    pulse.start()
    Relay(settings, stop, vitals).run()
    pulse.join(PULSE_JOIN_S)
