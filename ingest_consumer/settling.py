"""Beside the publishing: once a minute the relay looks after the dead-letter queue, and takes settled letters out.

On a thread and on connections of its own, because nothing about dead letters may hold up a message: a long queue takes
long to read, and one that cannot be read (no right to it, no majority, a letter that AMQP libraries choke on) may cost
the connection each time. Then the letters stay, which is said, and rows are published all the same.
"""

from __future__ import annotations

import logging
import threading
import time

from ingest_consumer import broker, dead_letters, metrics, topology
from ingest_consumer.broker import BROKER_ERRORS
from ingest_consumer.database import Database, passes, said
from ingest_consumer.errors import IngestError
from ingest_consumer.pauses import Complaints
from ingest_consumer.settings import Settings
from ingest_consumer.vitals import Vitals

log = logging.getLogger(__name__)

TURN_S = 0.5
"""How long it sleeps before it looks whether it should stop, or whether this relay has become the active one."""
LEAST_S = 1.0
"""Between two looks, however often it is asked to look soon."""
KIND = "dead letters"
"""Of its complaints: not one of those that say that the relay cannot work."""


class Settler:
    """`run` has a thread of its own; `soon` is for any thread."""

    def __init__(self, settings: Settings, vitals: Vitals) -> None:
        self._settings = settings
        self._vitals = vitals
        self._database = Database(settings.mysql, settings.mysql_timeout)
        self._complaints = Complaints(log, "relay", vitals)
        self._due_at = 0.0

    def soon(self) -> None:
        """The broker may have lost what stood there: look before the minute is over."""
        self._due_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Looks at start, then every `check_every`, while this relay is the active one."""
        while not stop.is_set():
            if self._vitals.is_active and time.monotonic() >= self._due_at:
                self._due_at = time.monotonic() + self._settings.check_every.total_seconds()
                self.look(stop)
                stop.wait(LEAST_S)
            stop.wait(TURN_S)
        self._database.close()

    def look(self, stop: threading.Event) -> None:
        """Raises nothing: letters that stay do no harm."""
        try:
            taken, left = self._settle(stop)
        except Exception as error:
            if passes(error) or isinstance(error, (*BROKER_ERRORS, IngestError)):
                trouble = broker.said(error) if isinstance(error, BROKER_ERRORS) else said(error)
                words = f"dead letters cannot be looked after: {trouble}; they stay"
                self._complaints.say(KIND, words, logging.ERROR)
            else:
                log.exception("relay: OUR BUG in settling dead letters; they stay")
            self._database.close()
            return
        self._complaints.over(KIND)
        self._vitals.meter.count(metrics.SETTLED, taken)
        if left is not None:
            self._vitals.meter.tell({metrics.DEAD_LETTERS: {(name,): number for name, number in left.items()}})
        if taken:
            log.info("relay: took %s settled dead letters out", taken)

    def _settle(self, stop: threading.Event) -> tuple[int, dict[str, int] | None]:
        connection = broker.connect(self._settings.amqp_url, "everest relay, dead letters", self._settings.heartbeat)
        try:
            topology.ensure_dead_letters(connection)
            return dead_letters.settle(connection, self._database, wait_s=0, is_stopping=stop.is_set)
        finally:
            broker.close_quietly(connection)
