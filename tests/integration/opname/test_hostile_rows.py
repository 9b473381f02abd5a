"""Rows that no form would write, sent by a program that writes straight into the tables: every such document ends,
with its reason, and nothing wrong gets into the books.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everest.errors import MAX_PROBLEMS_BYTES
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB


def set_header(connection: Any, header_id: int, column: str, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE so_headers_staging SET {column} = %s WHERE id = %s", (value, header_id))
    connection.commit()


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


def test_a_snapshot_in_the_future_is_refused_because_nothing_would_ever_look_stale(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, snapshot_at=datetime.now(UTC) + timedelta(hours=7))

    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert [(error["baris"], error["kolom"]) for error in row["response"]["errors"]] == [(None, "snapshot_at")]
    assert "masa depan" in row["error"]


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
