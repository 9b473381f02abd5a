"""P7: what the consumer itself adds to a document, with an Airflow that answers at once.

Ours is two spans of one document: from just before its message is published until the consumer has had the answer to
its trigger, and from the commit that ends the run until the acknowledgement has gone out. Both ends are lines of the
consumer's log, so writing and reading the log is in them. Between the two the run lasts as long as a run in Airflow
does, and the consumer does not know when it ends. The floor does the least that anybody could with the same message,
the same broker and the same stub: publish, get, one POST over a connection that is open already, ack.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import threading
import time
from contextlib import closing
from typing import Any

import httpx
import pika

from bench import cpu, stub
from bench.measure import Result, Run, percentile, show, spread
from bench.schema import private_schema
from everest.settings import MysqlUrl
from everest.store import database as store
from ingest_consumer.shadow import JOBS_EXCHANGE, ROUTING_KEY

DOCUMENTS, ROUNDS = 12, 5
RUN_SECONDS = (0.5, 2.0)
"""How long a run lasts: what runs in Airflow need here, drawn anew for each."""

ANSWERED = re.compile(r"shadow row (\d+): run \S+ created")
ACKED = re.compile(r"acked: shadow row (\d+) is COMPLETED")
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Clocks:
    """When what was seen, by shadow id; whoever waits for it is woken."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], float] = {}
        self._changed = threading.Condition()
        self.lines: list[str] = []

    def see(self, what: str, shadow_id: int) -> None:
        now = time.perf_counter()
        with self._changed:
            self._seen[what, shadow_id] = now
            self._changed.notify_all()

    def heard(self, line: str) -> None:
        for what, pattern in (("answered", ANSWERED), ("acked", ACKED)):
            if found := pattern.search(line):
                self.see(what, int(found[1]))
        self.lines.append(line)

    def when(self, what: str, shadow_id: int) -> float:
        """Waits for it. Raises RuntimeError with the consumer's last words."""
        with self._changed:
            if not self._changed.wait_for(lambda: (what, shadow_id) in self._seen, stub.PATIENCE_SECONDS):
                raise RuntimeError("\n".join([f"shadow row {shadow_id} was never {what}:", *self.lines[-10:]]))
            return self._seen[what, shadow_id]


def p7(server: MysqlUrl, smoke: bool) -> list[Result]:
    documents, rounds = (2, 1) if smoke else (DOCUMENTS, ROUNDS)
    clocks = Clocks()
    arrival, end, floors, used = [], [], [], []
    with private_schema(server) as url, stub.vhost() as amqp_url, stub.airflow(_accept) as airflow_url:
        jobs = stub.write_jobs(url, documents * rounds + 1)
        with (
            stub.consumer(url, amqp_url, airflow_url, clocks.heard) as process,
            closing(stub.connect(amqp_url)) as connection,
            closing(store.connect(url)) as database,
            httpx.Client(base_url=airflow_url, trust_env=False) as client,
        ):
            channel = connection.channel()
            rng = random.Random(7)
            queue = channel.queue_declare("", exclusive=True).method.queue
            _ours(channel, database, clocks, *jobs.pop(), seconds=0.1)  # logs in, connects
            _floor(channel, client, queue)
            for _ in range(rounds):
                for _ in range(documents):
                    busy = cpu.of_process(process.pid)
                    spans = _ours(channel, database, clocks, *jobs.pop(), seconds=rng.uniform(*RUN_SECONDS))
                    used.append(cpu.of_process(process.pid) - busy)
                    arrival.append(spans[0] * 1000)
                    end.append(spans[1] * 1000)
                    floors.append(_floor(channel, client, queue) * 1000)
    both = [first + second for first, second in zip(arrival, end, strict=True)]
    value, floor = statistics.median(both), statistics.median(floors)
    return [
        Result(
            "P7",
            "consumer's own cost: message to trigger accepted, and end of run to ack",
            "ms",
            "publish, get, one POST, ack; the figure to judge is the difference in ms",
            value,
            floor,
            value - floor,
            must=20,
            aim=5,
            runs=[Run(ours, least) for ours, least in zip(both, floors, strict=True)],
            note=(
                f"message to trigger {show(statistics.median(arrival))} ms ({spread(arrival)}), end to ack"
                f" {show(statistics.median(end))} ms ({spread(end)}), p95 of both {show(percentile(both, 0.95))} ms;"
                f" {show(statistics.mean(used) * 1000)} CPU-ms of the consumer per document,"
                f" runs of {RUN_SECONDS[0]:g} to {RUN_SECONDS[1]:g} s"
            ),
        )
    ]


def _accept(_trigger: dict[str, Any]) -> None:
    """The stub's side of a trigger: nothing to do, the run ends when the benchmark says so."""


def _ours(
    channel: Any, database: Any, clocks: Clocks, shadow_id: int, body: bytes, *, seconds: float
) -> tuple[float, float]:
    """One document. Returns the two spans in seconds."""
    began = time.perf_counter()
    channel.basic_publish(JOBS_EXCHANGE, ROUTING_KEY, body, PERSISTENT)
    accepted = clocks.when("answered", shadow_id)
    time.sleep(seconds)
    with store.transaction(database), database.cursor() as cursor:
        changed = cursor.execute(
            "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED', worker_at = UTC_TIMESTAMP(6)"
            " WHERE id = %s AND worker_status = 'PROCESSING'",
            (shadow_id,),
        )
    ended = time.perf_counter()
    if changed != 1:
        raise RuntimeError(f"shadow row {shadow_id} was triggered without being PROCESSING")
    return accepted - began, clocks.when("acked", shadow_id) - ended


def _floor(channel: Any, client: httpx.Client, queue: str) -> float:
    body = json.dumps({"dag_run_id": "floor", "logical_date": None, "conf": {}}).encode()
    began = time.perf_counter()
    channel.basic_publish("", queue, body, PERSISTENT)
    method = None
    while method is None:
        method, _, got = channel.basic_get(queue)
    client.post("/api/v2/dags/x/dagRuns", content=got).raise_for_status()
    channel.basic_ack(method.delivery_tag)
    return time.perf_counter() - began
