"""Books as they look after some weeks, and an audit of them with an Airflow and a broker that a test can script."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from everest import reversal
from everest.audit.finding import Auditor
from everest.audit.invariants import BY_KEY
from everest.audit.run import Report, audit
from everest.audit.settings import AuditSettings
from everest.opname.workflow import REVERSE_OPNAME
from everest.settings import MysqlUrl, Settings
from ingest_consumer.airflow_api import DagRun
from ingest_consumer.errors import AirflowUnavailable
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

# Downwards: a number above the table's counter moves it, and the next document would meet the number of a reversal.
_transaksi_ids = itertools.count(900_000, -1)

LONG_AGO = "UTC_TIMESTAMP(6) - INTERVAL 1 DAY"


class Airflow:
    """Says of each run what the test said, and otherwise that it runs. None: it does not know the run."""

    def __init__(self) -> None:
        self.runs: dict[str, str | None] = {}
        self.is_away = False
        self.on_call = lambda run_id: None

    def dag_run(self, dag_id: str, run_id: str) -> DagRun | None:
        self.on_call(run_id)
        if self.is_away:
            raise AirflowUnavailable("Airflow answered 503")
        state = self.runs.get(run_id, "running")
        return None if state is None else DagRun(state)


class Books:
    """One site's database, with what posts into it."""

    def __init__(self, url: MysqlUrl, conn: Any) -> None:
        self.url, self.conn = url, conn
        self.airflow = Airflow()
        self.letters = 100
        self.walker = Walker(url)
        self.backwards = Walker(url, Settings(), REVERSE_OPNAME)
        self.auditor = Auditor(
            self.walker.database.transaction, AuditSettings(), None, self.airflow, lambda: self.letters
        )  # type: ignore[arg-type]

    def close(self) -> None:
        self.walker.close()
        self.backwards.close()

    def another(self) -> Books:
        """The same database over connections of its own."""
        return Books(self.url, self.conn)

    # --------------------------------------------------------------------------------------------- what happens

    def document(self, *lines: Line, **header: Any) -> builders.Document:
        """Of items that were just counted, so that no count before makes it stale."""
        given = {"transaksi_id": next(_transaksi_ids), "snapshot_at": datetime.now(UTC)}
        return builders.document(self.conn, lines or builders.EXAMPLE, **{**given, **header})

    def post(self, *lines: Line, **header: Any) -> builders.Document:
        document = self.document(*lines, **header)
        assert self.walker.post(document.shadow_id) == "COMPLETED"
        return document

    def fail(self, with_letter: bool = True) -> builders.Document:
        document = self.document(Line("X", qty_fisik=None))
        assert self.walker.post(document.shadow_id) == "FAILED"
        self.run(f"UPDATE rabbit_publish_shadow SET worker_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
        if with_letter:
            self.run(
                f"UPDATE rabbit_publish_shadow SET dead_lettered_at = {LONG_AGO} WHERE id = %s", document.shadow_id
            )
        return document

    def reverse(self, nota: str) -> int:
        """The posting that reverses that of a nota."""
        with self.walker.database.transaction() as tx:
            requested = reversal.request(tx, nota, "dewi", "salah rak")
        assert self.backwards.post(requested.shadow_id) == "COMPLETED"
        return self.posting(requested.nomer_nota)

    def at_work(self) -> builders.Document:
        """A job that a DAG run has had for a day."""
        document = self.document()
        self.walker.claim(document.shadow_id)
        self.run(f"UPDATE rabbit_publish_shadow SET worker_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
        return document

    def some_weeks(self) -> None:
        """Everything that is in order: posted, also by an older system, copied, reversed, failed, waiting, at work."""
        self.post()
        self.post(Line("NOL", "3", "3"))
        self.post(Line("BULAT", "10", "10.01", "0.10"))
        self.post_on_own_accounts()
        self.reverse(self.post().nomer_nota)
        self.reverse(self.post(Line("NOL", "5", "5")).nomer_nota)
        self.replaced_leftover()
        self.second_job_of_a_posted_document()
        self.older_system()
        self.other_modules()
        self.fail()
        self.at_work()
        self.document()
        waiting = self.document()
        self.run(
            f"UPDATE rabbit_publish_shadow SET worker_status = 'WAITING', worker_at = {LONG_AGO} WHERE id = %s",
            waiting.shadow_id,
        )

    def post_on_own_accounts(self) -> builders.Document:
        for code in ("1010030031", "7010151", "7020021"):
            builders.account(self.conn, code)
        builders.replace(
            self.conn,
            "akun_gudang",
            gudang_kode="GD-B",
            akun_persediaan="1010030031",
            akun_laba_selisih="7010151",
            akun_rugi_selisih="7020021",
        )
        return self.post(gudang_kode="GD-B")

    def replaced_leftover(self) -> None:
        document = self.document()
        self.journal_row(nomer_nota=document.nomer_nota, transaksi_id=document.transaksi_id)
        assert self.walker.post(document.shadow_id) == "COMPLETED"

    def second_job_of_a_posted_document(self) -> None:
        document = self.post()
        second = builders.shadow_row(self.conn, document.transaksi_id, document.nomer_nota)
        assert self.walker.post(second) == "COMPLETED"

    def older_system(self) -> None:
        """Its rows, and a document of ours for a nota that it had posted."""
        for number in range(3):
            builders.shadow_row(self.conn, 500 + number, f"LAMA-{number}", worker_status="COMPLETED")
            self.journal_row(nomer_nota=f"LAMA-{number}", sumber="LAMA", transaksi_id=500 + number)
            builders.movement(
                self.conn,
                f"LAMA-{number}",
                masuk="1",
                nomer_nota=f"LAMA-{number}",
                sumber="LAMA",
                tanggal_wib=datetime(2020, 1, 1),
                created_at=datetime(2020, 1, 1, tzinfo=UTC),
            )
        again = self.document(nomer_nota="LAMA-0")
        assert self.walker.post(again.shadow_id) == "COMPLETED"

    def other_modules(self) -> None:
        """Movements, and a completed workflow that is no document."""
        yesterday = datetime.now(UTC) - timedelta(days=1)
        dated = yesterday.astimezone(builders.WIB).replace(tzinfo=None)
        for masuk, keluar, nilai in (("5", "0", "500"), ("0", "5", "-500")):
            builders.movement(
                self.conn,
                "HABIS",
                masuk=masuk,
                keluar=keluar,
                nilai=nilai,
                gudang_kode="GD-X",
                tanggal_wib=dated,
                created_at=yesterday,
            )
        builders.movement(
            self.conn, "TANPA-NILAI", masuk="1", gudang_kode="GD-X", tanggal_wib=dated, created_at=yesterday
        )
        builders.movement(
            self.conn,
            "TANPA-NILAI",
            keluar="1",
            nilai="-7",
            gudang_kode="GD-X",
            tanggal_wib=dated,
            created_at=yesterday,
        )
        builders.shadow_row(self.conn, None, None, worker_status="COMPLETED", workflow_id=999_999)

    # ------------------------------------------------------------------------------------------- what is planted

    def run(self, sql: str, *parameters: Any) -> int:
        """A statement of somebody who may do anything; returns how many rows it changed."""
        with self.conn.cursor() as cursor:
            changed = cursor.execute(sql, parameters or None)
        self.conn.commit()
        return int(changed)

    @contextmanager
    def without_check(self, table: str, check: str) -> Iterator[None]:
        """As if another program had made the table without it. What was planted is gone afterwards."""
        (server,) = builders.rows(self.conn, "SELECT VERSION() AS version")
        if "MariaDB" in server["version"]:
            self.run("SET SESSION check_constraint_checks = 0")
            yield
            self.run("SET SESSION check_constraint_checks = 1")
        else:
            self.run(f"ALTER TABLE {table} ALTER CHECK {check} NOT ENFORCED")
            yield
            self.run(f"DELETE FROM {table}")
            self.run(f"ALTER TABLE {table} ALTER CHECK {check} ENFORCED")

    def journal_row(self, **columns: Any) -> int:
        values = {"sumber": "OPNAME", "tanggal_wib": datetime(2026, 1, 5), "kode_akun": builders.PERSEDIAAN, "debet": 5}
        return builders.insert(self.conn, "jurnal", **{**values, **columns})

    def posting(self, nota: str) -> int:
        (row,) = builders.rows(self.conn, "SELECT id FROM posting_sets WHERE nomer_nota = %s", nota)
        return int(row["id"])

    # --------------------------------------------------------------------------------------------------- audits

    def audit(self, key: str) -> Report:
        return audit(self.auditor, BY_KEY[key], "tes")

    def audit_all(self) -> dict[str, Report]:
        """The reports of invariants that do not hold."""
        reports = {key: self.audit(key) for key in BY_KEY}
        return {key: report for key, report in reports.items() if report.outcome != "CLEAN"}
