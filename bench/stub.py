"""The consumer by itself, for P7 and P8: the real program on a vhost and in a schema of its own, and an Airflow that
is a stub in this process and answers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pika

from everest.settings import MysqlUrl
from everest.store import database as store

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 120

Triggered = Callable[[dict[str, Any]], None]
"""Called with the body of a trigger before it is answered."""


@contextmanager
def airflow(triggered: Triggered) -> Iterator[str]:
    """Answers the consumer's calls over connections that stay open, as Airflow does. Yields its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer(200, {"dag_id": "x", "is_paused": False, "has_import_errors": False, "state": "running"})

        def do_POST(self) -> None:
            body = json.loads(self._body())
            if self.path.startswith("/auth/token"):
                self._answer(201, {"access_token": "bench"})
                return
            triggered(body)
            self._answer(200, {"dag_run_id": body["dag_run_id"], "state": "queued"})

        def do_PATCH(self) -> None:
            self._body()
            self._answer(200, {})

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers["Content-Length"]))

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False  # a client that keeps its connection open is not waited for
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def vhost() -> Iterator[str]:
    """A vhost of its own on the stack's broker, gone at the end. Yields its AMQP address."""
    url, user, password = (os.environ[f"EVEREST_RABBIT_MANAGEMENT_{name}"] for name in ("URL", "USER", "PASSWORD"))
    name = f"everest_bench_{os.getpid()}"
    with httpx.Client(base_url=f"{url}/api", auth=(user, password), timeout=20, trust_env=False) as api:
        api.put(f"/vhosts/{name}").raise_for_status()
        try:
            rights = {"configure": ".*", "write": ".*", "read": ".*"}
            api.put(f"/permissions/{name}/{quote(user, safe='')}", json=rights).raise_for_status()
            yield urlsplit(os.environ["EVEREST_AMQP_URL"])._replace(path=f"/{name}").geturl()
        finally:
            api.delete(f"/vhosts/{name}")


@contextmanager
def consumer(
    url: MysqlUrl, amqp_url: str, airflow_url: str, heard: Callable[[str], None], workers: int = 1
) -> Iterator[subprocess.Popen[str]]:
    """The running program; `heard` gets each line of its log the moment it is written, in another thread."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("EVEREST_")}
    env |= {
        "EVEREST_MYSQL_URL": f"mysql://{quote(url.user)}:{quote(url.password)}@{url.host}:{url.port}/{url.schema}",
        "EVEREST_AMQP_URL": amqp_url,
        "EVEREST_AIRFLOW_URL": airflow_url,
        "EVEREST_AIRFLOW_USER": "bench",
        "EVEREST_AIRFLOW_PASSWORD": "bench",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "ingest_consumer", "consume", "--workers", str(workers)],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    def read() -> None:
        for line in process.stderr or ():
            heard(line.rstrip())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)
        reader.join(10)
        if process.stderr is not None:
            process.stderr.close()


def write_jobs(url: MysqlUrl, count: int) -> list[tuple[int, bytes]]:
    """Shadow rows as the existing publisher writes them: the id of each, and the message that announces it."""
    jobs = []
    with closing(store.connect(url)) as conn, store.transaction(conn), conn.cursor() as cursor:
        for number in range(1, count + 1):
            cursor.execute(
                "INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, payload, publish_status)"
                " VALUES (%s, %s, '{}', 'PUBLISHED')",
                (number, f"BENCH-{number}"),
            )
            shadow_id = int(cursor.lastrowid)
            body = {"transaksi_id": number, "shadow_id": shadow_id, "nota": f"BENCH-{number}"}
            jobs.append((shadow_id, json.dumps(body).encode()))
    return jobs


def connect(amqp_url: str) -> pika.BlockingConnection:
    """The consumer declares the topology when it starts; until then there is nothing to publish to."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        try:
            connection.channel().queue_declare("everest.jobs.q", passive=True)
            return connection
        except pika.exceptions.ChannelClosedByBroker:
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
