"""Rows that no form would write, sent by a program that writes straight into the tables: every such document ends,
with its reason, and nothing wrong gets into the books.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everest import approvals
from everest.errors import MAX_PROBLEMS_BYTES
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.integration.opname.written import set_header

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB
NOON_WIB = datetime(2026, 3, 10, 12)


@pytest.mark.parametrize(
    ("zone", "column", "value"),
    [
        pytest.param("Asia/Jakarta", "snapshot_at", "0001-01-01 00:00:00", id="before the first year there is in UTC"),
        pytest.param("UTC", "snapshot_at", "9999-12-31 23:59:59", id="after the last year there is in WIB"),
        pytest.param("Asia/Jakarta", "diotorisasi_at", "0001-01-01 00:00:00", id="authorised in the year 1"),
        pytest.param("America/New_York", "diotorisasi_at", "9999-12-31 23:59:59", id="authorised in the year 9999"),
        pytest.param("UTC", "tanggal_posting", "0001-01-01", id="posted in the year 1"),
        pytest.param("UTC", "tanggal_opname", "9999-12-31", id="counted on the last day"),
        pytest.param("UTC", "zona_waktu", "Mars/Phobos", id="a zone that does not exist"),
        pytest.param("UTC", "zona_waktu", "../../etc", id="a zone that is a path"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused_together_with_its_other_problems(
    database: MysqlUrl, connection: Any, zone: str, column: str, value: str
) -> None:
    walker = Walker(database, Settings(foreign_zone=ZoneInfo(zone)))
    document = builders.document(connection, [Line("A"), Line("B", qty_fisik=None)])
    set_header(connection, document.header_id, column, value)

    assert walker.post(document.shadow_id) == "FAILED"
    walker.close()

    row = builders.shadow(connection, document.shadow_id)
    assert row["error_code"] == 422
    assert {(None, column), (2, "qty_fisik")} <= {(e["baris"], e["kolom"]) for e in row["response"]["errors"]}
    assert builders.rows(connection, "SELECT code FROM posting_attempts") == [{"code": 422}]
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_zero_dates_of_an_application_with_an_empty_sql_mode_are_none_and_refused_by_name(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, [Line("A"), Line("B", qty_fisik=None)])
    zero = "0000-00-00 00:00:00"
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        (strict,) = cursor.fetchone()
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(
            "UPDATE so_headers_staging SET snapshot_at = %s, created_at = %s, diotorisasi_at = %s, tanggal_opname = %s",
            (zero, zero, zero, zero[:10]),
        )
        cursor.execute("SET SESSION sql_mode = %s", (strict,))
    connection.commit()

    assert walker.post(document.shadow_id) == "FAILED"
    job = builders.shadow(connection, document.shadow_id)
    refused = {(problem["baris"], problem["kolom"]) for problem in job["response"]["errors"]}
    assert job["error_code"] == 422
    assert {(None, "created_at"), (None, "tanggal_opname"), (None, "diotorisasi_at"), (2, "qty_fisik")} <= refused
    assert builders.books(connection) == builders.NOTHING_POSTED


@pytest.mark.parametrize(
    "theirs",
    [
        {"nomer_nota": "JL-7", "jenis": "JUAL"},
        {"nomer_nota": "SO-8", "jenis": "OPNAME"},
    ],
)
def test_a_document_whose_number_is_another_documents_is_a_conflict_and_takes_nothing_from_it(
    walker: Walker, connection: Any, theirs: dict[str, str]
) -> None:
    row = {"tanggal_wib": datetime(2026, 3, 1), "gudang_kode": "GD-Z", **theirs}
    builders.insert(connection, "transaksi", id=7, **row)
    builders.insert(
        connection, "transaksi_values", transaksi_id=7, baris=1, kode_barang="Z", gudang_kode="GD-Z", selisih_qty=1,
        nilai_debet=5, nilai_kredit=0,
    )  # fmt: skip
    document = builders.document(connection, transaksi_id=7, nomer_nota="SO-9")

    assert walker.post(document.shadow_id) == "FAILED"

    job = builders.shadow(connection, document.shadow_id)
    assert job["error_code"] == 409
    assert theirs["nomer_nota"] in job["error"] and "SO-9" in job["error"]
    assert builders.rows(connection, "SELECT * FROM transaksi") == [{"id": 7, **row}]
    assert builders.rows(connection, "SELECT kode_barang FROM transaksi_values") == [{"kode_barang": "Z"}]


@pytest.mark.parametrize("nota", ["SO-9", "SO-9 ", ""])
def test_a_document_that_another_program_has_written_differently_is_its_own_and_the_differences_are_warnings(
    walker: Walker, connection: Any, nota: str
) -> None:
    builders.insert(
        connection, "transaksi", id=7, nomer_nota=nota, jenis="SO", gudang_kode="GD-Z", tanggal_wib=datetime(2026, 3, 1)
    )
    builders.limits(connection, "*", batas_dokumen="1")
    document = builders.document(connection, transaksi_id=7, nomer_nota="SO-9")

    assert walker.post(document.shadow_id) == "WAITING"

    reasons = builders.shadow(connection, document.shadow_id)["response"]["waiting"]["reasons"]
    warned = [reason["pesan"] for reason in reasons if reason["kolom"] == "peringatan"]
    assert [word for word in ("jenis", "gudang_kode", "tanggal_wib") if any(word in one for one in warned)] == [
        "jenis",
        "gudang_kode",
        "tanggal_wib",
    ]


def test_a_closed_month_is_named_with_all_other_problems_also_where_the_authorisation_is_missing(
    walker: Walker, connection: Any
) -> None:
    builders.period(connection, "2026-03")
    document = builders.document(connection, [Line("A", qty_fisik=None)], tanggal_posting=date(2026, 3, 31))
    set_header(connection, document.header_id, "diotorisasi_at", None)

    assert walker.post(document.shadow_id) == "FAILED"

    errors = builders.shadow(connection, document.shadow_id)["response"]["errors"]
    assert [(one["baris"], one["kolom"]) for one in errors] == [
        (None, "diotorisasi_at"),
        (1, "qty_fisik"),
        (None, "tanggal_posting"),
    ]


@pytest.mark.parametrize(
    ("column", "largest"),
    [("BIGINT", 2**63 - 1), ("INT", 2**31 - 1), ("INT UNSIGNED", 2**32 - 1), ("MEDIUMINT UNSIGNED", 2**24 - 1)],
)
def test_one_number_does_not_end_all_numbering(walker: Walker, connection: Any, column: str, largest: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE transaksi MODIFY id {column} NOT NULL AUTO_INCREMENT")
    try:
        document = builders.document(connection, [Line("A", qty_fisik=None)], transaksi_id=largest)
        assert walker.post(document.shadow_id) == "FAILED"
        errors = builders.shadow(connection, document.shadow_id)["response"]["errors"]
        assert [one["kolom"] for one in errors] == ["transaksi_id", "qty_fisik"]
        assert builders.rows(connection, "SELECT id FROM transaksi") == []

        fitting = builders.document(connection, [Line("B")], transaksi_id=largest - largest // 5)
        assert walker.post(fitting.shadow_id) == "COMPLETED"
        builders.insert(connection, "transaksi", nomer_nota="SO-NEXT", jenis="OPNAME")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE transaksi MODIFY id BIGINT NOT NULL AUTO_INCREMENT")


@pytest.mark.parametrize(
    "written", [{"kode_barang": "A "}, {"kode_barang": "A", "lot": " "}, {"kode_barang": "A", "gudang_kode": "GD-A "}]
)
def test_a_movement_whose_codes_end_in_spaces_is_one_of_the_same_stock_card(
    walker: Walker, connection: Any, written: dict[str, str]
) -> None:
    builders.warehouse(connection)
    entered = NOON + timedelta(hours=1)
    builders.movement(connection, masuk="1", tanggal_wib=datetime(2026, 3, 10, 9), created_at=entered, **written)
    document = builders.document(connection, [Line("A")], diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON)

    assert walker.post(document.shadow_id) == "WAITING", "the movement is a late one of this very stock"

    (card,) = builders.rows(
        connection, "SELECT saldo FROM v_kartu_stok WHERE kode_barang = 'A' AND gudang_kode = 'GD-A'"
    )
    assert card["saldo"] == 1, "MySQL pads with spaces, so this is the card of A"


def without_date(connection: Any, table: str, row_id: int) -> None:
    """As an application with an empty sql_mode leaves it, and as older tables have it by default."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(f"UPDATE {table} SET tanggal_wib = '0000-00-00 00:00:00' WHERE id = %s", (row_id,))
        cursor.execute("SET SESSION sql_mode = DEFAULT")
    connection.commit()


@pytest.mark.parametrize("nota", ["BELI-0", None])
def test_h13_a_movement_without_a_date_is_late_and_a_person_decides(
    walker: Walker, connection: Any, nota: str | None
) -> None:
    document = builders.document(connection, [Line("A")], snapshot_at=datetime.now(UTC) - timedelta(hours=1))
    entered = {"tanggal_wib": NOON_WIB, "created_at": datetime.now(UTC), "sumber": "BELI"}
    moved = builders.movement(connection, "A", masuk="1", nomer_nota=nota, **entered)  # type: ignore[arg-type]
    without_date(connection, "kartu_stok", moved)

    assert walker.post(document.shadow_id) == "WAITING"

    waiting = builders.shadow(connection, document.shadow_id)["response"]["waiting"]
    assert f"{nota or 'tanpa nota'} (mutasi {moved}, tanpa tanggal)" in waiting["reasons"][0]["pesan"]
    with walker.database.transaction() as tx:
        approvals.approve(tx, document.nomer_nota, "rina", "sudah dilihat")
    assert walker.post(document.shadow_id) == "COMPLETED"


@pytest.mark.parametrize("table", ["jurnal", "kartu_stok"])
def test_a_leftover_without_a_date_is_named_and_refused_for_nobody_knows_its_month(
    walker: Walker, connection: Any, table: str
) -> None:
    document = builders.document(connection, [Line("A")])
    keys = {"nomer_nota": document.nomer_nota, "sumber": "OPNAME", "tanggal_wib": NOON_WIB}
    if table == "jurnal":
        left = builders.insert(connection, table, kode_akun=builders.PERSEDIAAN, debet=1, kredit=0, **keys)
    else:
        left = builders.insert(connection, table, kode_barang="Z", gudang_kode="GD-A", masuk=1, **keys)
    without_date(connection, table, left)

    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert row["error_code"] == 409
    assert f"({table} {left})" in row["error"]
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_more_problems_than_a_packet_holds_are_recorded_up_to_a_bound_and_the_document_ends(
    walker: Walker, connection: Any
) -> None:
    invisible = "\U000e0001" * 58
    lines = [Line(f"{i:05d}{invisible}", "1", None, None, lot=f"{i:05d}{invisible}") for i in range(16_000)]
    document = builders.document(connection, lines)

    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert row["error_code"] == 422
    assert "48000 masalah" in row["error"]
    *errors, last = row["response"]["errors"]
    assert last["baris"] is None
    assert str(48_000 - len(errors)) in last["pesan"]
    (stored,) = builders.rows(connection, "SELECT LENGTH(response) AS bytes FROM rabbit_publish_shadow")
    assert 0.9 * MAX_PROBLEMS_BYTES < stored["bytes"] < 1.1 * MAX_PROBLEMS_BYTES


def test_codes_that_differ_only_by_case_or_accent_are_different_items(walker: Walker, connection: Any) -> None:
    codes = ("A1", "a1", "á1", "à1", "ß", "ss", "i", "ı", "İ", "ﬁ", "fi", "e\u0301", "é", "1e5", "100000", "%s", "\\")
    document = builders.document(connection, [Line(code) for code in codes])

    assert walker.post(document.shadow_id) == "COMPLETED"

    assert [row[0] for row in builders.card_of(connection, document.nomer_nota)] == list(codes)
    assert builders.books(connection).agree


def test_an_accounting_number_used_again_for_another_nota_is_a_conflict_and_never_says_completed(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, nomer_nota="SO-X")
    assert walker.post(document.shadow_id) == "COMPLETED"
    before = builders.books(connection)
    set_header(connection, document.header_id, "nomer_nota", "SO-Y")
    other = builders.shadow_row(connection, document.transaksi_id, "SO-Y")
    same = builders.shadow_row(connection, document.transaksi_id, "SO-X")

    assert walker.post(other) == "FAILED"
    assert walker.post(same) == "COMPLETED"

    row = builders.shadow(connection, other)
    assert (row["error_code"], row["response"]["code"]) == (409, 409)
    assert "SO-X" in row["error"]
    assert "SO-Y" in row["error"]
    assert builders.books(connection) == before


@pytest.mark.parametrize("step", ["clean_duplicate_notas", "post_jurnal"])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM transaksi",
        "UPDATE transaksi SET jenis = 'PEMBALIKAN'",
        "UPDATE transaksi SET tanggal_wib = '2020-01-01'",
        "UPDATE transaksi SET nomer_nota = 'SO-OTHER'",
        "UPDATE transaksi_values SET nilai_debet = nilai_debet + 1 WHERE nilai_debet > 0",
        "DELETE FROM transaksi_values",
    ],
)
def test_an_accounting_document_that_another_program_changes_between_the_steps_is_written_again(
    walker: Walker, connection: Any, statement: str, step: str
) -> None:
    document = builders.document(connection, diotorisasi_at=NOON)
    statements = iter([statement])

    def change_once(now: str) -> None:
        if now == step:
            for one in statements:
                connection.query(one)
                connection.commit()

    assert walker.post(document.shadow_id, change_once) == "COMPLETED"

    (row,) = builders.rows(connection, "SELECT * FROM transaksi")
    assert (row["id"], row["nomer_nota"], row["jenis"], row["tanggal_wib"]) == (
        document.transaksi_id,
        document.nomer_nota,
        "OPNAME",
        datetime(2026, 3, 10, 12),
    )
    (values,) = builders.rows(
        connection, "SELECT SUM(nilai_debet) AS debet, SUM(nilai_kredit) AS kredit FROM transaksi_values"
    )
    assert (values["debet"], values["kredit"]) == (3000, 5001)
    assert builders.books(connection).agree
