"""How this program reaches RabbitMQ: one way to open a connection, every wait in it bounded."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pika
import pika.data
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, ConnectionWrongStateError, IncompatibleProtocolError

from ingest_consumer import tls as tls_words
from ingest_consumer.tls import Tls, split

BROKER_ERRORS = (AMQPError, OSError)
"""What any call on a connection or channel may raise when the broker, or the way to it, is in trouble."""

SOCKET_TIMEOUT_S = 5
STACK_TIMEOUT_S = 10
BLOCKED_TIMEOUT_S = 30
"""A broker in a memory or disk alarm stops reading; after this long we let go of the connection and begin anew."""


def connect(amqp_url: str, name: str, heartbeat_s: int) -> pika.BlockingConnection:
    """Raises one of BROKER_ERRORS. `name` is what the management page shows."""
    parameters = parameters_of(amqp_url)
    parameters.heartbeat = heartbeat_s
    parameters.blocked_connection_timeout = BLOCKED_TIMEOUT_S
    parameters.socket_timeout = SOCKET_TIMEOUT_S
    parameters.stack_timeout = STACK_TIMEOUT_S
    parameters.connection_attempts = 1
    parameters.client_properties = {"connection_name": name}
    return pika.BlockingConnection(parameters)


def parameters_of(amqp_url: str) -> pika.URLParameters:
    """Raises ValueError with a sentence that shows nothing of the URL; OSError for the files of its ssl_ parameters."""
    plain, tls = split(amqp_url)
    try:
        parameters = pika.URLParameters(plain)
    except (ValueError, TypeError, SyntaxError):
        raise ValueError("has a parameter behind its ? that nobody knows, or a value that is none for it") from None
    if urlsplit(plain).scheme == "amqps":
        parameters.ssl_options = pika.SSLOptions((tls or Tls()).context(), parameters.host)
    return parameters


def said(error: BaseException) -> str:
    """One of BROKER_ERRORS for a log, with what to look at in the settings."""
    words = tls_words.said(error, "EVEREST_AMQP_URL")
    if not isinstance(error, IncompatibleProtocolError):
        return words
    # what is left of a refused handshake, and of plain AMQP at a port that speaks TLS
    return f"{words}; EVEREST_AMQP_URL: it may want TLS (amqps://), or a certificate of ours (ssl_cert and ssl_key)"


def close_quietly(thing: pika.BlockingConnection | BlockingChannel | None) -> None:
    """Unacked deliveries go back to their queue when their channel closes, cleanly or not."""
    with suppress(*BROKER_ERRORS):
        if thing is not None and thing.is_open:
            thing.close()


def serve(connection: pika.BlockingConnection, time_limit_s: float) -> None:
    """Heartbeats, and what has arrived. Raises one of BROKER_ERRORS; of a connection whose end was met by
    `close_quietly` pika would say ValueError, each time."""
    if not connection.is_open:
        raise ConnectionWrongStateError("the connection has ended")
    connection.process_data_events(time_limit=time_limit_s)


def headers_of(properties: pika.BasicProperties) -> dict[str, Any]:
    return dict(properties.headers or {})


# ---------------------------------------------------------------------------------------- a header pika cannot read

_decode_value = pika.data.decode_value


def _value(encoded: bytes, offset: int) -> tuple[Any, int]:
    """A header's value and where the next one begins; None for a timestamp beyond Python's years, and for what is
    nested more deeply than Python goes."""
    try:
        value, end = _decode_value(encoded, offset)
    except (ValueError, OverflowError, OSError):
        if encoded[offset : offset + 1] != b"T":
            raise
        return None, offset + 9  # its kind and eight bytes
    except RecursionError:  # in the innermost one with room enough left; those around it go on behind it
        if encoded[offset : offset + 1] not in (b"F", b"A"):
            raise
        return None, offset + 5 + int.from_bytes(encoded[offset + 1 : offset + 5], "big")  # kind, length, content
    return value, end


# Pika drops the connection over a header that it cannot read, the message comes back, and no worker ever gets past it:
# a sender that counts in milliseconds where AMQP means seconds, tables in tables in tables. What else could not be
# read (infinite floats, unknown kinds) the broker refuses.
setattr(pika.data, "decode_value", _value)  # noqa: B010 - a function of another module, on purpose
