"""Before the first delivery: a consumer waits for its broker, and does not begin on queues that are not ours."""

from __future__ import annotations

import logging
import threading

from ingest_consumer import broker, topology
from ingest_consumer.broker import BROKER_ERRORS
from ingest_consumer.pauses import Backoff, Complaints
from ingest_consumer.settings import Settings
from ingest_consumer.vitals import Vitals

log = logging.getLogger(__name__)


def check_start(settings: Settings, stop: threading.Event, vitals: Vitals | None = None) -> None:
    """Waits for the broker, then checks or declares the topology. Raises TopologyError: no worker could start."""
    complaints = Complaints(log, "consumer", vitals)
    backoff = Backoff(settings.retry_max)
    while not stop.is_set():
        try:
            connection = broker.connect(settings.amqp_url, "everest start-up check", settings.heartbeat)
            try:
                topology.ensure(connection, settings.amqp_url, settings.management)
                for risk in topology.risks(settings.amqp_url, settings.management):
                    log.warning("%s", risk)
                return
            finally:
                broker.close_quietly(connection)
        except BROKER_ERRORS as error:
            complaints.say("broker", f"broker: {broker.said(error)}; waiting for it")
            stop.wait(backoff.next_s())
