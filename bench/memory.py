"""P8: what a consumer with one worker keeps in memory, against a Python that only imported its libraries.

The real program, after it has carried some jobs (`stub.py`); the stub Airflow finishes a job when it is triggered.
Measured is the proportional set size: memory that no other process shares, plus its part of what is shared (the
interpreter, libc); both sides in the same way, at rest.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import stub
from bench.measure import Result, Run, against_floor, show
from bench.schema import private_schema
from everest.settings import MysqlUrl
from everest.store import database as store
from ingest_consumer.shadow import JOBS_EXCHANGE, ROUTING_KEY

JOBS, REPETITIONS = 60, 5
FLOOR = "import pika, httpx, pymysql, sys; print('ready', flush=True); sys.stdin.read()"


def p8(server: MysqlUrl, smoke: bool) -> list[Result]:
    jobs, repetitions = (3, 1) if smoke else (JOBS, REPETITIONS)
    runs, resident = [], []
    with private_schema(server) as url, stub.vhost() as amqp_url:

        def finish(trigger: dict[str, Any]) -> None:
            with closing(store.connect(url)) as conn, store.transaction(conn), conn.cursor() as cursor:
                cursor.execute(
                    "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED', worker_at = UTC_TIMESTAMP(6)"
                    " WHERE id = %s",
                    (trigger["conf"]["shadow_id"],),
                )

        with stub.airflow(finish) as airflow_url:
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
    acked = threading.Semaphore(0)
    lines: list[str] = []

    def heard(line: str) -> None:
        lines.append(line)
        if "acked: shadow row" in line and "COMPLETED" in line:
            acked.release()

    with stub.consumer(url, amqp_url, airflow_url, heard) as process:
        with closing(stub.connect(amqp_url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for _, body in stub.write_jobs(url, jobs):
                channel.basic_publish(JOBS_EXCHANGE, ROUTING_KEY, body, mandatory=True)
        for _ in range(jobs):
            if not acked.acquire(timeout=stub.PATIENCE_SECONDS):
                raise RuntimeError("\n".join(["the consumer did not acknowledge its jobs:", *lines[-10:]]))
        time.sleep(1)
        return _memory(process.pid)


def _floor() -> tuple[float, float]:
    process = subprocess.Popen(
        [sys.executable, "-c", FLOOR], cwd=stub.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
