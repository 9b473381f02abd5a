"""The consumer's workers: each one connection, one delivery at a time, until told to stop.

pika serves heartbeats only while its loop runs, so a worker never blocks for long: the callback stores the delivery,
and the loop alternates between the broker (`broker.serve`) and one short look at the delivery. An ack goes
to the channel the delivery came from; when that channel is gone so is the delivery, and it will come again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from ingest_consumer import broker, endpoints, logs, metrics, topology
from ingest_consumer.airflow_api import AirflowApi
from ingest_consumer.broker import BROKER_ERRORS
from ingest_consumer.dag_gate import DagGate
from ingest_consumer.database import Database, passes, said
from ingest_consumer.delivery import Delivery, Means
from ingest_consumer.errors import IngestError, TopologyError
from ingest_consumer.pauses import Backoff, Complaints
from ingest_consumer.rejection import Rejection
from ingest_consumer.settings import Settings
from ingest_consumer.shadow import JOBS_QUEUE
from ingest_consumer.starting import check_start
from ingest_consumer.verdict import Outcome, Verdict
from ingest_consumer.vitals import ACTIVE, Pulse, Vitals
from ingest_consumer.watch import Watch, Watched

log = logging.getLogger(__name__)

IDLE_LOOK_S = 0.2
"""How long an idle worker listens before it looks whether it should stop."""
BUG_TRIES = 3
"""An error of ours in handling a delivery is tried this often, then the delivery is dead-lettered, so that it never
stops the consumer."""
STOP_WITHIN_S = 15.0
PULSE_JOIN_S = 2.0


class _Resubscribe(Exception):
    """The broker cancelled our subscription or closed the channel; begin anew."""


class Worker:
    """One connection to the broker and one to MySQL; Airflow and the watch it shares with the other workers. `run`
    returns when `stop` is set."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        stop: threading.Event,
        api: AirflowApi,
        gate: DagGate,
        watch: Watch,
        vitals: Vitals,
    ) -> None:
        self._name = name
        self._settings = settings
        self._stop = stop
        self._watch = watch
        self._vitals = vitals
        self._complaints = Complaints(log, name, self._vitals)
        self._database = Database(settings.mysql, settings.mysql_timeout)
        self._api = api
        self._means = Means(self._database, api, gate, settings, self._complaints, time.monotonic)
        self._held: tuple[int, Delivery] | None = None
        self._rejection: Rejection | None = None
        self._watched: Watched | None = None
        self._bugs = 0
        self._cancelled = False
        self._subscription = ""
        self._database_backoff = Backoff(settings.retry_max)

    def run(self) -> None:
        backoff = Backoff(self._settings.retry_max)
        while not self._stop.is_set():
            self._vitals.turn(self._name)
            try:
                self._session(backoff)
            except _Resubscribe as reason:
                log.warning("%s: %s; subscribing again", self._name, reason)
                self._stop.wait(backoff.next_s())
            except BROKER_ERRORS as error:
                self._complaints.say("broker", f"broker: {broker.said(error)}; trying again")
                self._stop.wait(backoff.next_s())
            except TopologyError as error:
                self._complaints.say("topology", error.message, logging.ERROR)
                self._stop.wait(backoff.next_s())
            except Exception:  # a worker that dies silently is worse than one that begins anew
                self._vitals.meter.count(metrics.RETRIES, cause="bug")
                log.exception("%s: OUR BUG; beginning anew", self._name)
                self._stop.wait(backoff.next_s())
        self._database.close()

    def _session(self, backoff: Backoff) -> None:
        """One connection, from connect to close. What is held when it ends comes again from the broker."""
        settings = self._settings
        connection = broker.connect(settings.amqp_url, f"everest {self._name}", settings.heartbeat)
        try:
            topology.ensure(connection, settings.amqp_url, settings.management)
            channel = self._subscribe(connection)
            backoff.reset()
            self._complaints.over("broker")
            self._complaints.over("topology")
            checked_at = time.monotonic()
            while not self._stop.is_set():
                self._vitals.turn(self._name)
                broker.serve(connection, self._listen_s())
                if self._cancelled or not channel.is_open:
                    raise _Resubscribe("cancelled by the broker" if self._cancelled else "channel closed by the broker")
                self._look(connection, channel, Delivery.advance)
                self._watch_run(connection)
                if time.monotonic() - checked_at >= settings.check_every.total_seconds():
                    topology.ensure(connection, settings.amqp_url, settings.management)
                    checked_at = time.monotonic()
            self._wait_for_the_end(connection, channel)
            self._look(connection, channel, Delivery.last_look)
            if self._held is not None:
                log.info("%s: stopping; the delivery it holds goes back to the queue", self._name)
        finally:
            self._let_go()
            broker.close_quietly(connection)

    def _wait_for_the_end(self, connection: pika.BlockingConnection, channel: BlockingChannel) -> None:
        """Of the run at work, where the site wants that: then no message of a job we began goes back to the queue."""
        if not self._settings.stop_wait:
            return
        channel.basic_cancel(self._subscription)
        give_up_at = time.monotonic() + self._settings.stop_wait.total_seconds()
        while self._held is not None and self._held[1].has_a_run and time.monotonic() < give_up_at:
            self._vitals.turn(self._name)
            broker.serve(connection, self._listen_s())
            self._look(connection, channel, Delivery.advance)

    def _subscribe(self, connection: pika.BlockingConnection) -> BlockingChannel:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=1)
        self._cancelled = False

        def cancelled(_frame: Any) -> None:
            self._cancelled = True

        channel.add_on_cancel_callback(cancelled)
        self._subscription = channel.basic_consume(JOBS_QUEUE, self._receive)
        return channel

    def _receive(self, _channel: Any, method: Any, properties: pika.BasicProperties, body: bytes) -> None:
        headers = broker.headers_of(properties)
        self._held = (method.delivery_tag, Delivery(body, headers, bool(method.redelivered), self._means))
        self._rejection = Rejection(method.delivery_tag, body, method.exchange, method.routing_key, headers)
        self._vitals.meter.add(metrics.HELD, 1)
        self._bugs = 0

    def _listen_s(self) -> float:
        if self._held is None:
            return IDLE_LOOK_S
        # 0 would still read what has arrived; the bound keeps a stop signal and heartbeats from waiting long
        return min(self._held[1].wait_s, IDLE_LOOK_S)

    def _look(
        self,
        connection: pika.BlockingConnection,
        channel: BlockingChannel,
        look: Callable[[Delivery], Verdict | None],
    ) -> None:
        if self._held is None or (look is Delivery.advance and self._held[1].wait_s > 0):
            return
        tag, delivery = self._held
        verdict = self._ask(delivery, look)
        if verdict is not None:
            with logs.about(**delivery.ids):
                self._finish(connection, channel, tag, verdict)

    def _watch_run(self, connection: pika.BlockingConnection) -> None:
        """Once a run is triggered: the watch interrupts our listening when it is over."""
        if self._held is None or self._watched is not None:
            return
        delivery = self._held[1]
        run = delivery.waits_for
        if run is None:
            return

        def wake() -> None:
            with suppress(*BROKER_ERRORS):  # the connection is gone, and the delivery with it
                connection.add_callback_threadsafe(delivery.look_now)

        self._watched = self._watch.begin(*run, wake)

    def _ask(self, delivery: Delivery, look: Callable[[Delivery], Verdict | None]) -> Verdict | None:
        """The verdict, if there is one; trouble of the database or of our own making only costs a pause."""
        try:
            verdict = look(delivery)
        except Exception as error:
            delivery.doubt()
            if passes(error):
                self._complaints.say("database", f"database: {said(error)}; trying again")
                delivery.pause(self._database_backoff.next_s())
                return None
            self._bugs += 1
            self._vitals.meter.count(metrics.RETRIES, cause="bug")
            log.exception("%s: OUR BUG in handling a delivery (try %s of %s)", self._name, self._bugs, BUG_TRIES)
            if self._bugs < BUG_TRIES:
                delivery.pause(self._database_backoff.next_s())
                return None
            return Verdict(Outcome.REJECT, f"our bug: {type(error).__name__}: {error}")
        self._database_backoff.reset()
        self._complaints.over("database")
        return verdict

    def _finish(
        self, connection: pika.BlockingConnection, channel: BlockingChannel, tag: int, verdict: Verdict
    ) -> None:
        if verdict.outcome is Outcome.ACK:
            channel.basic_ack(tag)
            log.info("%s: acked: %s", self._name, verdict.why)
        elif verdict.outcome is Outcome.PUT_BACK:
            channel.basic_nack(tag, requeue=True)
            log.debug("%s: put back: %s", self._name, verdict.why)
        else:
            assert self._rejection is not None
            self._rejection.carry_out(connection, channel)
            log.warning("%s: dead-lettered: %s", self._name, verdict.why)
        self._let_go()
        self._count(verdict)
        if verdict.note and verdict.dag_id and verdict.dag_run_id:
            with suppress(IngestError):  # a courtesy to whoever looks at the run in Airflow; the row has it all
                self._api.set_note(verdict.dag_id, verdict.dag_run_id, verdict.note)

    def _let_go(self) -> None:
        if self._held is not None:
            self._vitals.meter.add(metrics.HELD, -1)
        if self._watched is not None:
            self._watch.end(self._watched)
        self._held = self._rejection = self._watched = None

    def _count(self, verdict: Verdict) -> None:
        meter = self._vitals.meter
        meter.count(metrics.DELIVERIES, outcome=verdict.how)
        for stage, seconds in verdict.stages.items():
            meter.observe(metrics.STAGE_SECONDS, seconds, stage=stage)


def consume(settings: Settings, stop: threading.Event) -> None:
    """Runs the workers until `stop` is set. Raises TopologyError at start."""
    vitals = Vitals(metrics.CONSUMER, settings.retry_max.total_seconds())
    port = endpoints.serve(settings.consumer_endpoint, vitals)
    check_start(settings, stop, vitals)
    assert settings.airflow is not None
    airflow = settings.airflow
    # one login for all workers, and one answer to whether a DAG is paused
    api = AirflowApi(airflow.url, airflow.user, airflow.password, settings.airflow_timeout)
    gate = DagGate(api)
    watch = Watch(Database(settings.mysql, settings.mysql_timeout, is_reader=True), settings.poll)
    names = [f"worker {number}" for number in range(1, settings.workers + 1)]
    threads = [
        threading.Thread(target=Worker(name, settings, stop, api, gate, watch, vitals).run, name=name, daemon=True)
        for name in names
    ]
    threading.Thread(target=watch.run, args=(stop,), name="watch", daemon=True).start()
    for thread in threads:
        thread.start()
    log.info("consuming %s with %s workers", JOBS_QUEUE, len(threads))
    vitals.know(
        state=ACTIVE,
        workers=len(threads),
        metrics_port=port,
        foreign_jobs="take" if settings.takes_foreign_jobs else "leave",
    )
    vitals.meter.set(metrics.WORKERS, len(threads))
    over = threading.Event()
    database = Database(settings.mysql, settings.mysql_timeout)
    pulse = threading.Thread(
        target=Pulse(vitals, database.transaction).run, args=(over,), name="heartbeat", daemon=True
    )
    pulse.start()
    stop.wait()
    give_up_at = time.monotonic() + settings.stop_wait.total_seconds() + STOP_WITHIN_S
    for thread in threads:
        thread.join(max(0.0, give_up_at - time.monotonic()))
    over.set()  # only now it has stopped: with a stop_wait it may have worked for long
    pulse.join(PULSE_JOIN_S)
    api.close()
