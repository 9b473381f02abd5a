"""What the schema itself promises: equal to schema.sql, safe for books, and rules that no program can break."""

from __future__ import annotations

import random
import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from everest.errors import DatabaseError, DuplicateKey
from everest.settings import MysqlUrl
from everest.store.database import SQL_DIR, transaction
from everest.store.migrations import migrate
from tests import builders
from tests.migrations import shape

CHECK_BROKEN = {4025, 3819}  # MariaDB, MySQL
POSTING = {
    "transaksi_id": 1,
    "nomer_nota": "SO-1",
    "input_hash": "0" * 64,
    "total_debet": "5.00",
    "total_kredit": "5.00",
    "baris_selisih": 1,
}


def test_schema_sql_is_what_the_migrations_make(empty_schema: MysqlUrl, database: MysqlUrl) -> None:
    shape.run(empty_schema, (SQL_DIR / "schema.sql").read_text())

    read, migrated = shape.of(empty_schema), shape.of(database)
    for part in shape.VIEWS:
        assert read[part] == migrated[part], part
        assert read[part], f"the comparison of {part} saw nothing"


def test_a_database_made_from_schema_sql_is_taken_over_without_a_change(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, (SQL_DIR / "schema.sql").read_text())
    before = shape.of(empty_schema)
    lines: list[str] = []

    assert migrate(empty_schema, lines.append)
    assert shape.of(empty_schema) == before
    assert not [line for line in lines if "exists already" in line]


def test_every_table_is_innodb_and_utf8mb4(database: MysqlUrl) -> None:
    tables = [row for row in shape.of(database)["tables"] if row[1] == "BASE TABLE"]
    assert len(tables) >= 26
    assert [row for row in tables if row[2] != "InnoDB" or not row[3].startswith("utf8mb4")] == []


def test_no_text_is_kept_in_another_charset(database: MysqlUrl) -> None:
    assert [row for row in shape.of(database)["columns"] if row[7] not in (None, "utf8mb4")] == []


def test_codes_and_notas_are_compared_byte_by_byte_everywhere(database: MysqlUrl) -> None:
    keys = re.compile(r"nomer_nota|kode_barang|lot|gudang_kode|kode_akun|akun_\w+|dag_run_id|input_hash|periode")
    compared = {row[:3]: row[8] for row in shape.of(database)["columns"] if keys.fullmatch(row[2])}
    assert len(compared) > 30
    assert {key: collation for key, collation in compared.items() if collation != "utf8mb4_bin"} == {}


@pytest.mark.parametrize(
    ("debet", "kredit"), [("0", "0"), ("1.00", "1.00"), ("-1.00", "0"), ("0", "-0.01"), ("5.00", "-5.00")]
)
def test_a_journal_row_that_is_not_one_sided_cannot_be_written(connection: Any, debet: str, kredit: str) -> None:
    refused(
        connection, CHECK_BROKEN, "jurnal", tanggal_wib="2026-01-31", kode_akun="7010150", debet=debet, kredit=kredit
    )


def test_a_journal_row_with_one_side_can_be_written(connection: Any) -> None:
    for side in ("debet", "kredit"):
        builders.insert(connection, "jurnal", **{"tanggal_wib": "2026-01-31", "kode_akun": "7010150", side: "0.01"})
    assert len(builders.rows(connection, "SELECT * FROM jurnal")) == 2


def test_a_posting_has_equal_sides_and_a_known_kind(connection: Any) -> None:
    refused(connection, CHECK_BROKEN, "posting_sets", **POSTING | {"total_kredit": "5.01"})
    refused(connection, CHECK_BROKEN, "posting_sets", **POSTING | {"jenis": "KOREKSI"})
    refused(connection, CHECK_BROKEN, "posting_sets", **POSTING | {"total_debet": "-1", "total_kredit": "-1"})


def test_statuses_outside_the_protocol_cannot_be_written(connection: Any) -> None:
    refused(connection, CHECK_BROKEN, "rabbit_publish_shadow", worker_status="DONE")
    refused(connection, CHECK_BROKEN, "rabbit_publish_shadow", publish_status="SENT")
    refused(connection, CHECK_BROKEN, "periode_akuntansi", periode="2026-01", status="HALF")


def test_stock_movements_have_no_negative_side(connection: Any) -> None:
    card = {"kode_barang": "A", "gudang_kode": "GD-A", "tanggal_wib": "2026-01-31"}
    refused(connection, CHECK_BROKEN, "kartu_stok", **card, masuk="-1")
    refused(connection, CHECK_BROKEN, "kartu_stok", **card, keluar="-0.0001")


def test_a_nota_is_posted_once(connection: Any) -> None:
    builders.insert(connection, "posting_sets", **POSTING)
    with pytest.raises(connection.IntegrityError, match="uq_posting_sets_nota"):
        builders.insert(connection, "posting_sets", **POSTING | {"transaksi_id": 2})


def test_a_transaksi_is_posted_once(connection: Any) -> None:
    builders.insert(connection, "posting_sets", **POSTING)
    with pytest.raises(connection.IntegrityError, match="uq_posting_sets_transaksi"):
        builders.insert(connection, "posting_sets", **POSTING | {"nomer_nota": "SO-2"})


def test_a_posting_is_reversed_once(connection: Any) -> None:
    posting = builders.insert(connection, "posting_sets", **POSTING)
    reversal = POSTING | {"jenis": "PEMBALIKAN", "membalik_id": posting}
    builders.insert(connection, "posting_sets", **reversal | {"transaksi_id": 2, "nomer_nota": "SO-1-R"})
    with pytest.raises(connection.IntegrityError, match="uq_posting_sets_membalik"):
        builders.insert(connection, "posting_sets", **reversal | {"transaksi_id": 3, "nomer_nota": "SO-1-R2"})


def test_a_nota_is_one_posting_whether_it_counts_or_reverses(connection: Any) -> None:
    posting = builders.insert(connection, "posting_sets", **POSTING)
    reversal = POSTING | {"jenis": "PEMBALIKAN", "membalik_id": posting, "transaksi_id": 2}
    with pytest.raises(connection.IntegrityError, match="uq_posting_sets_nomer_nota"):
        builders.insert(connection, "posting_sets", **reversal)


def test_notas_that_differ_in_case_or_accent_are_different_notas(connection: Any) -> None:
    for number, nota in enumerate(("so-1", "SO-1", "SÓ-1"), start=1):
        builders.insert(connection, "posting_sets", **POSTING | {"transaksi_id": number, "nomer_nota": nota})
    assert builders.books(connection).postings == 3


def test_a_posting_has_each_journal_position_once(connection: Any) -> None:
    row = {"posting_id": 1, "urutan": 1, "tanggal_wib": "2026-01-31", "kode_akun": "7010150", "debet": "1"}
    builders.insert(connection, "jurnal", **row)
    with pytest.raises(connection.IntegrityError, match="uq_jurnal_posting_urutan"):
        builders.insert(connection, "jurnal", **row)


def test_a_submit_token_and_a_transaksi_id_are_used_once(connection: Any) -> None:
    header = {"transaksi_id": 1, "nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-01-31"}
    builders.insert(connection, "so_headers_staging", **header, submit_token="t")
    for other in ({"transaksi_id": 1}, {"transaksi_id": 2, "submit_token": "t"}):
        with pytest.raises(connection.IntegrityError):
            builders.insert(connection, "so_headers_staging", **header | other)
    builders.insert(connection, "so_headers_staging", **header | {"transaksi_id": 3})
    builders.insert(connection, "so_headers_staging", **header | {"transaksi_id": 4})


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET reason = 'never mind'",
        "DELETE FROM audit_log",
        "REPLACE INTO audit_log (id, actor, action) SELECT id, 'nobody', action FROM audit_log",
    ],
)
def test_the_audit_log_only_grows(connection: Any, statement: str) -> None:
    builders.insert(connection, "audit_log", actor="budi", action="rerun", reason="stok sudah dihitung ulang")
    with pytest.raises(DatabaseError, match="append-only"), transaction(connection):
        connection.query(statement)
    (row,) = builders.rows(connection, "SELECT actor, reason FROM audit_log")
    assert row == {"actor": "budi", "reason": "stok sudah dihitung ulang"}


def test_all_a_foreign_program_has_to_fill_is_what_posting_rules_name(connection: Any) -> None:
    """Strict mode is on: a column without a default would refuse these rows."""
    header = builders.insert(
        connection,
        "so_headers_staging",
        transaksi_id=1001,
        nomer_nota="X",
        gudang_kode="GD-A",
        tanggal_opname="2026-08-01",
        otorisasi_level=2,
        diotorisasi_oleh="budi",
        diotorisasi_at="2026-08-01 03:00:00",
    )
    builders.insert(
        connection, "so_details_staging", header_id=header, baris=1, kode_barang="A", qty_sistem="1", qty_fisik="2",
        harga_pokok="3",
    )  # fmt: skip
    builders.insert(
        connection, "rabbit_publish_shadow", transaksi_id=1001, nomer_nota="X", payload="{}",
        publish_status="PUBLISHED", worker_status="PENDING",
    )  # fmt: skip
    (row,) = builders.rows(
        connection,
        "SELECT lot, snapshot_at, created_at IS NOT NULL AS known FROM so_details_staging, so_headers_staging",
    )
    assert row == {"lot": "", "snapshot_at": None, "known": 1}


def balance(connection: Any, kode_barang: str) -> list[tuple[str, str]]:
    found = builders.rows(
        connection,
        "SELECT nomer_nota, saldo FROM v_kartu_stok WHERE kode_barang = %s ORDER BY tanggal_wib, id",
        kode_barang,
    )
    return [(row["nomer_nota"], str(row["saldo"])) for row in found]


def enter(connection: Any, nota: str, instant: datetime, masuk: str = "0", keluar: str = "0", **columns: Any) -> int:
    return builders.insert(
        connection,
        "kartu_stok",
        **{"kode_barang": "A", "gudang_kode": "GD-A", "tanggal_wib": instant, "masuk": masuk, "keluar": keluar}
        | {"nomer_nota": nota}
        | columns,
    )


def test_h12_an_opname_entered_late_takes_its_place_in_the_running_balance(connection: Any) -> None:
    enter(connection, "IN", datetime(2026, 1, 1, 8), masuk="15000")
    enter(connection, "OUT", datetime(2026, 1, 3, 8), keluar="2000")
    enter(connection, "OPNAME", datetime(2026, 1, 2, 8), keluar="2000")
    assert balance(connection, "A") == [("IN", "15000.0000"), ("OPNAME", "13000.0000"), ("OUT", "11000.0000")]


def test_h14_rows_of_one_instant_are_ordered_by_their_id(connection: Any) -> None:
    midnight = datetime(2026, 1, 1)
    first = enter(connection, "RECEIPT", midnight, masuk="10")
    enter(connection, "OPNAME", midnight, keluar="3", id=first + 5)
    enter(connection, "BETWEEN", midnight, masuk="1", id=first + 3)
    expected = [("RECEIPT", "10.0000"), ("BETWEEN", "11.0000"), ("OPNAME", "8.0000")]
    assert balance(connection, "A") == expected
    assert balance(connection, "A") == expected


def test_each_item_lot_and_warehouse_has_a_balance_of_its_own(connection: Any) -> None:
    """Against a balance that is added up here, over movements in no order."""
    chance = random.Random(14)
    keys = [("A", "", "GD-A"), ("A", "L1", "GD-A"), ("A", "", "GD-B"), ("a", "", "GD-A")]
    for number in range(60):
        kode, lot, gudang = chance.choice(keys)
        side = chance.choice(("masuk", "keluar"))
        enter(
            connection, f"N{number}", datetime(2026, 1, chance.randint(1, 5)), kode_barang=kode, lot=lot,
            gudang_kode=gudang, **{side: f"{chance.randint(1, 99)}.{chance.randint(0, 9999):04d}"},
        )  # fmt: skip
    running: dict[tuple[str, str, str], Decimal] = {}
    for row in builders.rows(connection, "SELECT * FROM v_kartu_stok ORDER BY tanggal_wib, id"):
        key = row["kode_barang"], row["lot"], row["gudang_kode"]
        running[key] = running.get(key, Decimal(0)) + row["masuk"] - row["keluar"]
        assert row["saldo"] == running[key]
    assert set(running) == set(keys)


def test_the_demo_seed_can_be_loaded_twice_and_keeps_what_a_site_changed(connection: Any, database: MysqlUrl) -> None:
    seed = (SQL_DIR / "seed" / "demo.sql").read_text()
    shape.run(database, seed)
    builders.account(connection, "7010150", aktif=False)
    before = builders.rows(connection, "SELECT * FROM gudang"), builders.rows(connection, "SELECT * FROM akun")
    shape.run(database, seed)
    assert before == (
        builders.rows(connection, "SELECT * FROM gudang"),
        builders.rows(connection, "SELECT * FROM akun"),
    )
    assert {"GD-A", "GD-B", "GD-01"} <= {row["gudang_kode"] for row in before[0] if row["aktif"]}


def refused(connection: Any, numbers: set[int], table: str, **values: Any) -> None:
    with pytest.raises(DatabaseError) as caught, transaction(connection):
        builders.insert(connection, table, **values)
    assert caught.value.number in numbers
    assert not caught.value.retryable
    assert not isinstance(caught.value, DuplicateKey)
