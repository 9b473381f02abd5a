"""A submission in the database: all of its rows or none, once, whoever sends it how often."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from everest import bootstrap
from everest.errors import Conflict, DocumentRefused
from everest.intake import submit as intake
from everest.intake.files import FileRefused, Reading, read_file
from everest.intake.submission import Authority, Line, Submission
from everest.intake.submit import AlreadySubmitted, Submitted, submit_document
from everest.settings import MysqlUrl
from everest.store import json_rows
from everest.store.unit_of_work import Database
from tests import builders
from tests.builders import rows
from tests.integration.opname.walk import Walker

BUDI = Authority(submitted_by="sari", authorised_by="budi", level=2)
THREE = (
    Line("BRG-A", qty_sistem=Decimal(10), qty_fisik=Decimal(12), harga_pokok=Decimal("1500.00")),
    Line("BRG-B", qty_sistem=Decimal(7), qty_fisik=Decimal(5), harga_pokok=Decimal("2500.50")),
    Line("BRG-C", qty_sistem=Decimal(3), qty_fisik=Decimal(3), harga_pokok=Decimal("100.00")),
)


def submission(lines: tuple[Line, ...] = THREE, **header: Any) -> Submission:
    given = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": date(2026, 8, 31)} | header
    return Submission(lines=lines, **given)


def items(count: int) -> tuple[Line, ...]:
    quantities = {"qty_sistem": Decimal(10), "qty_fisik": Decimal(11), "harga_pokok": Decimal("1.5")}
    return tuple(Line(f"ITM-{n:05d}", **quantities) for n in range(1, count + 1))


@pytest.fixture
def db(database: MysqlUrl, connection: Any) -> Iterator[Database]:
    builders.warehouse(connection, "GD-A")
    db = bootstrap.database(database)
    yield db
    db.close()


def stored(connection: Any) -> dict[str, int]:
    """How many rows a submission has left in each table that it writes."""
    tables = (
        "so_headers_staging",
        "so_details_staging",
        "transaksi",
        "rabbit_publish_shadow",
        "workflow_runs",
        "outbox",
        "audit_log",
    )
    return {table: rows(connection, f"SELECT COUNT(*) AS n FROM {table}")[0]["n"] for table in tables}


ONCE = {
    "so_headers_staging": 1,
    "so_details_staging": 3,
    "transaksi": 1,
    "rabbit_publish_shadow": 1,
    "workflow_runs": 1,
    "outbox": 1,
    "audit_log": 1,
}


def test_a_submit_writes_document_run_job_and_message_together(db: Database, connection: Any) -> None:
    result = submit_document(db.transaction, submission(), BUDI)

    assert isinstance(result, Submitted)
    assert stored(connection) == ONCE
    (header,) = rows(connection, "SELECT * FROM so_headers_staging")
    assert (header["otorisasi_level"], header["diotorisasi_oleh"], header["dibuat_oleh"]) == (2, "budi", "sari")
    assert (header["zona_waktu"], header["snapshot_at"]) == ("UTC", None)
    (transaksi,) = rows(connection, "SELECT * FROM transaksi")
    assert (transaksi["id"], transaksi["nomer_nota"], transaksi["jenis"]) == (result.transaksi_id, "SO-1", "OPNAME")
    shadow = builders.shadow(connection, result.shadow_id)
    assert (shadow["publish_status"], shadow["worker_status"], shadow["n"]) == ("PENDING", "PENDING", 1)
    assert (shadow["transaksi_id"], shadow["nomer_nota"]) == (result.transaksi_id, "SO-1")
    (message,) = rows(connection, "SELECT * FROM outbox")
    assert json.loads(message["body"]) == {
        "transaksi_id": result.transaksi_id,
        "shadow_id": result.shadow_id,
        "nota": "SO-1",
        "v": 1,
        "workflow": "opname_posting",
        "workflow_id": shadow["workflow_id"],
        "dag_id": "opname_posting",
        "dag_run_id": shadow["dag_run_id"],
        "n": 1,
    }
    (audit,) = rows(connection, "SELECT * FROM audit_log")
    assert (audit["actor"], audit["action"], audit["shadow_id"]) == ("sari", "submit", result.shadow_id)


def test_what_was_submitted_is_what_is_posted(db: Database, connection: Any, walker: Walker) -> None:
    result = submit_document(db.transaction, submission(), BUDI)

    assert result.shadow_id is not None
    assert walker.post(result.shadow_id) == "COMPLETED"
    assert builders.journal_of(connection, "SO-1") == [
        (1, builders.PERSEDIAAN, Decimal("3000.00"), Decimal("0.00")),
        (2, builders.LABA_SELISIH, Decimal("0.00"), Decimal("3000.00")),
        (3, builders.RUGI_SELISIH, Decimal("5001.00"), Decimal("0.00")),
        (4, builders.PERSEDIAAN, Decimal("0.00"), Decimal("5001.00")),
    ]


def test_h45_codes_and_texts_reach_the_table_unchanged(db: Database, connection: Any) -> None:
    codes = ("00123", "8991234567890123456", "NA", "1e5", "null", "true", 'A\\B"C', "50%", "é😀", "x" * 64)
    alasan = 'kata "kutip", \\ garis miring & 100% :x'
    lines = tuple(Line(code, lot=code, satuan="NULL", alasan=alasan) for code in codes)

    submit_document(db.transaction, submission(lines), BUDI)

    found = rows(connection, "SELECT * FROM so_details_staging ORDER BY baris")
    assert [(row["baris"], row["kode_barang"], row["lot"]) for row in found] == [
        (baris, code, code) for baris, code in enumerate(codes, start=1)
    ]
    assert {row["alasan"] for row in found} == {alasan}
    assert {(row["gudang_kode"], row["qty_fisik"], row["satuan"]) for row in found} == {(None, None, "NULL")}


def test_decimals_at_the_edge_of_their_columns_are_stored_exactly(db: Database, connection: Any) -> None:
    widest = Decimal("99999999999999.9999"), Decimal("-99999999999999.9999"), Decimal("999999999999999999.999999")
    line = Line("A", qty_fisik=widest[0], qty_sistem=widest[1], harga_pokok=widest[2])

    submit_document(db.transaction, submission((line,)), BUDI)

    (row,) = rows(connection, "SELECT * FROM so_details_staging")
    assert (row["qty_fisik"], row["qty_sistem"], row["harga_pokok"]) == widest


def test_a_decimal_that_mysql_would_round_in_silence_is_refused(db: Database, connection: Any) -> None:
    line = Line("A", qty_sistem=Decimal(1), qty_fisik=Decimal("1.00005"), harga_pokok=Decimal(1))

    with pytest.raises(ValueError, match=r"1\.00005"):
        submit_document(db.transaction, submission((line,)), BUDI)
    assert set(stored(connection).values()) == {0}


@pytest.mark.parametrize("count", [1_372, 3_000, 5_000, 20_000, 20_001])
def test_h01_large_documents_are_stored_line_by_line_in_one_transaction(
    db: Database, connection: Any, count: int
) -> None:
    result = submit_document(db.transaction, submission(items(count)), BUDI)

    assert isinstance(result, Submitted)
    assert result.lines == count
    (row,) = rows(
        connection,
        "SELECT COUNT(*) AS n, MAX(baris) AS last, COUNT(DISTINCT kode_barang) AS items, SUM(qty_fisik) AS counted"
        " FROM so_details_staging",
    )
    assert (row["n"], row["last"], row["items"], row["counted"]) == (count, count, count, Decimal(11 * count))


def test_h02a_a_file_of_20_000_flawed_rows_stores_nothing(tmp_path: Path, connection: Any) -> None:
    path = tmp_path / "opname.csv"
    lines = "".join(f"ITM-{n},sepuluh,1,mahal\n" for n in range(20_000))
    path.write_text("kode_barang,qty_sistem,qty_fisik,harga_pokok\n" + lines)

    with pytest.raises(FileRefused) as refused:
        read_file(path, Reading({"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}))

    assert len(refused.value.problems) == 40_000
    assert set(stored(connection).values()) == {0}


# ----------------------------------------------------------------------------------------------------- sent twice


@pytest.mark.parametrize("key", [{"submit_token": "form-1"}, {"transaksi_id": 4711}, {}])
def test_the_same_document_sent_twice_is_stored_once(db: Database, connection: Any, key: dict[str, Any]) -> None:
    first = submit_document(db.transaction, submission(**key), BUDI)
    second = submit_document(db.transaction, submission(**key), BUDI)

    assert isinstance(first, Submitted)
    assert second == AlreadySubmitted(first.shadow_id, first.transaksi_id, "SO-1", "PENDING", same_content=True)
    assert stored(connection) == ONCE


@pytest.mark.parametrize("key", [{"submit_token": "form-1"}, {"transaksi_id": 4711}])
@pytest.mark.parametrize(
    "change", [{"lines": THREE[:2]}, {"tanggal_opname": date(2026, 8, 30)}, {"nomer_nota": "SO-2"}]
)
def test_the_same_key_with_other_content_is_told_apart_and_changes_nothing(
    db: Database, connection: Any, key: dict[str, Any], change: dict[str, Any]
) -> None:
    submit_document(db.transaction, submission(**key), BUDI)

    second = submit_document(db.transaction, replace(submission(**key), **change), BUDI)

    assert isinstance(second, AlreadySubmitted)
    assert (second.nomer_nota, second.same_content) == ("SO-1", False)
    assert stored(connection) == ONCE


def test_the_same_nota_with_other_content_is_a_document_of_its_own(db: Database, connection: Any) -> None:
    first = submit_document(db.transaction, submission(), BUDI)
    second = submit_document(db.transaction, submission(THREE[:2]), BUDI)

    assert isinstance(second, Submitted)
    assert second.transaksi_id != first.transaksi_id


@pytest.mark.parametrize("key", [{"submit_token": "form-1"}, {"transaksi_id": 4711}, {}])
def test_h30_h31_five_senders_at_once_leave_one_document_and_the_same_answer(
    database: MysqlUrl, db: Database, connection: Any, key: dict[str, Any]
) -> None:
    senders = 5
    ready = threading.Barrier(senders)
    document = submission(items(10_000), **key)

    def send() -> Submitted | AlreadySubmitted:
        mine = bootstrap.database(database)
        with mine.transaction():
            ready.wait(timeout=30)
        try:
            return submit_document(mine.transaction, document, BUDI)
        finally:
            mine.close()

    with ThreadPoolExecutor(senders) as pool:
        results = [future.result() for future in [pool.submit(send) for _ in range(senders)]]

    assert sorted(type(result).__name__ for result in results) == ["AlreadySubmitted"] * 4 + ["Submitted"]
    assert len({(result.shadow_id, result.transaksi_id) for result in results}) == 1
    assert stored(connection) == ONCE | {"so_details_staging": 10_000}


def test_a_sender_that_meets_an_open_transaction_waits_for_its_end_and_answers(
    database: MysqlUrl, db: Database, connection: Any
) -> None:
    other = bootstrap.database(database)
    with ThreadPoolExecutor(1) as pool:
        with db.transaction() as tx:
            first = intake.submit(tx, submission(), BUDI)
            second = pool.submit(submit_document, other.transaction, submission(), BUDI)
        assert second.result(timeout=30) == AlreadySubmitted(
            first.shadow_id, first.transaksi_id, "SO-1", "PENDING", same_content=True
        )
    other.close()
    assert stored(connection) == ONCE


class _PowerCut(Exception):
    pass


def test_a_sender_whose_rival_rolled_back_stores_the_document_itself(
    database: MysqlUrl, db: Database, connection: Any
) -> None:
    other = bootstrap.database(database)
    with ThreadPoolExecutor(1) as pool:
        with suppress(_PowerCut), db.transaction() as tx:
            intake.submit(tx, submission(), BUDI)
            second = pool.submit(submit_document, other.transaction, submission(), BUDI)
            raise _PowerCut
        assert isinstance(second.result(timeout=30), Submitted)
    other.close()
    assert stored(connection) == ONCE


# ------------------------------------------------------------------------------------------------ other programs


def test_a_number_that_another_program_uses_already_is_not_given_out(db: Database, connection: Any) -> None:
    first = submit_document(db.transaction, submission(), BUDI)
    for offset in (1, 2):
        builders.document(connection, transaksi_id=first.transaksi_id + offset)

    second = submit_document(db.transaction, submission(nomer_nota="SO-2"), BUDI)

    assert second.transaksi_id == first.transaksi_id + 3
    assert rows(connection, "SELECT id FROM transaksi ORDER BY id") == [
        {"id": first.transaksi_id},
        {"id": second.transaksi_id},
    ]


def test_a_number_given_by_the_program_that_wrote_the_accounting_document_is_kept(
    db: Database, connection: Any
) -> None:
    builders.insert(connection, "transaksi", id=4711, nomer_nota="SO-1", jenis="OPNAME", gudang_kode="GD-A")

    result = submit_document(db.transaction, submission(transaksi_id=4711), BUDI)

    assert isinstance(result, Submitted)
    assert stored(connection) == ONCE


def test_a_number_that_is_another_accounting_document_is_a_conflict(db: Database, connection: Any) -> None:
    builders.insert(connection, "transaksi", id=4711, nomer_nota="BELI-1", jenis="PEMBELIAN", gudang_kode="GD-A")

    with pytest.raises(Conflict, match="BELI-1"):
        submit_document(db.transaction, submission(transaksi_id=4711), BUDI)
    assert stored(connection) == dict.fromkeys(ONCE, 0) | {"transaksi": 1}


def test_a_snapshot_in_the_future_is_refused_because_nothing_could_look_late(db: Database, connection: Any) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    with pytest.raises(DocumentRefused) as refused:
        submit_document(db.transaction, submission(snapshot_at=tomorrow), BUDI)

    assert [problem.kolom for problem in refused.value.problems] == ["snapshot_at"]
    assert set(stored(connection).values()) == {0}


def test_lines_with_long_reasons_in_another_script_go_in_more_statements_and_all_of_them_arrive(
    db: Database, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 such lines are 16 MB in one statement, which the server does not take; here a tenth, in tenths."""
    monkeypatch.setattr(json_rows, "MOST_BYTES", json_rows.MOST_BYTES // 10)
    lines = tuple(line._replace(alasan="\N{CJK UNIFIED IDEOGRAPH-8BA1}" * 255) for line in items(2_000))
    assert len(list(intake.line_chunks(submission(lines)))) >= 4

    result = submit_document(db.transaction, submission(lines), BUDI)

    assert isinstance(result, Submitted)
    kept = rows(
        connection, "SELECT baris, kode_barang, CHAR_LENGTH(alasan) AS n FROM so_details_staging ORDER BY baris"
    )
    assert [tuple(row.values()) for row in kept] == [(n, f"ITM-{n:05d}", 255) for n in range(1, 2_001)]
    again = submit_document(db.transaction, submission(lines), BUDI)
    assert isinstance(again, AlreadySubmitted)
    assert again.same_content
