"""P8: what a consumer with one worker keeps in memory, against a Python that only imported its libraries.

The real program, on a vhost and in a schema of its own, after it has carried some jobs. Airflow is a stub in this
process that finishes a job when it is triggered. Measured is the proportional set size: memory that no other process
shares, plus its part of what is shared (the interpreter, libc); both sides in the same way, at rest.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pika

from bench.measure import Result, Run, against_floor, show
from bench.schema import private_schema
from everest.settings import MysqlUrl
from everest.store import database as store
from ingest_consumer.shadow import JOBS_EXCHANGE, ROUTING_KEY

JOBS, REPETITIONS = 60, 5
PATIENCE_SECONDS = 120
FLOOR = "import pika, httpx, pymysql, sys; print('ready', flush=True); sys.stdin.read()"
ROOT = Path(__file__).resolve().parent.parent


def p8(server: MysqlUrl, smoke: bool) -> list[Result]:
    jobs, repetitions = (3, 1) if smoke else (JOBS, REPETITIONS)
    runs, resident = [], []
    with private_schema(server) as url, _vhost() as amqp_url, _stub_airflow(url) as airflow_url:
        for _ in range(repetitions):
            ours, ours_resident = _consumer(url, amqp_url, airflow_url, jobs)
            floor, floor_resident = _floor()
            runs.append(Run(ours, floor))
            resident.append((ours_resident, floor_resident))
    ours_rss, floor_rss = (statistics.median(side) for side in zip(*resident, strict=True))
    return [
        against_floor(
            "P8",
            f"consumer memory (PSS), 1 worker, after {jobs} jobs",
            "MiB",
            "bare import pika, httpx, pymysql",
            runs,
            must=1.5,
            aim=1.2,
            note=f"resident set {show(ours_rss)} against {show(floor_rss)} MiB",
        )
    ]


def _consumer(url: MysqlUrl, amqp_url: str, airflow_url: str, jobs: int) -> tuple[float, float]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("EVEREST_")}
    env |= {
        "EVEREST_MYSQL_URL": f"mysql://{quote(url.user)}:{quote(url.password)}@{url.host}:{url.port}/{url.schema}",
        "EVEREST_AMQP_URL": amqp_url,
        "EVEREST_AIRFLOW_URL": airflow_url,
        "EVEREST_AIRFLOW_USER": "bench",
        "EVEREST_AIRFLOW_PASSWORD": "bench",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "ingest_consumer", "consume", "--workers", "1"],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    acked = threading.Semaphore(0)
    lines: list[str] = []
    reader = threading.Thread(target=_read, args=(process, acked, lines), daemon=True)
    reader.start()
    try:
        _publish(url, amqp_url, jobs)
        for _ in range(jobs):
            if not acked.acquire(timeout=PATIENCE_SECONDS):
                raise RuntimeError("\n".join(["the consumer did not acknowledge its jobs:", *lines[-10:]]))
        time.sleep(1)
        return _memory(process.pid)
    finally:
        process.terminate()
        process.wait(60)
        reader.join(10)


def _read(process: subprocess.Popen[str], acked: threading.Semaphore, lines: list[str]) -> None:
    for line in process.stderr or ():
        lines.append(line.rstrip())
        if "acked: shadow row" in line and "COMPLETED" in line:
            acked.release()


def _floor() -> tuple[float, float]:
    process = subprocess.Popen(
        [sys.executable, "-c", FLOOR], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise RuntimeError("the floor of the memory benchmark did not start")
        return _memory(process.pid)


def _memory(pid: int) -> tuple[float, float]:
    """(PSS, RSS) in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    pss, rss = (int(re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[1]) for name in ("Pss", "Rss"))  # type: ignore[index]
    return pss / 1024, rss / 1024


def _publish(url: MysqlUrl, amqp_url: str, jobs: int) -> None:
    """Jobs as the existing publisher writes them."""
    with closing(store.connect(url)) as conn:
        ids = []
        with store.transaction(conn), conn.cursor() as cursor:
            for number in range(jobs):
                cursor.execute(
                    "INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, payload, publish_status)"
                    " VALUES (%s, %s, '{}', 'PUBLISHED')",
                    (number + 1, f"BENCH-{number}"),
                )
                ids.append((number + 1, int(cursor.lastrowid)))
    with closing(_connect(amqp_url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for transaksi_id, shadow_id in ids:
            body = json.dumps({"transaksi_id": transaksi_id, "shadow_id": shadow_id, "nota": f"BENCH-{transaksi_id}"})
            channel.basic_publish(JOBS_EXCHANGE, ROUTING_KEY, body.encode(), mandatory=True)


def _connect(amqp_url: str) -> pika.BlockingConnection:
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


@contextmanager
def _vhost() -> Iterator[str]:
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
def _stub_airflow(url: MysqlUrl) -> Iterator[str]:
    """Answers the consumer's calls at once, and finishes the job that a trigger names."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, {"dag_id": "x", "is_paused": False, "has_import_errors": False, "state": "running"})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.startswith("/auth/token"):
                self._answer(201, {"access_token": "bench"})
                return
            with closing(store.connect(url)) as conn, store.transaction(conn), conn.cursor() as cursor:
                cursor.execute(
                    "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED', worker_at = UTC_TIMESTAMP(6)"
                    " WHERE id = %s",
                    (body["conf"]["shadow_id"],),
                )
            self._answer(200, {"dag_run_id": body["dag_run_id"], "state": "queued"})

        def do_PATCH(self) -> None:
            self._answer(200, {})

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
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
