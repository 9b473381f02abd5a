"""A backup of the running stack, everything lost, and the guide's way back: docs/operations.md, "Backup and restore",
with the commands as they stand there, on the real database, broker and Airflow.

Takes the stack apart and puts it together again, so it runs alone and is `long`.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stack import airflow as airflow_part
from stack import machine, manager
from stack.layout import Layout
from stack.programs import Stack
from stack.roster import Program
from stack.up import up
from tests import builders
from tests.acceptance.counting import QUEUE, assert_posted_once, count
from tests.acceptance.live import Live, until
from tests.acceptance.surprising import everest, surprising
from tests.builders import Document
from tests.conftest import administer
from tests.migrations import dumps
from tests.queue_rig import ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
AT_WORK = ("workers", "everest", "more")
IMPATIENT = {"EVEREST_RECONCILER_LOST_AFTER_S": "10", "EVEREST_HOLD_LIMIT_S": "30"}


def told(pattern: str) -> str:
    """A command of the guide, as far as the pattern's group reaches."""
    found = re.search(pattern, OPERATIONS, re.MULTILINE)
    assert found, f"docs/operations.md says nothing like {pattern}"
    return found[1]


class Site:
    """The stack in an operator's hands."""

    def __init__(self, live: Live, folder: Path) -> None:
        self.live, self.folder = live, folder
        self.layout = Layout.here()
        self.stack = Stack.open(self.layout)

    def programs(self, *roles: str) -> list[Program]:
        """Those that write, Airflow's included; or these."""
        chosen = [one for one in self.stack.programs if one.group in AT_WORK or one.name.startswith("airflow")]
        return [one for one in chosen if one.role in roles] if roles else chosen

    def stop(self, *roles: str) -> None:
        for program in reversed(self.programs(*roles)):
            manager.stop_program(self.layout, program)

    def start(self, *roles: str) -> None:
        for program in self.programs(*roles):
            manager.start_program(self.layout, program)

    # ------------------------------------------------------------------------------------- Airflow's database

    def postgres(self, tool: str, *words: str, content: bytes | None = None, database: str = "airflow") -> bytes:
        """A client of PostgreSQL's as its administrator runs it; the password is not on the command line."""
        folder = machine.require(machine.postgresql_bin(), "PostgreSQL")
        where = ["--host=127.0.0.1", f"--port={self.stack.ports.postgresql}", "--username=everest_admin"]
        env = {"PATH": machine.SYSTEM_PATH, "PGPASSWORD": self.stack.credentials.postgresql_admin}
        command = [folder / tool, *where, *words, database]
        done = subprocess.run(command, env=env, input=content, capture_output=True, check=False)
        assert done.returncode == 0, f"{tool} {words}: {done.stderr.decode()}"
        return done.stdout

    # ---------------------------------------------------------------------------------------------- the three

    def back_up(self) -> dict[str, bytes]:
        return {
            "books": dumps.dump(self.live.mysql, self.folder),
            "airflow": self.postgres("pg_dump", *told(r"^pg_dump (.*) airflow >").split()),
            "broker": self.live.rabbitmqctl(*told(r"^rabbitmqctl (export_definitions .*) >").split()).encode(),
        }

    def lose_everything(self) -> None:
        """No row of the books, none of Airflow's, no queue, no exchange."""
        server = self.live.mysql
        administer(server, f"DROP DATABASE `{server.schema}`")
        self.postgres("dropdb", "--force")
        self.live.rabbitmqctl("stop_app")
        self.live.rabbitmqctl("reset")
        self.live.rabbitmqctl("start_app")

    def restore(self, backup: dict[str, bytes], with_airflow: bool) -> None:
        """Steps 2 and 3 of the guide, and 5 and 6 as far as they are commands."""
        server = self.live.mysql
        administer(server, f"CREATE DATABASE `{server.schema}` CHARACTER SET utf8mb4")
        dumps.load(server, backup["books"], self.folder)
        self.live.run("everest", "migrate")
        self.live.run("everest", "grant")
        self.postgres("createdb", "--owner=airflow")
        if with_airflow:
            options = told(r"^pg_restore (.*) --dbname=airflow <").split()
            self.postgres("pg_restore", *options, "--dbname", content=backup["airflow"])
        else:
            (self.layout.data / "postgresql-airflow-version").unlink(missing_ok=True)
            airflow_part.migrate(self.stack)
        file = self.layout.data / "rabbitmq" / "restored.json"  # where the broker's user can read
        file.write_bytes(backup["broker"])
        file.chmod(0o644)
        self.live.rabbitmqctl("import_definitions", str(file))
        file.unlink()
        with self.live.connection() as conn, conn.cursor() as cursor:
            cursor.execute(told(r"`(UPDATE rabbit_publish_shadow SET dead_lettered_at = NULL[^`]+)`"))
            conn.commit()

    def leave_a_gap(self, above: int) -> None:
        with self.live.connection() as conn, conn.cursor() as cursor:
            for table in re.findall(r"\w+", told(r"for table in ([\w ]+); do")):
                cursor.execute(f"ALTER TABLE {table} AUTO_INCREMENT = {above}")

    def findings(self) -> dict[str, int]:
        """By invariant of the books, as the guide's command tells them."""
        command = told(r"^python -m (everest audit --only .*)$").split()
        done = self.live.run(*command, "--json", check=False)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        told_by = json.loads(done.stdout)["invariants"]
        assert len(told_by) == command.count("--only")
        return {one["key"]: one["found"] for one in told_by}


@pytest.fixture
def site(live: Live, tmp_path: Path) -> Iterator[Site]:
    site = Site(live, tmp_path)
    yield site
    up(site.layout)


def statuses(live: Live) -> dict[int, str]:
    return {row["id"]: row["worker_status"] for row in live.rows("SELECT id, worker_status FROM rabbit_publish_shadow")}


def numbers(live: Live) -> int:
    """Above every number that anybody has seen."""
    tables = (("transaksi", "id"), ("rabbit_publish_shadow", "id"), ("so_headers_staging", "transaksi_id"))
    (row,) = live.rows("SELECT GREATEST(" + ", ".join(f"(SELECT MAX({c}) FROM {t})" for t, c in tables) + ") AS n")
    return int(row["n"])


@contextmanager
def at_work(live: Live) -> Iterator[Document]:
    """A document whose task waits in the middle of its posting, for as long as the block lasts."""
    kode = f"GD-{time.time_ns()}"
    document = live.document(count(), gudang_kode=kode)
    with live.connection() as conn, conn.cursor() as cursor:
        cursor.execute("SELECT gudang_kode FROM gudang WHERE gudang_kode = %s FOR UPDATE", (kode,))
        live.publish(document.message)
        live.task_process("%FROM gudang WHERE gudang_kode IN%FOR UPDATE%")
        yield document
        conn.rollback()


def submitted(live: Live, folder: Path, nota: str) -> int:
    """From the command line; its message waits in the outbox for a relay. Returns its job."""
    sheet = folder / f"{nota}.csv"
    sheet.write_text(f"kode_barang,qty_sistem,qty_fisik,harga_pokok\nITM-{nota},4,5,1000\n", encoding="utf-8")
    details = ("--gudang", "GD-A", "--tanggal-opname", "2026-08-31", "--as", "budi")
    live.run("everest", "submit", str(sheet), "--nota", nota, *details)
    (row,) = live.rows("SELECT id FROM rabbit_publish_shadow WHERE nomer_nota = %s", nota)
    return int(row["id"])


def unpublished(live: Live, shadow_id: int) -> bool:
    return bool(live.rows("SELECT 1 FROM outbox WHERE shadow_id = %s AND published_at IS NULL", shadow_id))


def waiting_messages(live: Live) -> int:
    with live.channel() as channel:
        return int(channel.queue_declare(QUEUE, passive=True).method.message_count)


@pytest.mark.long
@pytest.mark.parametrize(
    "with_airflow", [pytest.param(True, id="Airflow's dump, too"), pytest.param(False, id="Airflow begins empty")]
)
def test_what_was_backed_up_in_any_state_is_there_again_and_goes_on(
    live: Live, site: Site, with_airflow: bool, tmp_path: Path
) -> None:
    name = f"PULIH-{time.time_ns()}"
    with live.connection() as conn:
        builders.warehouse(conn, "GD-A")
    posted, failed, waiting = live.document(count()), live.document(count(cost=None)), surprising(live)
    for document in (posted, failed):
        live.publish(document.message)
    live.wait_for(posted.shadow_id, "COMPLETED")
    live.wait_for(failed.shadow_id, "FAILED")
    live.wait_for(waiting.shadow_id, "WAITING")
    until("the letter of the failed one", lambda: live.dead_letters(failed.shadow_id), every=1)
    findings = site.findings()

    with at_work(live) as working:
        site.stop("relay", "consumer")
        unsent, queued = submitted(live, tmp_path, name), live.document(count())
        live.publish(queued.message)
        then = statuses(live)
        assert (then[unsent], then[queued.shadow_id], then[working.shadow_id]) == ("PENDING", "PENDING", "PROCESSING")
        assert unpublished(live, unsent)
        assert waiting_messages(live) >= 1
        backup = site.back_up()

    # The lost hours: everything is posted, and one more that the backup does not know.
    site.start("relay", "consumer")
    everest(live, "approve", waiting.nomer_nota, "--reason", "barang datang pagi")
    lost = live.document(count())
    live.publish(lost.message)
    everyone = [posted, waiting, working, queued, lost]
    for shadow_id in (unsent, *(one.shadow_id for one in everyone)):
        live.wait_for(shadow_id, "COMPLETED")
    seen = numbers(live)

    site.stop()
    site.lose_everything()
    site.restore(backup, with_airflow)
    assert statuses(live) == then
    assert site.findings() == findings
    site.leave_a_gap(above=seen + 1_000_000)
    up(site.layout, overrides={"reconciler": IMPATIENT, "consumer": IMPATIENT})

    for shadow_id in (unsent, working.shadow_id, queued.shadow_id):
        live.wait_for(shadow_id, "COMPLETED", "FAILED")
    for document in (posted, working, queued):
        assert_posted_once(live, document)
    assert len(live.postings(name)) == 1
    assert live.rows("SELECT 1 FROM rabbit_publish_shadow WHERE nomer_nota = %s", lost.nomer_nota) == []
    until("the letter of the failed one, written again", lambda: live.dead_letters(failed.shadow_id), every=1)

    # People go on, too.
    assert live.shadow(waiting.shadow_id)["worker_status"] == "WAITING"
    everest(live, "approve", waiting.nomer_nota, "--reason", "sekali lagi")
    live.correct(failed, count())
    live.run("everest", "rerun", failed.nomer_nota)
    fresh = submitted(live, tmp_path, f"{name}-BARU")
    assert fresh > seen, "no number of the lost hours is given again"
    for shadow_id in (fresh, waiting.shadow_id, failed.shadow_id):
        live.wait_for(shadow_id, "COMPLETED")
    for document in (waiting, failed):
        assert_posted_once(live, document)
    assert site.findings() == findings
    assert set(then.values()) >= {"COMPLETED", "FAILED", "WAITING", "PENDING", "PROCESSING"}, "each was in the backup"
