"""Taking a posting back: its mirror, and what the reversed one means from then on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pytest

from tests import builders
from tests.builders import PERSEDIAAN, WIB, Line
from tests.integration.opname.reversing import Backwards, counted, per_account, posted, reverse, whole_books
from tests.integration.opname.walk import Walker


def test_a_reversal_mirrors_the_example_of_the_posting_rules(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    before = whole_books(connection)
    values = builders.rows(connection, "SELECT * FROM transaksi_values ORDER BY baris")

    requested = reverse(backwards(), document.nomer_nota)

    assert requested.nomer_nota == f"{document.nomer_nota}-BALIK"
    assert builders.journal_of(connection, requested.nomer_nota) == [
        (1, PERSEDIAAN, D("0.00"), D("3000.00")),
        (2, "7010150", D("3000.00"), D("0.00")),
        (3, "7020020", D("0.00"), D("5001.00")),
        (4, PERSEDIAAN, D("5001.00"), D("0.00")),
    ]
    assert builders.card_of(connection, requested.nomer_nota) == [
        ("BRG-A", D("0"), D("2"), D("-3000.00")),
        ("BRG-B", D("2"), D("0"), D("5001.00")),
    ]
    assert builders.books(connection).agree
    assert set(per_account(connection).values()) == {D("0.00")}
    original, mirror = builders.rows(connection, "SELECT * FROM posting_sets ORDER BY id")
    assert (mirror["jenis"], mirror["membalik_id"]) == ("PEMBALIKAN", original["id"])
    assert (mirror["transaksi_id"], mirror["nomer_nota"]) == (requested.transaksi_id, requested.nomer_nota)
    assert (mirror["total_debet"], mirror["baris_selisih"]) == (D("8001.00"), 2)
    assert whole_books(connection, original["id"]) == before, "the original stays as it was"
    kept = "SELECT * FROM transaksi_values WHERE transaksi_id = %s ORDER BY baris"
    assert builders.rows(connection, kept, document.transaksi_id) == values
    mirrored = builders.rows(connection, kept, requested.transaksi_id)
    assert [(row["baris"], row["selisih_qty"], row["qty_fisik"]) for row in mirrored] == [
        (1, D(-2), None),
        (2, D(2), None),
    ]
    assert [(row["nilai_debet"], row["nilai_kredit"]) for row in mirrored] == [(D(0), D(3000)), (D(5001), D(0))]
    row = builders.shadow(connection, requested.shadow_id)
    assert row["response"]["membalik_nota"] == document.nomer_nota
    assert (row["response"]["total_debet"], row["response"]["baris_selisih"]) == ("8001.00", 2)
    (attempt,) = builders.rows(
        connection, "SELECT * FROM posting_attempts WHERE transaksi_id = %s", requested.transaksi_id
    )
    assert (attempt["outcome"], attempt["input_hash"]) == ("COMPLETED", mirror["input_hash"])


def test_it_is_dated_when_it_posts_and_says_why(walker: Walker, backwards: Backwards, connection: Any) -> None:
    long_ago = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)
    document = posted(walker, connection, diotorisasi_at=long_ago)
    before = datetime.now(WIB).replace(tzinfo=None, microsecond=0)

    requested = reverse(backwards(), document.nomer_nota, reason="  gudang tertukar ")

    found = builders.rows(
        connection,
        "SELECT DISTINCT tanggal_wib FROM jurnal WHERE nomer_nota = %s"
        " UNION SELECT tanggal_wib FROM kartu_stok WHERE nomer_nota = %s"
        " UNION SELECT tanggal_wib FROM transaksi WHERE nomer_nota = %s",
        *[requested.nomer_nota] * 3,
    )
    (instant,) = [row["tanggal_wib"] for row in found]
    assert before - timedelta(seconds=2) <= instant <= datetime.now(WIB).replace(tzinfo=None)
    (text,) = builders.rows(
        connection, "SELECT DISTINCT keterangan FROM jurnal WHERE nomer_nota = %s", requested.nomer_nota
    )
    assert text["keterangan"] == f"Pembalikan {document.nomer_nota}: gudang tertukar"
    (entry,) = builders.rows(connection, "SELECT * FROM audit_log WHERE action = 'reverse'")
    assert (entry["actor"], entry["reason"]) == ("dewi", "gudang tertukar")
    assert (entry["nomer_nota"], entry["shadow_id"]) == (document.nomer_nota, requested.shadow_id)


def test_the_accounts_are_those_that_were_posted_to_whatever_the_warehouse_has_now(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    for code in ("111", "222", "333", "999"):
        builders.account(connection, code)
    own = {"akun_laba_selisih": "222", "akun_rugi_selisih": "333"}
    builders.replace(connection, "akun_gudang", gudang_kode="GD-A", akun_persediaan="111", **own)
    document = posted(walker, connection)
    builders.replace(connection, "akun_gudang", gudang_kode="GD-A", akun_persediaan="999", **own)
    builders.account(connection, "222", aktif=False)
    builders.warehouse(connection, "GD-A", aktif=False)

    requested = reverse(backwards(), document.nomer_nota)

    assert [code for _, code, *_ in builders.journal_of(connection, requested.nomer_nota)] == [
        "111",
        "222",
        "333",
        "111",
    ]
    assert set(per_account(connection).values()) == {D("0.00")}


@pytest.mark.parametrize(
    ("lines", "journal_rows", "card_rows"),
    [
        pytest.param([Line("A", "3", "3")], 0, 0, id="no variance at all"),
        pytest.param([Line("A", "10", "10.01", "0.10")], 0, 1, id="H15 a value that rounds to nothing"),
        pytest.param([Line("A", lot="1"), Line("A", "9", "1", lot="2"), Line("A", gudang_kode="B")], 4, 3, id="lots"),
    ],
)  # fmt: skip
def test_every_kind_of_posting_has_its_mirror(
    walker: Walker, backwards: Backwards, connection: Any, lines: list[Line], journal_rows: int, card_rows: int
) -> None:
    document = posted(walker, connection, *lines)

    requested = reverse(backwards(), document.nomer_nota)

    assert len(builders.journal_of(connection, requested.nomer_nota)) == journal_rows
    assert len(builders.card_of(connection, requested.nomer_nota)) == card_rows
    left = builders.rows(
        connection,
        "SELECT kode_barang, lot, gudang_kode FROM kartu_stok GROUP BY kode_barang, lot, gudang_kode"
        " HAVING SUM(masuk - keluar) <> 0 OR SUM(nilai) <> 0",
    )
    assert left == []
    assert builders.books(connection).agree


def test_h03_a_posting_of_3200_lines_is_reversed_line_by_line(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    lines = [Line(f"I{i:04d}", "10", str(i % 21), f"{i % 997}.{i % 10000:04d}") for i in range(1, 3201)]
    document = posted(walker, connection, *lines)
    (original,) = builders.rows(connection, "SELECT * FROM posting_sets")
    before = whole_books(connection)

    requested = reverse(backwards(), document.nomer_nota)

    assert len(builders.card_of(connection, requested.nomer_nota)) == original["baris_selisih"] > 3000
    assert set(per_account(connection).values()) == {D("0.00")}
    assert whole_books(connection, original["id"]) == before
    unlike = builders.rows(
        connection,
        "SELECT o.id FROM kartu_stok o LEFT JOIN kartu_stok m ON m.posting_id = %s AND m.kode_barang = o.kode_barang"
        " AND m.masuk = o.keluar AND m.keluar = o.masuk AND m.nilai = -o.nilai AND m.harga_pokok = o.harga_pokok"
        " WHERE o.posting_id = %s AND m.id IS NULL",
        *(row["id"] for row in reversed(builders.rows(connection, "SELECT id FROM posting_sets ORDER BY id"))),
    )
    assert not unlike
    assert requested.transaksi_id != document.transaksi_id


def test_a_reversed_nota_stays_used_and_its_document_stays_completed(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    requested = reverse(backwards(), document.nomer_nota)
    before = whole_books(connection)

    again = counted(connection, nomer_nota=document.nomer_nota, snapshot_at=datetime.now(UTC))
    assert walker.post(again.shadow_id) == "FAILED"
    second_message = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)
    assert walker.post(second_message) == "COMPLETED"

    row = builders.shadow(connection, again.shadow_id)
    assert row["error_code"] == 409
    assert f"dibalik oleh {requested.nomer_nota}; pakai nota baru" in row["error"]
    assert whole_books(connection) == before


def test_a_count_frozen_before_a_reversal_is_stale(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, Line("A"))
    frozen = datetime.now(UTC)
    reverser = backwards()
    requested = reverse(reverser, document.nomer_nota)
    stale = counted(connection, [Line("A")], snapshot_at=frozen)

    assert walker.post(stale.shadow_id) == "FAILED"

    row = builders.shadow(connection, stale.shadow_id)
    assert row["error_code"] == 409
    assert requested.nomer_nota in row["error"]
    fresh = counted(connection, [Line("A")], snapshot_at=datetime.now(UTC))
    assert walker.post(fresh.shadow_id) == "COMPLETED"
    assert reverse(reverser, fresh.nomer_nota).nomer_nota == f"{fresh.nomer_nota}-BALIK"
