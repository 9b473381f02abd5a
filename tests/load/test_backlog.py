"""A backlog of thousands of messages, against a stand-in for Airflow: all of them wait in the queue at once, then all
are settled, and no process grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from ingest_consumer import shadow as jobs
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests import queue_rig
from tests.fake_airflow import FakeAirflow
from tests.load.resident import growing, resident_kib
from tests.queue_rig import ROOT, Rows, Vhost, environment

BACKLOG, FEW = 10_000, 600
PARTS = 5
ROOM_KIB = 2_048
"""What allocators and caches may still take after the first part. A leak of one message in a backlog of 10,000, half a
KiB, would be 4 MiB by the end."""
BROKER_ROOM_KIB = 32_768
"""The broker is everybody's: connections of other tests come and go meanwhile."""
WAITING_KIB = 16
"""For one message of ours, of 0.2 KiB. Measured are 12: 0.7 is the queue's own, 5 the block of the connection that it
came in, the rest the allocator's, which gives it back within a minute."""
COMMANDS = {
    "relay": ("ingest_consumer", "relay"),
    "consumer": ("ingest_consumer", "consume", "--workers", "4"),
    "reconciler": ("everest.reconciler",),
}


@dataclass
class Within:
    """A database whose transactions are all part of one."""

    conn: Any

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        yield self.conn


class Programs:
    """The real programs as processes, their logs in files: a pipe that nobody reads would stop them."""

    def __init__(self, settings: Settings, logs: Path) -> None:
        self._env = environment(settings) | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
        self._logs = logs
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self.samples: dict[str, list[int]] = {}

    def start(self, name: str) -> None:
        with (self._logs / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", *COMMANDS[name]]
            self._started[name] = subprocess.Popen(command, env=self._env, stdout=log, stderr=log)

    def sample(self) -> None:
        for name, process in self._started.items():
            self.samples.setdefault(name, []).append(resident_kib(process.pid))

    def stop(self) -> None:
        for process in self._started.values():
            process.terminate()
        for process in self._started.values():
            process.wait(60)


@pytest.fixture
def programs(settings: Settings, vhost: Vhost, tmp_path: Path) -> Iterator[Programs]:
    vhost.declare()
    made = Programs(settings, tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize(
    "backlog", [pytest.param(BACKLOG, id="ten thousand", marks=pytest.mark.long), pytest.param(FEW, id="hundreds")]
)
def test_a_backlog_is_worked_off_and_no_process_grows(
    backlog: int,
    settings: Settings,
    vhost: Vhost,
    airflow: FakeAirflow,
    rows: Rows,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First all of it lies in the outbox, then, with the relay alone, in the queue; only then somebody works. Each job
    is done the moment it is triggered, so that the consumer works as fast as it can."""
    monkeypatch.setattr(queue_rig, "PATIENCE_S", 1_200)

    def finish(run_id: str, conf: dict[str, Any]) -> None:
        with closing(Database(settings.mysql, settings.mysql_timeout)) as database:
            Rows(database).end(conf["shadow_id"], "COMPLETED")
        airflow.runs[run_id]["state"] = "success"
        airflow.calls.clear()

    airflow.on_trigger = finish
    with rows.database.transaction() as conn:
        within = Rows(cast("Database", Within(conn)))
        for number in range(1, backlog + 1):
            body = within.body(within.ours(number, run_status="completed"))
            shadow_id, workflow_id = body["shadow_id"], body["workflow_id"]
            jobs.enqueue(conn, shadow_id=shadow_id, workflow_id=workflow_id, body=json.dumps(body))

    broker = [broker_kib(vhost)]
    began = time.monotonic()
    programs.start("relay")
    for part in range(1, PARTS + 1):
        queue_rig.until(partial(_are_waiting, vhost, part * backlog // PARTS), f"part {part} of {PARTS} published")
        programs.sample()
    published_s = time.monotonic() - began
    queue_rig.until(lambda: not rows.do("SELECT id FROM outbox WHERE published_at IS NULL"), "an empty outbox")
    assert vhost.depth("everest.jobs.q") == backlog, "each of them waits, once"
    if backlog == BACKLOG:
        queue_rig.until(lambda: waiting_as_told(vhost) == backlog, "the broker's figures are of this moment")
    broker.append(broker_kib(vhost))

    began = time.monotonic()
    programs.start("consumer")
    programs.start("reconciler")
    for part in range(1, PARTS + 1):
        queue_rig.until(partial(_are_done, rows, part * backlog // PARTS), f"part {part} of {PARTS}")
        programs.sample()
    worked_off_s = time.monotonic() - began
    queue_rig.until(lambda: vhost.depth("everest.jobs.q") == 0, "an empty queue")
    if backlog == BACKLOG:
        queue_rig.until(lambda: waiting_as_told(vhost) == 0, "the broker's figures are of this moment")
    broker.append(broker_kib(vhost))

    print(f"{backlog} messages, published in {published_s:.0f} s, worked off in {worked_off_s:.0f} s")
    print(f"resident KiB after each fifth, of the relay's publishing, too: {programs.samples}")
    print(f"the broker's KiB before, with all of them waiting, and afterwards: {broker}")
    assert not growing(programs.samples, ROOM_KIB)
    assert not growing({"broker": broker}, BROKER_ROOM_KIB)
    assert broker[1] - broker[0] <= BROKER_ROOM_KIB + WAITING_KIB * backlog
    assert len(airflow.runs) == backlog, "each run was begun once"


def broker_kib(vhost: Vhost) -> int:
    """The whole broker's memory, as it counts it itself every few seconds."""
    return sum(int(node["mem_used"]) for node in vhost.api("GET", "nodes")) // 1_024


def waiting_as_told(vhost: Vhost) -> int:
    """The messages in the queue by the broker's figures, which are as old as those of its memory."""
    queues = {queue["name"]: queue for queue in vhost.api("GET", f"queues/{vhost.name}")}
    return int(queues["everest.jobs.q"].get("messages", -1))


def _are_waiting(vhost: Vhost, many: int) -> bool:
    return vhost.depth("everest.jobs.q") >= many


def _are_done(rows: Rows, many: int) -> bool:
    ((done,),) = rows.do("SELECT COUNT(*) FROM rabbit_publish_shadow WHERE worker_status = 'COMPLETED'")
    return int(done) >= many


def test_the_judge_of_memory_sees_a_program_that_grows() -> None:
    assert growing({"a": [100, 5_000]}, ROOM_KIB)
    assert not growing({"a": [5_000, 100], "b": [100, 100 + ROOM_KIB]}, ROOM_KIB)
