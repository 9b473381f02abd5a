"""What tests of the queue are built from: a vhost and what one does with it, shadow rows, programs that run."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pika
import pytest

from ingest_consumer import broker, topology
from ingest_consumer.addresses import Login
from ingest_consumer.consumer import consume
from ingest_consumer.database import Database
from ingest_consumer.relay import relay
from ingest_consumer.settings import Settings
from tests.conftest import as_text

ROOT = Path(__file__).resolve().parents[1]
SENTINEL = b"the last message of a test"
PATIENCE_S = 120.0
"""How long a test waits, on a busy machine, for something that should happen; no test asserts a time."""


@dataclass
class Vhost:
    """A virtual host of this test alone, and what a test does with it from outside."""

    amqp_url: str
    management: Login
    name: str

    def api(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(
            method,
            f"{self.management.url}/api/{path}",
            auth=(self.management.user, self.management.password),
            json=body,
            timeout=20,
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def connect(self) -> pika.BlockingConnection:
        return broker.connect(self.amqp_url, "test", 60)

    def declare(self) -> None:
        with closing(self.connect()) as connection:
            topology.ensure(connection, self.amqp_url, None)

    def publish(
        self,
        body: Any,
        *,
        headers: dict[str, Any] | None = None,
        exchange: str = "everest.jobs.x",
        routing_key: str = "job.process",
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(self.connect()) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            properties = pika.BasicProperties(delivery_mode=2, headers=headers)
            channel.basic_publish(exchange, routing_key, data, properties, mandatory=True)

    def depth(self, queue: str) -> int:
        """Messages ready in the queue, asked of the broker itself."""
        with closing(self.connect()) as connection:
            return int(connection.channel().queue_declare(queue, passive=True).method.message_count)

    def has_queue(self, queue: str) -> bool:
        return any(one["name"] == queue for one in self.api("GET", f"queues/{self.name}"))

    def has_consumer(self, queue: str) -> bool:
        if not self.has_queue(queue):
            return False
        with closing(self.connect()) as connection:
            return bool(connection.channel().queue_declare(queue, passive=True).method.consumer_count)

    def read(self, queue: str) -> list[tuple[Any, bytes]]:
        """(properties, body) of all messages; they are taken out."""
        found = []
        with closing(self.connect()) as connection:
            channel = connection.channel()
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return found
                found.append((properties, body))

    def finished(self) -> list[bytes]:
        """Waits until one worker has settled all that was published before; the dead letters, which are taken out.

        A sentinel closes the row: with one worker and prefetch 1 it is looked at only when all before it have ended.
        """
        self.publish(SENTINEL)
        letters: list[bytes] = []

        def sentinel_came() -> bool:
            letters.extend(body for _, body in self.read("everest.jobs.failed.dlq"))
            return SENTINEL in letters

        until(sentinel_came, "everything before the sentinel settled")
        return [body for body in letters if body != SENTINEL]

    def cut_connections(self, name: str) -> int:
        """Closes connections the way an operator does; `name` begins the connection's own name."""
        cut = 0
        for one in self.api("GET", f"vhosts/{quote(self.name, safe='')}/connections"):
            if str(one.get("client_properties", {}).get("connection_name", "")).startswith(name):
                self.api("DELETE", f"connections/{quote(one['name'], safe='')}")
                cut += 1
        return cut


@dataclass
class Rows:
    """Shadow rows as a foreign publisher writes them, and what became of them."""

    database: Database

    def do(self, statement: str, *values: Any) -> Any:
        """Runs one statement and commits; the new id of an INSERT, the rows of a SELECT."""
        with self.database.transaction() as conn, conn.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.lastrowid or cursor.fetchall()

    def foreign(self, transaksi_id: int, nota: str = "SO-1", **columns: Any) -> int:
        values = {"transaksi_id": transaksi_id, "nomer_nota": nota, "publish_status": "PUBLISHED"} | columns
        names = ", ".join(values)
        marks = ", ".join(["%s"] * len(values))
        return int(self.do(f"INSERT INTO rabbit_publish_shadow ({names}) VALUES ({marks})", *values.values()))

    def ours(
        self, transaksi_id: int, nota: str = "SO-1", *, n: int = 1, run_status: str = "running", **columns: Any
    ) -> int:
        """A row with its run, announced as our own senders do; no outbox row."""
        run_id = self.do(
            "INSERT INTO workflow_runs (workflow, version, definition_hash, idempotency_key, payload, state, status, n,"
            " dag_id, dag_run_id, created_at, updated_at) VALUES ('opname_posting', '1', '', %s, '{}', '{}', %s, %s,"
            " 'opname_posting', '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
            str(transaksi_id),
            run_status,
            n,
        )
        shadow_id = self.foreign(transaksi_id, nota, workflow_id=run_id, dag_id="opname_posting", n=n, **columns)
        name = f"opname_posting__{transaksi_id}__{shadow_id}__{n}"
        self.do("UPDATE rabbit_publish_shadow SET dag_run_id = %s WHERE id = %s", name, shadow_id)
        self.do(
            "UPDATE workflow_runs SET dag_run_id = %s, carrier_shadow_id = %s WHERE id = %s", name, shadow_id, run_id
        )
        return shadow_id

    def body(self, shadow_id: int, **changes: Any) -> dict[str, Any]:
        """The message that announces the row's run."""
        row = self.get(shadow_id)
        foreign = {"transaksi_id": row["transaksi_id"], "shadow_id": shadow_id, "nota": row["nomer_nota"]}
        if row["n"] is None:
            return foreign | changes
        return (
            foreign
            | {
                "v": 1,
                "workflow": "opname_posting",
                "workflow_id": row["workflow_id"],
                "dag_id": row["dag_id"],
                "dag_run_id": row["dag_run_id"],
                "n": row["n"],
            }
            | changes
        )

    def get(self, shadow_id: int) -> dict[str, Any]:
        with self.database.transaction() as conn, conn.cursor() as cursor:
            cursor.execute("SELECT * FROM rabbit_publish_shadow WHERE id = %s", (shadow_id,))
            return dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))

    def outbox(self) -> list[dict[str, Any]]:
        with self.database.transaction() as conn, conn.cursor() as cursor:
            cursor.execute("SELECT * FROM outbox ORDER BY id")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def end(self, shadow_id: int, status: str, error: str | None = None, code: int | None = None) -> None:
        """What the last task of the run does with the row, whatever run owns it."""
        self.do(
            "UPDATE rabbit_publish_shadow SET worker_status = %s, worker_at = UTC_TIMESTAMP(6), error = %s,"
            " error_code = %s WHERE id = %s",
            status,
            error,
            code,
            shadow_id,
        )


def until(happened: Callable[[], Any], what: str) -> Any:
    """Waits for it, and fails with `what` if it never happens."""
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        if result := happened():
            return result
        time.sleep(0.03)
    pytest.fail(f"never happened: {what}")


class Running:
    """Consumers and relays of this test, in threads; `stop` ends them as SIGTERM does."""

    def __init__(self) -> None:
        self._running: list[tuple[threading.Thread, threading.Event]] = []

    def consumer(self, settings: Settings, **changes: Any) -> threading.Event:
        return self._start(consume, replace(settings, **changes))

    def relay(self, settings: Settings, **changes: Any) -> threading.Event:
        return self._start(relay, replace(settings, **changes))

    def _start(self, program: Callable[[Settings, threading.Event], None], settings: Settings) -> threading.Event:
        stop = threading.Event()
        thread = threading.Thread(target=program, args=(settings, stop), daemon=True)
        thread.start()
        self._running.append((thread, stop))
        return stop

    def are_alive(self) -> bool:
        return all(thread.is_alive() for thread, _ in self._running)

    def stop(self) -> None:
        for _, stop in self._running:
            stop.set()
        for thread, _ in self._running:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a program did not stop when told to"
        self._running.clear()


def environment(settings: Settings, **changes: str) -> dict[str, str]:
    """The settings as a process of its own gets them."""
    mysql, airflow, management = settings.mysql, settings.airflow, settings.management
    assert airflow is not None
    assert management is not None
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "EVEREST_MYSQL_URL": as_text(mysql),
        "EVEREST_AMQP_URL": settings.amqp_url,
        "EVEREST_AIRFLOW_URL": airflow.url,
        "EVEREST_AIRFLOW_USER": airflow.user,
        "EVEREST_AIRFLOW_PASSWORD": airflow.password,
        "EVEREST_RABBIT_MANAGEMENT_URL": management.url,
        "EVEREST_RABBIT_MANAGEMENT_USER": management.user,
        "EVEREST_RABBIT_MANAGEMENT_PASSWORD": management.password,
        "EVEREST_POLL_MS": "20",
        "EVEREST_RELAY_POLL_MS": "20",
        **changes,
    }
