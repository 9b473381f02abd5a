"""An installation of ten years ago is adopted: what stands in the way is named, its owner mends it with what the
refusal says, nothing is lost, and from then on every program works on it under its own account.

On a server of its own, because empty sql_mode and latin1 are set for a whole server there.
"""

from __future__ import annotations

import itertools
import json
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import MySQLdb
import pytest

from everest import bootstrap
from everest.audit.invariants import BY_KEY
from everest.audit.run import Auditor, audit
from everest.audit.settings import AuditSettings
from everest.settings import MysqlUrl, Settings
from everest.store import database as store
from everest.store.database import load_queries
from everest.store.grants import grant
from everest.store.migrations import MigrationError, migrate, split
from ingest_consumer.settings import Settings as QueueSettings
from tests import builders
from tests.builders import Line
from tests.conftest import administer
from tests.fake_airflow import FakeAirflow
from tests.integration.beside.conftest import Site, old_workers, reconciling
from tests.integration.beside.ledger import ledger
from tests.integration.opname.walk import Walker, running_tasks
from tests.migrations import shape
from tests.queue_rig import ROOT, Running, Vhost, until
from tests.security.conftest import as_account

OLDER = Path(__file__).resolve().parents[1] / "migrations" / "older_installation.sql"
GUIDE = ROOT / "docs" / "existing-installations.md"
STATUS_KIND = (
    "SELECT column_type FROM information_schema.columns WHERE table_schema = DATABASE()"
    " AND table_name = 'rabbit_publish_shadow' AND column_name = 'worker_status'"
)
OLD_JOBS = "SELECT id, worker_status, dag_run_id FROM rabbit_publish_shadow WHERE id <= 4 ORDER BY id"
OWNERS_SESSION = "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'"


@pytest.fixture
def older(granted_schema: MysqlUrl) -> Iterator[MysqlUrl]:
    """The old schema beside ours, on a server as it was then."""
    url = replace(granted_schema, schema="older")
    with closing(store.connect(granted_schema)) as conn, conn.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.sql_mode")
        (strict,) = cursor.fetchone()
    administer(url, "SET GLOBAL sql_mode = ''")
    administer(url, "CREATE DATABASE older CHARACTER SET latin1")
    statements = [statement for statement, _ in split(OLDER.read_text(encoding="utf-8"), OLDER.name)]
    as_owner(url, "SET SESSION sql_mode = '', time_zone = '+00:00'", statements)
    yield url
    administer(url, "DROP DATABASE older")
    administer(url, f"SET GLOBAL sql_mode = '{strict}'")


def as_owner(url: MysqlUrl, session: str, statements: list[str]) -> None:
    """What the owner of the old application types, with a client that speaks utf8mb4."""
    with closing(
        MySQLdb.connect(
            host=url.host, port=url.port, user=url.user, passwd=url.password, db=url.schema, charset="utf8mb4"
        )
    ) as conn:
        conn.query(session)
        with conn.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        conn.commit()


def refused(url: MysqlUrl) -> str:
    with pytest.raises(MigrationError) as caught:
        migrate(url, lambda line: None)
    return caught.value.message


def mend(url: MysqlUrl, message: str, status: str = "VARCHAR(20)") -> None:
    """What the refusal wrote down, but for what only the owner can decide. status: what becomes of `worker_status`."""
    whole = [line.strip() for line in message.splitlines() if line.startswith("  ALTER")]
    touched = {line.split()[2] for line in whole}
    single = [one for one in re.findall(r"- .*?(ALTER TABLE [^;]*;)", message) if one.split()[2] not in touched]
    zeros = [one.replace("'...'", "'1970-01-01'") for one in re.findall(r"UPDATE [^;]*;", message)]
    whole = [line.replace("worker_status VARCHAR(20)", f"worker_status {status}") for line in whole]
    as_owner(url, OWNERS_SESSION, [*whole, *single, *zeros])


def test_an_older_installation_is_refused_by_name_mended_by_its_owner_and_adopted(older: MysqlUrl) -> None:
    message = refused(older)
    for sentence in (
        "jurnal is kept by MyISAM. ALTER TABLE jurnal ENGINE=InnoDB;",
        "gudang has gudang_kode varchar(10): needed is varchar(40), compares as latin1_swedish_ci",
        "jurnal has debet double: needed is decimal(24,2)",
        "so_details_staging has harga_pokok float: needed is decimal(24,6)",
        "kartu_stok has created_at datetime: needed is datetime(6)",
        "so_headers_staging has created_at timestamp: needed is datetime(6)",
        "transaksi has jenis enum('JUAL','BELI','OPNAME'): is not varchar(20)",
        "worker_status enum('PENDING','PROCESSING','COMPLETED','FAILED'): lacks CANCELLED, WAITING",
        "so_headers_staging holds the same (transaksi_id) more than once: 12.",
        "so_headers_staging holds dates with a zero in tanggal_opname: 1 rows, id = 2",
        "jurnal holds dates with a zero in tanggal_wib: 1 rows, id = 4",
        "rabbit_publish_shadow holds dates with a zero in worker_at: 1 rows, id = 3",
        "nobody can write to it meanwhile",
    ):
        assert sentence in message, sentence

    # What only the owner can decide, then what the refusal wrote down.
    as_owner(older, OWNERS_SESSION, ["DELETE FROM so_headers_staging WHERE id = 2"])
    mend(older, refused(older))
    lines: list[str] = []
    migrate(older, lines.append)

    # Nothing is lost, and text is what it was.
    assert shape.query(older, "SELECT nama, alamat FROM gudang ORDER BY gudang_kode") == [
        ("Gudang Café", "Jl. Ängström 1"),
        ("Gudang Zoë", "Cikarang"),
    ]
    assert shape.query(older, "SELECT nama FROM akun WHERE kode_akun = '7010150'") == [("Laba sélisih",)]
    assert shape.query(older, "SELECT keterangan, debet, kredit, sumber FROM jurnal ORDER BY id") == [
        ("Opname café", Decimal(3750), Decimal(0), "LAMA"),
        ("Opname café", Decimal(0), Decimal(3750), "LAMA"),
        ("Penjualan", Decimal("0.10"), Decimal(0), "LAMA"),
        ("kosong", Decimal(0), Decimal(0), "LAMA"),
    ]
    assert any("adds check ck_jurnal_satu_sisi for our own rows only" in line for line in lines)
    # Codes of the old tables and of ours meet in one collation.
    assert shape.query(
        older,
        "SELECT g.nama, t.pelanggan FROM transaksi t JOIN gudang g ON g.gudang_kode = t.gudang_kode WHERE t.id = 7",
    ) == [("Gudang Café", "Toko Zoë")]
    for status, count in (("FAILED", 1), ("PENDING", 1), ("PROCESSING", 1)):
        assert any(f"holds {count} jobs that are {status}" in line for line in lines), status
    assert migrate(older, lambda line: None) == []

    # Jobs of before are left to a person: no dead letters for them, and nothing is sent again.
    with closing(store.connect(older)) as conn:
        reconciler = load_queries("reconciler")
        assert list(reconciler.without_dead_letter(conn, after_s=0, batch=9, skip=0)) == []
        now = datetime.now(UTC).replace(tzinfo=None)
        lost = reconciler.lost_messages(
            conn,
            lost_after_s=0,
            requeue_every_s=0,
            foreign_before=now,
            foreign_after=now,
            batch=9,
            skip=0,
        )
        assert list(lost) == []

    # From now on: the application goes on writing as it did, our programs work under their accounts.
    grant(older, lambda line: None)
    as_owner(
        older,
        "SET SESSION sql_mode = '', time_zone = '+00:00'",
        [
            (
                "INSERT INTO so_headers_staging (transaksi_id, nomer_nota, gudang_kode, tanggal_opname, snapshot_at,"
                " otorisasi_level, diotorisasi_oleh, diotorisasi_at)"
                " VALUES (21, 'SO-21', 'GD-B', CURDATE(), NOW(), 2, 'Zoë', NOW())"
            ),
            (
                "INSERT INTO so_details_staging (header_id, baris, kode_barang, qty_sistem, qty_fisik, harga_pokok)"
                " VALUES (LAST_INSERT_ID(), 1, 'A', 10, 12.5, 1500)"
            ),
            (
                "INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, payload, publish_status, created_at)"
                " VALUES (21, 'SO-21', '{}', 'PUBLISHED', NOW())"
            ),
            (
                "INSERT INTO kartu_stok (nomer_nota, kode_barang, gudang_kode, tanggal_wib, masuk)"
                " VALUES ('BL-2', 'B', 'GD-B', NOW(), 3)"
            ),
        ],
    )
    (shadow_id,) = shape.query(older, "SELECT MAX(id) FROM rabbit_publish_shadow")[0]
    walker = Walker(as_account(older, "everest_tasks"))
    try:
        assert walker.post(shadow_id) == "COMPLETED"
        settled = again_settled(older, walker)
    finally:
        walker.close()
    assert shape.query(older, "SELECT urutan, kode_akun, debet, kredit FROM jurnal WHERE sumber = 'OPNAME'") == [
        (1, "1010030030", Decimal(3750), Decimal(0)),
        (2, "7010150", Decimal(0), Decimal(3750)),
    ]
    assert "sudah diposting oleh sistem lama" in settled
    assert audited(older) == {"pending_is_not_overdue": 1, "processing_has_live_run": 1}


def again_settled(url: MysqlUrl, walker: Walker) -> str:
    """The message of a further job for a document that the old system had COMPLETED."""
    with closing(store.connect(url)) as conn:
        again = builders.shadow_row(conn, 11, "SO-11")
        conn.commit()
        assert walker.post(again) == "COMPLETED"
        message: str = builders.shadow(conn, again)["response"]["message"]
        return message


def audited(url: MysqlUrl) -> dict[str, int]:
    """What the audit finds, by invariant. Letters and runs cannot be asked for here."""
    database = bootstrap.database(as_account(url, "everest_tasks"), Settings())

    class NoRuns:
        def run_state(self, dag_id: str, dag_run_id: str) -> Any:
            return None

    auditor = Auditor(database.transaction, AuditSettings(), None, NoRuns(), lambda: 0)  # type: ignore[arg-type]
    try:
        reports = {key: audit(auditor, invariant, "tes") for key, invariant in BY_KEY.items()}
        assert {report.outcome for report in reports.values()} <= {"CLEAN", "FINDINGS"}, json.dumps(str(reports))
        return {key: report.found for key, report in reports.items() if report.found}
    finally:
        database.close()


def test_utf8_bytes_in_latin1_columns_go_through_binary_and_are_what_they_were(older: MysqlUrl) -> None:
    """An application that says latin1 and sends UTF-8, as many do: its own clients see what it means, all others do
    not. The recipe stands in the guide."""
    guide = re.sub(r"\s+", " ", GUIDE.read_text(encoding="utf-8"))
    for part in ("`MODIFY nama VARBINARY(200)`", "`MODIFY nama VARCHAR(50) CHARACTER SET utf8mb4 ...`"):
        assert part in guide
    names = "SELECT nama FROM gudang ORDER BY gudang_kode"
    meant = [("Café “Ångström” — Zoë",), ("Gudang 中文",)]
    spelled = [
        f"UPDATE gudang SET nama = '{nama}' WHERE gudang_kode = '{kode}'"
        for (nama,), kode in zip(meant, ("GD-A", "GD-B"), strict=True)
    ]
    as_owner(older, "SET NAMES latin1", spelled)
    assert shape.query(older, names)[0][0].startswith("CafÃ© ")

    through = ("VARBINARY(200)", "VARCHAR(50) CHARACTER SET utf8mb4 NOT NULL DEFAULT ''")
    as_owner(older, OWNERS_SESSION, [f"ALTER TABLE gudang MODIFY nama {kind}" for kind in through])
    assert shape.query(older, names) == meant
    as_owner(older, OWNERS_SESSION, ["DELETE FROM so_headers_staging WHERE id = 2"])
    mend(older, refused(older))
    migrate(older, lambda line: None)
    assert shape.query(older, names) == meant

    # From then on its connection has to say what it sends.
    as_owner(older, "SET NAMES utf8mb4", spelled)
    assert shape.query(older, names) == meant
    as_owner(older, "SET NAMES latin1", spelled)
    assert shape.query(older, names)[0][0].startswith("CafÃ© ")
    assert "`SET NAMES utf8mb4`" in guide


def test_both_post_beside_each_other_on_an_adopted_installation_whose_statuses_stay_an_enum(
    older: MysqlUrl, settings: QueueSettings, vhost: Vhost, airflow: FakeAirflow, running: Running, tmp_path: Path
) -> None:
    """Everything at once, each of ours under its own account: the application and the old worker with their empty
    sql_mode, consumer, relay, tasks, and a reconciler that has no patience."""
    as_owner(older, OWNERS_SESSION, ["DELETE FROM so_headers_staging WHERE id = 2"])
    mend(older, refused(older), "ENUM('PENDING','PROCESSING','COMPLETED','FAILED','CANCELLED','WAITING') NOT NULL")
    migrate(older, lambda line: None)
    grant(older, lambda line: None)
    ((kind,),) = shape.query(older, STATUS_KIND)
    assert kind.startswith("enum("), "it is left as it is"
    before = shape.query(older, OLD_JOBS)
    vhost.declare()

    def under(account: str) -> QueueSettings:
        return at(as_account(older, account))

    def at(url: MysqlUrl) -> QueueSettings:
        return replace(settings, mysql=url)

    with (
        closing(store.connect(older)) as conn,
        running_tasks(airflow, as_account(older, "everest_tasks")),
        old_workers(at(older).mysql, vhost) as old_worker,
        reconciling(under("everest_reconciler"), tmp_path / "reconciler.log"),
    ):
        conn.query("SET SESSION sql_mode = ''")
        site = Site(conn, vhost, itertools.count(101))
        documents = [site.submit() for _ in range(20)]
        site.publish([*documents[1:], *documents[1:]])
        old = old_worker()
        running.relay(under("everest_relay"))
        running.consumer(under("everest_consumer"), workers=2)
        until(lambda: statuses(conn) == {"COMPLETED": 20}, "all posted, the one whose message was lost, too")
        old.process.send_signal(signal.SIGTERM)
        old.process.wait()
        assert site.posted_by_old() - {"SO-11", "JL-7"}, "the old worker had a share"
        assert site.posted_by_new(), "and so had ours"
        assert site.posted_by_old().isdisjoint(site.posted_by_new())

        builders.limits(conn, batas_dokumen="100000")
        site.publish([site.submit([Line("Z", "1", None)]), site.submit([Line("M", "0", "1000", "1500")])])
        until(lambda: statuses(conn) == {"COMPLETED": 20, "FAILED": 1, "WAITING": 1}, "a refusal and a question")
        books = {nota: sums for nota, sums in site.books().items() if nota.startswith("SO-01")}
        assert books == ledger(documents)
        ((_, letter),) = until(lambda: vhost.read("everest.jobs.failed.dlq"), "the letter of the refused one")
        assert json.loads(letter)["nota"] == "SO-0121"
        running.stop()
    assert shape.query(older, OLD_JOBS) == before, "jobs of before are left to a person"


def statuses(conn: Any) -> dict[str, int]:
    sql = (
        "SELECT worker_status, COUNT(*) AS n FROM rabbit_publish_shadow WHERE nomer_nota LIKE %s GROUP BY worker_status"
    )
    return {row["worker_status"]: row["n"] for row in builders.rows(conn, sql, "SO-01%")}
