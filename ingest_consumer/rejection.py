"""The end of a delivery as a dead letter: by the broker's own means where they are safe, else a letter of our own.

Two kinds of message must not be rejected. Where the header in which the broker tells of earlier deaths holds something
else, RabbitMQ's queue process dies over it (seen with 3.10), takes the message back and dies again, until it stays down
and with it every job. And a routing key that is no text cannot be bound, so the rejected message would find no queue.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from ingest_consumer import topology
from ingest_consumer.broker import close_quietly
from ingest_consumer.shadow import DEAD_LETTER_EXCHANGE, ROUTING_KEY

DEATHS = "x-death"
"""The broker's header. Its types are gone once a client has read it, so nobody can say whether the broker will."""
OUR_LETTER = "x-everest-dead"
PERSISTENT = 2


@dataclass(frozen=True)
class Rejection:
    """A delivery as far as its rejection needs it."""

    tag: int
    body: bytes
    routing_key: str | bytes
    headers: Mapping[Any, Any]

    def carry_out(self, connection: pika.BlockingConnection, channel: BlockingChannel) -> None:
        """Raises one of BROKER_ERRORS, or TopologyError; then the delivery comes again. A death between letter and ack
        leaves two letters, which are allowed."""
        if isinstance(self.routing_key, str) and DEATHS not in self.headers:
            topology.ensure_dead_letters(connection, self.routing_key)  # a rejection into nothing loses the message
            channel.basic_reject(self.tag, requeue=False)
            return
        topology.ensure_dead_letters(connection)
        self._write_letter(connection)
        channel.basic_ack(self.tag)

    def _write_letter(self, connection: pika.BlockingConnection) -> None:
        """On a channel of its own, confirmed."""
        properties = pika.BasicProperties(
            delivery_mode=PERSISTENT, timestamp=int(time.time()), headers={OUR_LETTER: True}
        )
        writer = connection.channel()
        try:
            writer.confirm_delivery()
            writer.basic_publish(DEAD_LETTER_EXCHANGE, ROUTING_KEY, self.body, properties, mandatory=True)
        finally:
            close_quietly(writer)
