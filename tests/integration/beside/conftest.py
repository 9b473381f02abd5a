"""Both systems on one queue and one database: the stand-in for the old worker and our reconciler as processes, ours
with a stand-in for Airflow whose tasks are the real ones."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from ingest_consumer.addresses import MysqlUrl as AnyMysqlUrl
from ingest_consumer.settings import Settings
from tests import builders
from tests.builders import Document, Line
from tests.fake_airflow import FakeAirflow
from tests.integration.opname.walk import running_tasks
from tests.queue_fixtures import airflow, rows, running, settings, vhost
from tests.queue_rig import ROOT, Vhost, environment, until

__all__ = ["airflow", "rows", "running", "settings", "vhost"]

OLD_WORKER = Path(__file__).with_name("old_worker.py")
IMPATIENT = {
    "EVEREST_RECONCILER_PERIOD_S": "0.1",
    "EVEREST_RECONCILER_QUIET_S": "0",
    "EVEREST_RECONCILER_LOST_AFTER_S": "1",
    "EVEREST_RECONCILER_REQUEUE_EVERY_S": "1",
}


@pytest.fixture
def tasks(database: MysqlUrl, airflow: FakeAirflow) -> Iterator[None]:
    """DAG runs that are triggered run through their steps, two at a time."""
    with running_tasks(airflow, database):
        yield


class OldWorker:
    """One process of the old worker."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)

    def is_posting(self) -> bool:
        return any(line.startswith("posting") for line in self.said)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def old_workers(mysql: AnyMysqlUrl, vhost: Vhost) -> Iterator[Callable[..., OldWorker]]:
    """Starts them; at the end they are killed."""
    started: list[OldWorker] = []
    login = f"{quote(mysql.user)}:{quote(mysql.password, safe='')}"
    url = f"mysql://{login}@{mysql.host}:{mysql.port}/{mysql.schema}"

    def start(*arguments: str) -> OldWorker:
        command = [sys.executable, str(OLD_WORKER), vhost.amqp_url, url, *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        one = OldWorker(process)
        started.append(one)
        until(lambda: one.said, "the old worker started")
        assert one.said[0] == "ready\n", one.said
        return one

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def old_worker(settings: Settings, vhost: Vhost) -> Iterator[Callable[..., OldWorker]]:
    with old_workers(settings.mysql, vhost) as start:
        yield start


@contextmanager
def reconciling(settings: Settings, log: Path, **changes: str) -> Iterator[subprocess.Popen[bytes]]:
    """Inside, the reconciler runs, as impatient as its settings let it be: what is in no queue for a second is lost to
    it, and it asks after every job at once."""
    env = environment(settings) | IMPATIENT | changes
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "everest.reconciler"], env=env, stdout=output, stderr=output)
    try:
        yield process
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def reconciler(settings: Settings, vhost: Vhost, tmp_path: Path) -> Iterator[Path]:
    """Its log."""
    vhost.declare()
    log = tmp_path / "reconciler.log"
    with reconciling(settings, log):
        yield log


@dataclass
class Site:
    """What the web application does: it stores a document, and publishes its message itself."""

    connection: Any
    vhost: Vhost
    numbers: Iterator[int]

    def submit(self, lines: Sequence[Line] | None = None, **header: Any) -> Document:
        """A document over items of its own, so that no count makes another one stale."""
        number = next(self.numbers)
        made = lines or (Line(f"A{number}", "10", "12", "1500.00"), Line(f"B{number}", "7", "5", f"{number}.505"))
        return builders.document(self.connection, made, nomer_nota=f"SO-{number:04}", **header)

    def publish(self, documents: Sequence[Document]) -> None:
        for document in documents:
            self.vhost.publish(document.message)

    def statuses(self) -> list[str]:
        found = builders.rows(self.connection, "SELECT worker_status FROM rabbit_publish_shadow")
        return [row["worker_status"] for row in found]

    def all_completed(self) -> bool:
        return set(self.statuses()) == {"COMPLETED"}

    def posted_by_old(self) -> set[str]:
        found = builders.rows(self.connection, "SELECT DISTINCT nomer_nota FROM jurnal WHERE posting_id IS NULL")
        return {row["nomer_nota"] for row in found}

    def posted_by_new(self) -> set[str]:
        return {row["nomer_nota"] for row in builders.rows(self.connection, "SELECT nomer_nota FROM posting_sets")}

    def books(self) -> dict[str, tuple[Any, ...]]:
        """By nota, whoever posted it: journal rows, stock-card rows, debit, and the movement of inventory in both."""
        sums = """
            SELECT j.nomer_nota, j.baris, j.debet, j.persediaan, k.baris AS kartu, k.nilai
            FROM (SELECT nomer_nota, COUNT(*) AS baris, SUM(debet) AS debet,
                         SUM(IF(kode_akun = '1010030030', debet - kredit, 0)) AS persediaan
                  FROM jurnal GROUP BY nomer_nota) j
            JOIN (SELECT nomer_nota, COUNT(*) AS baris, SUM(nilai) AS nilai FROM kartu_stok GROUP BY nomer_nota) k
              ON k.nomer_nota = j.nomer_nota
        """
        found = builders.rows(self.connection, sums)
        return {row["nomer_nota"]: tuple(row.values())[1:] for row in found}


@pytest.fixture
def site(database: MysqlUrl, vhost: Vhost) -> Iterator[Site]:
    vhost.declare()
    with closing(store.connect(database)) as conn:
        yield Site(conn, vhost, itertools.count(1))
