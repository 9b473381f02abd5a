"""A backup is taken while everything works, and restored when broker and Airflow have gone on: docs/operations.md,
"Restore", step by step (decision 0045)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from everest import bootstrap
from everest.audit.invariants import BY_KEY
from everest.audit.run import Auditor, audit
from everest.audit.settings import AuditSettings
from everest.intake.submission import Authority, Submission
from everest.intake.submission import Line as Counted
from everest.intake.submit import submit_document
from everest.opname.workflow import POST_OPNAME
from everest.reconciler.management import Management
from everest.reconciler.rounds import Reconciler
from everest.reconciler.settings import Limits, ReconcilerSettings
from everest.settings import MysqlUrl
from everest.settings import Settings as Site
from everest.store import database as store
from everest.store.migrations import migrate
from ingest_consumer import dead_letters
from ingest_consumer.addresses import Login
from ingest_consumer.airflow_api import AirflowApi
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests import builders, fake_airflow
from tests.builders import Line
from tests.fake_airflow import FakeAirflow
from tests.integration.opname.walk import running_tasks
from tests.migrations import dumps
from tests.queue_rig import ROOT, Running, Vhost, until

# What can be asked of the rows alone: the other three are about processes and the broker.
OF_THE_BOOKS = [
    key for key in BY_KEY if key not in ("processing_has_live_run", "pending_is_not_overdue", "failure_has_dead_letter")
]
IMPATIENT = Limits(
    quiet=timedelta(0),
    hold_limit=timedelta(seconds=3),
    lost_after=timedelta(0),
    requeue_every=timedelta(0),
    dead_letter_after=timedelta(0),
)
GAP = 1_000_000
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
(LETTERS_AGAIN,) = re.findall(r"`(UPDATE rabbit_publish_shadow SET dead_lettered_at = NULL[^`]+)`", OPERATIONS)
"""As the person who restores it reads it."""


def set_up_anew(vhost: Vhost) -> None:
    """The broker has lost everything but its accounts, which come from a file."""
    granted = vhost.api("GET", f"vhosts/{vhost.name}/permissions")
    vhost.api("DELETE", f"vhosts/{vhost.name}")
    vhost.api("PUT", f"vhosts/{vhost.name}")
    for one in granted:
        rights = {name: one[name] for name in ("configure", "write", "read")}
        vhost.api("PUT", f"permissions/{vhost.name}/{one['user']}", rights)


class Traffic:
    """A web application that stores documents and publishes them, and people who submit files, until told to stop."""

    def __init__(self, url: MysqlUrl, vhost: Vhost) -> None:
        self._url, self._vhost = url, vhost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        opened = bootstrap.database(self._url, Site())
        with closing(store.connect(self._url)) as conn:
            number = 0
            while not self._stop.wait(0.03):
                number += 1
                foreign = {"nomer_nota": f"SO-{number:04}", "transaksi_id": 900_000 - number}
                document = builders.document(conn, [Line(f"A{number}"), Line(f"B{number}", "7", "5")], **foreign)
                self._vhost.publish(document.message)
                line = Counted(f"C{number}", qty_sistem=Decimal(1), qty_fisik=Decimal(2), harga_pokok=Decimal(5))
                submission = Submission(f"CLI-{number:04}", "GD-A", date(2026, 8, 31), (line,))
                submit_document(opened.transaction, submission, Authority("sari", "budi", 2))
        opened.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


def statuses(url: MysqlUrl) -> dict[str, str]:
    with closing(store.connect(url)) as conn:
        found = builders.rows(conn, "SELECT nomer_nota, worker_status FROM rabbit_publish_shadow")
        return {row["nomer_nota"]: row["worker_status"] for row in found}


def nota_of(letter: dead_letters.Letter) -> str:
    return str(letter.as_json()["nota"])


def broken_invariants(url: MysqlUrl) -> dict[str, int]:
    opened = bootstrap.database(url, Site())
    auditor = Auditor(opened.transaction, AuditSettings(), None, None, lambda: 0)  # type: ignore[arg-type]
    try:
        reports = {key: audit(auditor, BY_KEY[key], "tes") for key in OF_THE_BOOKS}
        return {key: report.found for key, report in reports.items() if report.outcome != "CLEAN"}
    finally:
        opened.close()


@contextmanager
def reconciler(url: MysqlUrl, vhost: Vhost, airflow: FakeAirflow) -> Iterator[Reconciler]:
    login = Login(airflow.url, fake_airflow.USER, fake_airflow.PASSWORD)
    management = Login(vhost.management.url, vhost.management.user, vhost.management.password)
    settings = ReconcilerSettings(
        mysql=url, airflow=login, management=management, http_timeout=timedelta(seconds=5), limits=IMPATIENT
    )
    with (
        closing(bootstrap.database(url, Site())) as opened,
        closing(AirflowApi(login.url, login.user, login.password, settings.http_timeout)) as api,
        closing(Management(management, vhost.name, settings.http_timeout)) as broker,
    ):
        yield Reconciler(settings, opened, api, broker, bootstrap.deployed, {POST_OPNAME.name: POST_OPNAME})


@pytest.mark.parametrize(
    "all_is_lost",
    [
        pytest.param(False, id="broker and Airflow have gone on"),
        pytest.param(True, id="broker and Airflow are lost, too", marks=pytest.mark.long),
    ],
)
def test_a_dump_taken_under_traffic_is_restored_audited_and_everything_in_it_ends(
    all_is_lost: bool,
    database: MysqlUrl,
    empty_schema: MysqlUrl,
    vhost: Vhost,
    airflow: FakeAirflow,
    running: Running,
    settings: Settings,
    tmp_path: Path,
) -> None:
    vhost.declare()
    with closing(store.connect(database)) as conn:
        builders.warehouse(conn, "GD-A")
        refused = builders.document(conn, [Line("Z", "1", None)], nomer_nota="SALAH", transaksi_id=950_000)
        conn.commit()
    vhost.publish(refused.message)
    with running_tasks(airflow, database):
        running.consumer(settings, workers=2)
        running.relay(settings)
        until(lambda: statuses(database).get("SALAH") == "FAILED", "one document failed")
        traffic = Traffic(database, vhost)
        until(lambda: list(statuses(database).values()).count("COMPLETED") >= 12, "some are posted")
        content = dumps.dump(database, tmp_path)
        # The world goes on, up to the moment at which the database is lost: what is published last nobody takes.
        at_the_dump = set(statuses(database))
        until(lambda: len(statuses(database)) > len(at_the_dump) + 10, "more came")
        running.stop()
    traffic.stop()
    lost = statuses(database)
    for run in airflow.runs.values():
        run["state"] = "success"
    if all_is_lost:
        airflow.runs.clear()
        set_up_anew(vhost)

    # Load, migrate, and look at the books before anything works on them.
    dumps.load(empty_schema, content, tmp_path)
    assert migrate(empty_schema, lambda line: None) == []
    then = statuses(empty_schema)
    assert set(then.values()) >= {"COMPLETED", "FAILED"}
    assert 0 < len(then) < len(lost)
    assert broken_invariants(empty_schema) == {}
    # Numbers that documents of the lost hours had are not given again.
    with closing(store.connect(empty_schema)) as conn, conn.cursor() as cursor:
        for table in ("transaksi", "rabbit_publish_shadow", "workflow_runs"):
            cursor.execute(f"ALTER TABLE {table} AUTO_INCREMENT = {GAP}")
        # Letters that were replayed or settled in the lost hours are written again.
        cursor.execute(LETTERS_AGAIN)
        conn.commit()
    if not all_is_lost:
        vhost.read("everest.jobs.failed.dlq")  # somebody dealt with the letter meanwhile

    mysql = replace(settings.mysql, schema=empty_schema.schema)
    restored = replace(settings, mysql=mysql)
    with reconciler(empty_schema, vhost, airflow) as watch, running_tasks(airflow, empty_schema):
        running.relay(restored)
        running.consumer(restored, workers=2)

        def everything_ended() -> bool:
            watch.round()
            return set(statuses(empty_schema).values()) <= {"COMPLETED", "FAILED"}

        until(everything_ended, "every document of the backup ended")
        opened = bootstrap.database(empty_schema, Site())
        line = Counted("NEU", qty_sistem=Decimal(1), qty_fisik=Decimal(2), harga_pokok=Decimal(5))
        fresh = Submission("BARU-1", "GD-A", date(2026, 8, 31), (line,))
        submit_document(opened.transaction, fresh, Authority("sari", "budi", 2))
        opened.close()
        until(lambda: statuses(empty_schema)["BARU-1"] == "COMPLETED", "and so does a new one")
        until(lambda: watch.round() == 0 and vhost.depth("everest.jobs.q") == 0, "nothing is left to do")
        running.stop()

    now = statuses(empty_schema)
    assert {nota for nota, status in now.items() if status == "FAILED"} == {"SALAH"}
    assert set(now) == {*then, "BARU-1"}
    assert broken_invariants(empty_schema) == {}
    with closing(store.connect(empty_schema)) as conn:
        assert builders.books(conn).postings == len(now) - 1
        assert builders.books(conn).agree

    # What came after the dump is in the dead-letter queue as far as its message had not been taken, by nota.
    with closing(vhost.connect()) as connection:
        mine = Database(mysql, timedelta(seconds=5))
        with dead_letters.opened(connection, mine, 5) as box:
            assert box is not None
            letters = [letter for letter in box.letters if letter.standing is dead_letters.Standing.BROKEN]
            named = {nota_of(letter) for letter in box.letters if letter not in letters}
        mine.close()
    assert named == {"SALAH"}, "its letter was written again"
    assert all("does not exist" in letter.reason for letter in letters)
    if all_is_lost:
        assert not letters, "no message outlived the broker"
        return
    gone = {nota for nota in lost if nota not in then and lost[nota] == "PENDING" and nota.startswith("SO-")}
    assert {nota_of(letter) for letter in letters} >= gone
