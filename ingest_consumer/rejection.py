"""The end of a delivery as a dead letter: by the broker's own means where they are safe, else a letter of our own.

Two kinds of message must not be rejected. Where the header in which the broker tells of earlier deaths holds something
else, RabbitMQ's queue process dies over it (seen with 3.10), takes the message back and dies again, until it stays down
and with it every job. And a rejected message keeps its routing key: under another one than those that are bound for
good (topology.py) it would find no queue and be gone. A binding for each key that somebody thinks of would be a list
without an end, and a key that is no text cannot be bound at all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError, UnroutableError
from pika.spec import PERSISTENT_DELIVERY_MODE

from ingest_consumer import topology
from ingest_consumer.broker import close_quietly
from ingest_consumer.errors import TopologyError
from ingest_consumer.shadow import DEAD_LETTER_EXCHANGE, DEAD_LETTER_QUEUE, OUR_LETTER, ROUTING_KEY

DEATHS = "x-death"
"""The broker's header. Its types are gone once a client has read it, so nobody can say whether the broker will."""
CAME_TO, CAME_UNDER = "x-everest-exchange", "x-everest-routing-key"
"""Headers of a letter of ours: where its message was published, and with which key."""


@dataclass(frozen=True)
class Rejection:
    """A delivery as far as its rejection needs it. What is no UTF-8 comes as bytes."""

    tag: int
    body: bytes
    exchange: str | bytes
    routing_key: str | bytes
    headers: Mapping[Any, Any]

    def carry_out(self, connection: pika.BlockingConnection, channel: BlockingChannel) -> None:
        """Raises one of BROKER_ERRORS, or TopologyError; then the delivery comes again. A death between letter and ack
        leaves two letters, which are allowed."""
        topology.ensure_dead_letters(connection)  # a rejection into nothing loses the message
        if self.routing_key in topology.LETTER_KEYS and DEATHS not in self.headers:
            channel.basic_reject(self.tag, requeue=False)
            return
        self._write_letter(connection)
        channel.basic_ack(self.tag)

    def _write_letter(self, connection: pika.BlockingConnection) -> None:
        """On a channel of its own, confirmed."""
        properties = pika.BasicProperties(
            delivery_mode=PERSISTENT_DELIVERY_MODE,
            timestamp=int(time.time()),
            headers={OUR_LETTER: True, CAME_TO: _text(self.exchange), CAME_UNDER: _text(self.routing_key)},
        )
        writer = connection.channel()
        try:
            writer.confirm_delivery()
            writer.basic_publish(DEAD_LETTER_EXCHANGE, ROUTING_KEY, self.body, properties, mandatory=True)
        except (NackError, UnroutableError) as refusal:
            words = f"{DEAD_LETTER_QUEUE} takes no letter: is it full, or not bound to {DEAD_LETTER_EXCHANGE}?"
            raise TopologyError(words) from refusal
        finally:
            close_quietly(writer)


def _text(name: str | bytes) -> str:
    """For people who look at the letter: bytes that are no text as \\xNN."""
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")
