"""Rows and messages as the tests hand them to the consumer and the relay, and what came of them."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ingest_consumer import shadow
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.queue_rig import Rows, Running, Vhost, until

QUEUE, DLX, DLQ = "everest.jobs.q", "everest.jobs.dlx", "everest.jobs.failed.dlq"

Process = Callable[..., subprocess.Popen[str]]
"""The fixture of that name."""

Settle = Callable[[], tuple[int, dict[str, int] | None]]
"""The fixture `settle`: how many letters were taken out, and how many stay by standing."""


def deliver(vhost: Vhost, running: Running, settings: Settings, body: Any, **publishing: Any) -> None:
    vhost.declare()
    vhost.publish(body, **publishing)
    running.consumer(settings)


def rows_end(rows: Rows, shadow_id: int, status: str, error: str | None = None, code: int | None = None) -> None:
    """From the fake's thread: with a connection of its own."""
    database = Database(rows.database._url, timedelta(seconds=5))
    Rows(database).end(shadow_id, status, error, code)
    database.close()


def at_work(rows: Rows, airflow: FakeAirflow, shadow_id: int) -> Any:
    return until(lambda: rows.get(shadow_id)["dag_run_id"] in airflow.runs, "triggered")


def announce(rows: Rows, transaksi_id: int, **enqueued: Any) -> int:
    """A submit of our own: row, run and outbox row."""
    shadow_id = rows.ours(transaksi_id, f"SO-{transaksi_id}", publish_status="PENDING")
    body = json.dumps(rows.body(shadow_id))
    with rows.database.transaction() as conn:
        shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=rows.get(shadow_id)["workflow_id"], body=body, **enqueued)
    return shadow_id


def is_published(rows: Rows, shadow_id: int) -> bool:
    return bool(rows.get(shadow_id)["publish_status"] == "PUBLISHED")


class Encoded(bytes):
    """A header value as it goes over the wire: its kind and its bytes."""


def nested(kind: bytes, depth: int) -> Encoded:
    """A table (F) in a table, or an array (A) in an array, and so on; the innermost is empty."""
    key = b"\x01k" if kind == b"F" else b""
    value = b""
    for _ in range(depth):
        content = key + value if value else b""
        value = kind + struct.pack(">I", len(content)) + content
    return Encoded(value)


def dead(vhost: Vhost, body: Any) -> None:
    vhost.publish(body, exchange="everest.jobs.dlx")


def told(rows: Rows, columns: str = "body, copies, gone_at IS NOT NULL, dropped_by") -> list[tuple[Any, ...]]:
    return list(rows.do(f"SELECT {columns} FROM broken_letters ORDER BY id"))


def drop(rows: Rows) -> None:
    rows.do("UPDATE broken_letters SET dropped_by = 'finance', dropped_at = UTC_TIMESTAMP(6) WHERE gone_at IS NULL")
