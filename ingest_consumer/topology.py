"""Exchanges and queues: what must stand before the first delivery, and before any rejection.

A rejected message whose dead-letter exchange is missing vanishes without a trace (measured), so DLX, DLQ and binding
are looked at at start, on each reconnect, every minute, and right before a rejection. Existing ones are accepted as
they are; absent ones are made. The jobs queue must be exactly ours: its arguments decide where rejections go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ingest_consumer import tls
from ingest_consumer.addresses import Login, vhost_of
from ingest_consumer.broker import close_quietly
from ingest_consumer.errors import TopologyError
from ingest_consumer.shadow import (
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_QUEUE,
    JOBS_EXCHANGE,
    JOBS_QUEUE,
    ROUTING_KEY,
)

JOBS_QUEUE_ARGUMENTS = {"x-dead-letter-exchange": DEAD_LETTER_EXCHANGE}
DEAD_LETTER_QUEUE_ARGUMENTS = {"x-queue-type": "classic"}
"""Said outright, because a site may have another default: a quorum queue of RabbitMQ 4 drops a letter that was read
twenty times, and they are read every minute."""
NO_LIMIT = -1
LIMITS = frozenset({"message-ttl", "max-length", "max-length-bytes", "expires"})
"""Of a queue, by which it loses messages."""
LETTER_KEYS = (ROUTING_KEY, JOBS_QUEUE)
"""Of messages that may be rejected: as published to our exchange, and as put into the queue directly, which is what the
broker's own tools do. What came under another key is not rejected (rejection.py)."""

NOT_FOUND, PRECONDITION_FAILED = 404, 406
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
        if _reply_code(refusal) != PRECONDITION_FAILED:  # no right to it, or the broker has trouble with the queue
            raise
        differences = _differences(amqp_url, management) or refusal.message
        raise TopologyError(
            f"queue {JOBS_QUEUE} exists with other arguments than ours: {differences}. "
            "Empty and delete it (or rename it), then start again: it is declared anew."
        ) from refusal
    _on_channel(connection, lambda ch: ch.queue_bind(JOBS_QUEUE, JOBS_EXCHANGE, ROUTING_KEY))


def ensure_dead_letters(connection: pika.BlockingConnection) -> None:
    """DLX, DLQ and their bindings. Raises TopologyError."""
    if not _exists(connection, lambda ch: ch.exchange_declare(DEAD_LETTER_EXCHANGE, passive=True)):
        _on_channel(connection, lambda ch: ch.exchange_declare(DEAD_LETTER_EXCHANGE, "direct", durable=True))
    if not _exists(connection, lambda ch: ch.queue_declare(DEAD_LETTER_QUEUE, passive=True)):
        arguments = dict(DEAD_LETTER_QUEUE_ARGUMENTS)
        _on_channel(connection, lambda ch: ch.queue_declare(DEAD_LETTER_QUEUE, durable=True, arguments=arguments))

    def bind(channel: BlockingChannel) -> None:
        for key in LETTER_KEYS:
            channel.queue_bind(DEAD_LETTER_QUEUE, DEAD_LETTER_EXCHANGE, key)

    _on_channel(connection, bind)


def _exists(connection: pika.BlockingConnection, look: Callable[[BlockingChannel], Any]) -> bool:
    try:
        _on_channel(connection, look)
    except TopologyError as refusal:
        if _reply_code(refusal) == NOT_FOUND:
            return False
        raise
    return True


def _reply_code(refusal: TopologyError) -> int | None:
    cause = refusal.__cause__
    return cause.reply_code if isinstance(cause, ChannelClosedByBroker) else None


def _on_channel(connection: pika.BlockingConnection, do: Callable[[BlockingChannel], Any]) -> None:
    """On a channel of its own: the broker answers a refusal by closing the channel."""
    channel = connection.channel()
    try:
        do(channel)
    except ChannelClosedByBroker as refusal:
        raise TopologyError(refusal.reply_text) from refusal
    finally:
        close_quietly(channel)


def risks(amqp_url: str, management: Login | None) -> list[str]:
    """What may lose messages of the queues that stand there; nothing when nobody can be asked."""
    found = {name: _look_up(amqp_url, management, name) or {} for name in (JOBS_QUEUE, DEAD_LETTER_QUEUE)}
    told = [
        f"{name} has a limit ({', '.join(limits)}): the broker takes messages out by itself. Take the limit away."
        for name, queue in found.items()
        if (limits := sorted(LIMITS & _settings_of(queue).keys()))
    ]
    letters = found[DEAD_LETTER_QUEUE]
    if letters.get("type") == "quorum" and _settings_of(letters).get("delivery-limit") != NO_LIMIT:
        told.append(
            f"{DEAD_LETTER_QUEUE} is a quorum queue: from RabbitMQ 4 on it drops a letter that was read 20 times, and"
            " they are read every minute. Give it a policy with delivery-limit -1, or make it a classic queue."
        )
    return told


def _settings_of(queue: dict[str, Any]) -> dict[str, Any]:
    """By arguments and policies, under the names that policies have."""
    arguments = {name.removeprefix("x-"): value for name, value in dict(queue.get("arguments") or {}).items()}
    return {**dict(queue.get("effective_policy_definition") or {}), **arguments}


def _differences(amqp_url: str, management: Login | None) -> str | None:
    """Every difference by name, from the management API; None when there is none to ask (the 406 names the first)."""
    found = _look_up(amqp_url, management, JOBS_QUEUE)
    if found is None:
        return None
    actual = {"durable": found.get("durable"), "auto_delete": found.get("auto_delete"), **found.get("arguments", {})}
    wanted = {"durable": True, "auto_delete": False, **JOBS_QUEUE_ARGUMENTS}
    if actual.get("x-queue-type") == "classic":
        del actual["x-queue-type"]  # the default, spelled out by newer brokers
    different = [key for key in {**wanted, **actual} if actual.get(key) != wanted.get(key)]
    words = [f"{key} is {_word(actual.get(key))}, must be {_word(wanted.get(key))}" for key in different]
    return "; ".join(words) or None


def _look_up(amqp_url: str, management: Login | None, queue: str) -> dict[str, Any] | None:
    """The queue as the management API shows it."""
    if management is None:
        return None
    vhost = quote(vhost_of(amqp_url), safe="")
    try:
        address, verify = tls.http(management.url)
        answer = httpx.get(
            f"{address.rstrip('/')}/api/queues/{vhost}/{queue}",
            verify=verify,
            auth=(management.user, management.password),
            timeout=MANAGEMENT_TIMEOUT_S,
        )
        found = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _word(value: Any) -> str:
    return "absent" if value is None else repr(value)
