"""A failed document corrected: the old lines kept, the number and the nota too, and nothing posted ever changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace as change
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everest import bootstrap
from everest.errors import Conflict, DocumentMissing, TransientDatabaseError
from everest.intake.replace import Replaced, replace
from everest.intake.submission import Authority, Line, Submission
from everest.intake.submit import submit_document
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import Database
from tests import builders
from tests.builders import rows
from tests.integration.opname.walk import Walker

BUDI = Authority(submitted_by="sari", authorised_by="budi", level=2)
TONO = Authority(submitted_by="rina", authorised_by="tono", level=3)
NOT_COUNTED = Line("BRG-A", qty_sistem=Decimal(10), qty_fisik=None, harga_pokok=Decimal(1500))
COUNTED = NOT_COUNTED._replace(qty_fisik=Decimal(12))
BAD = Submission("SO-1", "GD-A", date(2026, 8, 31), (NOT_COUNTED, COUNTED._replace(kode_barang="BRG-B")))
GOOD = Submission("SO-1", None, None, (COUNTED,))


@pytest.fixture
def db(database: MysqlUrl, connection: Any) -> Iterator[Database]:
    builders.warehouse(connection, "GD-A")
    db = bootstrap.database(database, Settings())
    yield db
    db.close()


@pytest.fixture
def failed(db: Database, walker: Walker) -> int:
    """Shadow id of a document whose count is missing on one line."""
    result = submit_document(db.transaction, BAD, BUDI)
    assert result.shadow_id is not None
    assert walker.post(result.shadow_id) == "FAILED"
    return result.shadow_id


def correct(db: Database, submission: Submission = GOOD, **options: Any) -> Replaced:
    with db.transaction() as tx:
        return replace(tx, submission, TONO, **options)


def test_a_correction_replaces_the_lines_and_keeps_the_old_ones_with_what_was_wrong(
    db: Database, connection: Any, failed: int
) -> None:
    result = correct(db, reason="hitung ulang")

    assert (result.shadow_id, result.lines, result.replaced_lines, result.rerun_as) == (failed, 1, 2, None)
    (line,) = rows(connection, "SELECT baris, kode_barang, qty_fisik FROM so_details_staging")
    assert line == {"baris": 1, "kode_barang": "BRG-A", "qty_fisik": Decimal("12.0000")}
    (kept,) = rows(connection, "SELECT * FROM posting_attempts WHERE outcome = 'REPLACED'")
    assert [(old["baris"], old["kode_barang"], old["qty_fisik"]) for old in json.loads(kept["replaced_lines"])] == [
        (1, "BRG-A", None),
        (2, "BRG-B", "12.0000"),
    ]
    assert [(problem["baris"], problem["kolom"]) for problem in json.loads(kept["problems"])] == [(1, "qty_fisik")]
    (attempt,) = rows(connection, "SELECT * FROM posting_attempts WHERE outcome = 'FAILED'")
    assert (kept["n"], kept["code"], kept["input_hash"]) == (1, 422, attempt["input_hash"])
    assert builders.shadow(connection, failed)["worker_status"] == "FAILED"


def test_a_correction_is_authorised_anew_and_keeps_who_submitted(db: Database, connection: Any, failed: int) -> None:
    (before,) = rows(connection, "SELECT * FROM so_headers_staging")
    correct(db, change(GOOD, tanggal_opname=date(2026, 8, 30)), reason="salah tanggal")
    (after,) = rows(connection, "SELECT * FROM so_headers_staging")

    assert (after["dibuat_oleh"], after["diotorisasi_oleh"], after["otorisasi_level"]) == ("sari", "tono", 3)
    assert after["diotorisasi_at"] > before["diotorisasi_at"]
    assert (after["tanggal_opname"], after["gudang_kode"]) == (date(2026, 8, 30), "GD-A")
    (audit,) = rows(connection, "SELECT * FROM audit_log WHERE action = 'replace'")
    assert (audit["actor"], audit["reason"], audit["shadow_id"]) == ("rina", "salah tanggal", failed)
    assert json.loads(audit["before_value"])["diotorisasi_oleh"] == "budi"
    assert json.loads(audit["after_value"])["tanggal_opname"] == "2026-08-30"


def test_h32_a_corrected_document_rerun_posts_the_corrected_lines_once(
    db: Database, connection: Any, failed: int, walker: Walker
) -> None:
    result = correct(db, rerun=True)

    assert result.rerun_as == f"opname_posting__{result.transaksi_id}__{failed}__2"
    assert builders.shadow(connection, failed)["worker_status"] == "PENDING"
    assert walker.post(failed) == "COMPLETED"
    books = builders.books(connection)
    assert (books.postings, books.debet, books.agree) == (1, Decimal("3000.00"), True)


def rerun_impatiently(database: MysqlUrl, shadow_id: int) -> None:
    """A rerun that gives up waiting for a lock after a second."""
    other = bootstrap.database(database)
    with other.transaction() as tx:
        with tx.conn.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        tx.runs.rerun(shadow_id, "sari", None)


def test_a_refused_rerun_leaves_the_document_as_it_was(db: Database, connection: Any, failed: int) -> None:
    rows(connection, "UPDATE workflow_runs SET compensation = 'done'")

    with pytest.raises(Conflict, match="compensated"):
        correct(db, rerun=True)
    assert len(rows(connection, "SELECT id FROM so_details_staging")) == 2


def test_a_posted_document_does_not_change(db: Database, connection: Any, walker: Walker) -> None:
    result = submit_document(db.transaction, change(BAD, lines=GOOD.lines), BUDI)
    assert result.shadow_id is not None
    walker.post(result.shadow_id)

    with pytest.raises(Conflict, match="posted books do not change"):
        correct(db)
    assert rows(connection, "SELECT id FROM posting_attempts WHERE outcome = 'REPLACED'") == []


def test_a_nota_that_another_document_posted_is_not_corrected_but_named_anew(
    db: Database, connection: Any, walker: Walker
) -> None:
    for result in [submit_document(db.transaction, one, BUDI) for one in (change(BAD, lines=GOOD.lines), BAD)]:
        assert result.shadow_id is not None
        walker.post(result.shadow_id)

    with pytest.raises(Conflict, match="new nota"):
        correct(db)


def test_a_document_at_work_is_not_replaced_under_its_feet(
    db: Database, connection: Any, failed: int, walker: Walker
) -> None:
    with db.transaction() as tx:
        tx.runs.rerun(failed, "sari", None)
    with pytest.raises(Conflict, match="running"):
        correct(db)

    walker.claim(failed)
    with pytest.raises(Conflict, match="running"):
        correct(db)
    assert len(rows(connection, "SELECT id FROM so_details_staging")) == 2


def test_a_rerun_waits_for_a_correction_and_then_runs_the_corrected_document(
    database: MysqlUrl, db: Database, connection: Any, failed: int, walker: Walker
) -> None:
    with db.transaction() as tx:
        replace(tx, GOOD, TONO)
        with pytest.raises(TransientDatabaseError):
            rerun_impatiently(database, failed)
    with db.transaction() as tx:
        tx.runs.rerun(failed, "sari", None)

    assert walker.post(failed) == "COMPLETED"


def test_a_nota_never_submitted_and_a_wrong_number_are_named(db: Database, connection: Any, failed: int) -> None:
    with pytest.raises(DocumentMissing, match="without --replace"):
        correct(db, change(GOOD, nomer_nota="SO-9"))
    with pytest.raises(DocumentMissing, match="99"):
        correct(db, change(GOOD, transaksi_id=99))
    (document,) = rows(connection, "SELECT transaksi_id FROM so_headers_staging")
    with pytest.raises(Conflict, match="is nota SO-1, not SO-9"):
        correct(db, change(GOOD, nomer_nota="SO-9", transaksi_id=document["transaksi_id"]))


def test_two_failed_documents_of_one_nota_have_to_be_told_apart(
    db: Database, connection: Any, failed: int, walker: Walker
) -> None:
    twin = submit_document(db.transaction, change(BAD, lines=(NOT_COUNTED,)), BUDI)
    assert twin.shadow_id is not None
    assert walker.post(twin.shadow_id) == "FAILED"

    with pytest.raises(Conflict, match="--transaksi-id"):
        correct(db)
    assert correct(db, change(GOOD, transaksi_id=twin.transaksi_id)).shadow_id == twin.shadow_id


def test_a_document_of_the_web_application_is_corrected_in_the_zone_of_its_own_row(
    database: MysqlUrl, connection: Any, walker: Walker
) -> None:
    document = builders.document(connection, [builders.Line(qty_fisik=None)], nomer_nota="SO-1", dibuat_oleh="sari")
    assert walker.post(document.shadow_id) == "FAILED"
    snapshot = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
    jakarta = ZoneInfo("Asia/Jakarta")
    db = bootstrap.database(database, Settings(foreign_zone=jakarta))

    correct(db, change(GOOD, snapshot_at=snapshot))
    db.close()

    (header,) = rows(connection, "SELECT * FROM so_headers_staging")
    assert header["zona_waktu"] is None
    assert header["snapshot_at"] == snapshot.astimezone(jakarta).replace(tzinfo=None)
    now = datetime.now(UTC).astimezone(jakarta).replace(tzinfo=None)
    assert timedelta(0) <= now - header["diotorisasi_at"] < timedelta(minutes=5)
    assert header["dibuat_oleh"] == "sari"


def test_old_lines_of_a_very_long_document_are_kept_in_pieces(db: Database, connection: Any, walker: Walker) -> None:
    lines = tuple(NOT_COUNTED._replace(kode_barang=f"ITM-{n:05d}") for n in range(20_001))
    result = submit_document(db.transaction, change(BAD, lines=lines), BUDI)
    assert result.shadow_id is not None
    rows(connection, "UPDATE workflow_runs SET status = 'failed'")
    rows(connection, "UPDATE rabbit_publish_shadow SET worker_status = 'FAILED', error_code = 503")

    correct(db)

    kept = rows(connection, "SELECT replaced_lines FROM posting_attempts WHERE outcome = 'REPLACED' ORDER BY id")
    assert [len(json.loads(row["replaced_lines"])) for row in kept] == [20_000, 1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, (None, "", "")),
        ("[1]", (None, "", "")),
        ('{"message": "gagal", "errors": null}', (None, "", "gagal")),
        ('{"errors": ["teks", {"baris": "1", "pesan": "rusak"}]}', (None, "", "rusak")),
    ],
)
def test_what_another_program_answered_keeps_nobody_from_correcting_its_document(
    db: Database, connection: Any, answer: str | None, problem: tuple[Any, ...]
) -> None:
    document = builders.document(connection, [builders.Line(qty_fisik=None)], nomer_nota="SO-1", dibuat_oleh="sari")
    rows(connection, "UPDATE rabbit_publish_shadow SET worker_status = 'FAILED', response = %s", answer)

    assert correct(db).shadow_id == document.shadow_id

    (kept,) = rows(connection, "SELECT problems FROM posting_attempts WHERE outcome = 'REPLACED'")
    assert [tuple(one.values()) for one in json.loads(kept["problems"])] == [problem]
