"""A backlog of thousands of messages, against a stand-in for Airflow: all of them settled, and no process grows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ingest_consumer import shadow as jobs
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests import queue_rig
from tests.fake_airflow import FakeAirflow
from tests.load.resident import growing, resident_kib
from tests.queue_rig import Rows, Vhost, environment

BACKLOG, FEW = 10_000, 600
PARTS = 5
ROOM_KIB = 2_048
"""What allocators and caches may still take after the first part. A leak of one message in a backlog of 10,000, half a
KiB, would be 4 MiB by the end."""


@pytest.fixture
def programs(settings: Settings, vhost: Vhost, tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """The real consumer and relay, their logs in files: a pipe that nobody reads would stop them."""
    vhost.declare()
    started = {}
    for name, arguments in {"consumer": ["consume", "--workers", "4"], "relay": ["relay"]}.items():
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "ingest_consumer", *arguments]
            started[name] = subprocess.Popen(command, env=environment(settings), stdout=log, stderr=log)
    yield started
    for process in started.values():
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize(
    "backlog", [pytest.param(BACKLOG, id="ten thousand", marks=pytest.mark.long), pytest.param(FEW, id="hundreds")]
)
def test_a_backlog_is_worked_off_and_no_process_grows(
    backlog: int,
    settings: Settings,
    airflow: FakeAirflow,
    rows: Rows,
    programs: dict[str, subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each job is done the moment it is triggered, so that the consumer works as fast as it can."""
    monkeypatch.setattr(queue_rig, "PATIENCE_S", 1_200)

    def finish(_run_id: str, conf: dict[str, Any]) -> None:
        with closing(Database(settings.mysql, settings.mysql_timeout)) as database:
            Rows(database).end(conf["shadow_id"], "COMPLETED")
        airflow.calls.clear()

    airflow.on_trigger = finish
    ids = [rows.ours(number) for number in range(1, backlog + 1)]
    for body in map(rows.body, ids):
        with rows.database.transaction() as conn:
            shadow_id, workflow_id = body["shadow_id"], body["workflow_id"]
            jobs.enqueue(conn, shadow_id=shadow_id, workflow_id=workflow_id, body=json.dumps(body))

    samples: dict[str, list[int]] = {name: [] for name in programs}
    for part in range(1, PARTS + 1):
        queue_rig.until(partial(_are_done, rows, part * backlog // PARTS), f"part {part} of {PARTS}")
        for name, process in programs.items():
            samples[name].append(resident_kib(process.pid))

    print(f"{backlog} messages, resident KiB after each fifth: {samples}")
    assert not growing(samples, ROOM_KIB)
    assert len(airflow.runs) == backlog, "each run was begun once"
    queue_rig.until(lambda: not rows.do("SELECT id FROM outbox WHERE published_at IS NULL"), "an empty outbox")


def _are_done(rows: Rows, many: int) -> bool:
    ((done,),) = rows.do("SELECT COUNT(*) FROM rabbit_publish_shadow WHERE worker_status = 'COMPLETED'")
    return int(done) >= many


def test_the_judge_of_memory_sees_a_program_that_grows() -> None:
    assert growing({"a": [100, 5_000]}, ROOM_KIB)
    assert not growing({"a": [5_000, 100], "b": [100, 100 + ROOM_KIB]}, ROOM_KIB)
