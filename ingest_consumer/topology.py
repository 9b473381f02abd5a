"""Exchanges and queues: what must stand before the first delivery, and before any rejection.

A rejected message whose dead-letter exchange is missing vanishes without a trace (measured), so DLX, DLQ and binding
are looked at at start, on each reconnect, every minute, and right before a rejection. Existing ones are accepted as
they are; absent ones are made. The jobs queue must be exactly ours: its arguments decide where rejections go.
A rejected message keeps the routing key it came with, so there is a binding for each key that arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx
import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ingest_consumer import tls
from ingest_consumer.broker import close_quietly
from ingest_consumer.errors import TopologyError
from ingest_consumer.settings import Login
from ingest_consumer.shadow import DEAD_LETTER_EXCHANGE, JOBS_EXCHANGE, ROUTING_KEY

JOBS_QUEUE = "everest.jobs.q"
DEAD_LETTER_QUEUE = "everest.jobs.failed.dlq"
JOBS_QUEUE_ARGUMENTS = {"x-dead-letter-exchange": DEAD_LETTER_EXCHANGE}
LETTER_KEYS = (ROUTING_KEY, JOBS_QUEUE)
"""Of rejected messages: as published to our exchange, and as put into the queue directly, which is what the broker's
own tools do."""

NOT_FOUND = 404
PRECONDITION_FAILED = 406
MANAGEMENT_TIMEOUT_S = 5


def ensure(connection: pika.BlockingConnection, amqp_url: str, management: Login | None) -> None:
    """Checks or declares everything. Raises TopologyError when something stands there that is not ours."""
    ensure_dead_letters(connection)
    ensure_jobs(connection, amqp_url, management)


def ensure_jobs(connection: pika.BlockingConnection, amqp_url: str, management: Login | None) -> None:
    """The exchange and the queue of the jobs, all that a publisher needs. Raises TopologyError."""
    _on_channel(connection, lambda ch: ch.exchange_declare(JOBS_EXCHANGE, "direct", durable=True))
    try:
        _on_channel(
            connection, lambda ch: ch.queue_declare(JOBS_QUEUE, durable=True, arguments=dict(JOBS_QUEUE_ARGUMENTS))
        )
    except TopologyError as refusal:
        differences = _differences(amqp_url, management) or refusal.message
        raise TopologyError(
            f"queue {JOBS_QUEUE} exists with other arguments than ours: {differences}. "
            "Empty and delete it (or rename it), then start again: it is declared anew."
        ) from refusal
    _on_channel(connection, lambda ch: ch.queue_bind(JOBS_QUEUE, JOBS_EXCHANGE, ROUTING_KEY))


def ensure_dead_letters(connection: pika.BlockingConnection, routing_key: str | None = None) -> None:
    """DLX, DLQ and their bindings, one for this routing key among them. Raises TopologyError."""
    if not _exists(connection, lambda ch: ch.exchange_declare(DEAD_LETTER_EXCHANGE, passive=True)):
        _on_channel(connection, lambda ch: ch.exchange_declare(DEAD_LETTER_EXCHANGE, "direct", durable=True))
    if not _exists(connection, lambda ch: ch.queue_declare(DEAD_LETTER_QUEUE, passive=True)):
        _on_channel(connection, lambda ch: ch.queue_declare(DEAD_LETTER_QUEUE, durable=True))

    def bind(channel: BlockingChannel) -> None:
        for key in dict.fromkeys((*LETTER_KEYS, ROUTING_KEY if routing_key is None else routing_key)):
            channel.queue_bind(DEAD_LETTER_QUEUE, DEAD_LETTER_EXCHANGE, key)

    _on_channel(connection, bind)


def _exists(connection: pika.BlockingConnection, look: Callable[[BlockingChannel], Any]) -> bool:
    try:
        _on_channel(connection, look)
    except TopologyError as refusal:
        if isinstance(refusal.__cause__, ChannelClosedByBroker) and refusal.__cause__.reply_code == NOT_FOUND:
            return False
        raise
    return True


def _on_channel(connection: pika.BlockingConnection, do: Callable[[BlockingChannel], Any]) -> None:
    """On a channel of its own: the broker answers a refusal by closing the channel."""
    channel = connection.channel()
    try:
        do(channel)
    except ChannelClosedByBroker as refusal:
        raise TopologyError(refusal.reply_text) from refusal
    finally:
        close_quietly(channel)


def _differences(amqp_url: str, management: Login | None) -> str | None:
    """Every difference by name, from the management API; None when there is none to ask (the 406 names the first)."""
    if management is None:
        return None
    vhost = quote(unquote(urlsplit(amqp_url).path[1:]) or "/", safe="")
    try:
        address, verify = tls.http(management.url)
        answer = httpx.get(
            f"{address.rstrip('/')}/api/queues/{vhost}/{JOBS_QUEUE}",
            verify=verify,
            auth=(management.user, management.password),
            timeout=MANAGEMENT_TIMEOUT_S,
        )
        found = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return None
    actual = {"durable": found.get("durable"), "auto_delete": found.get("auto_delete"), **found.get("arguments", {})}
    wanted = {"durable": True, "auto_delete": False, **JOBS_QUEUE_ARGUMENTS}
    if actual.get("x-queue-type") == "classic":
        del actual["x-queue-type"]  # the default, spelled out by newer brokers
    different = [key for key in {**wanted, **actual} if actual.get(key) != wanted.get(key)]
    words = [f"{key} is {_word(actual.get(key))}, must be {_word(wanted.get(key))}" for key in different]
    return "; ".join(words) or None


def _word(value: Any) -> str:
    return "absent" if value is None else repr(value)
