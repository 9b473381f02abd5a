"""Journal, stock card, late movements and the trace from a row back to its document, of real postings."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D
from typing import Any

from tests import builders
from tests.builders import Line
from tests.integration.reports.asked import NOON, Post, Reverse
from tests.integration.reports.conftest import Read


def test_the_journal_is_in_order_with_names_and_balances(read: Read, post: Post, connection: Any) -> None:
    post(*builders.EXAMPLE, nomer_nota="SO-1", diotorisasi_at=NOON)
    builders.insert(
        connection,
        "jurnal",
        nomer_nota="SO-1",
        sumber="LAMA",
        tanggal_wib=datetime(2026, 3, 1),
        kode_akun="7010150",
        debet="5.00",
    )

    rows, report = read("journal")

    assert [(row["urutan"], row["kode_akun"], row["debet"], row["kredit"]) for row in rows] == [
        (1, "1010030030", D("3000.00"), D("0.00")),
        (2, "7010150", D("0.00"), D("3000.00")),
        (3, "7020020", D("5001.00"), D("0.00")),
        (4, "1010030030", D("0.00"), D("5001.00")),
    ]
    assert rows[1]["nama_akun"] == "Laba selisih persediaan"
    assert report.totals == {"debet": D("8001.00"), "kredit": D("8001.00")}
    assert [row["urutan"] for row in read("journal", kode_akun="7020020")[0]] == [3]


def test_the_stock_card_has_the_balance_of_the_view_whatever_is_filtered(
    read: Read, post: Post, connection: Any
) -> None:
    for day, masuk, keluar in ((1, "30", "0"), (3, "0", "4"), (12, "0", "2")):
        builders.movement(
            connection, "A", masuk=masuk, keluar=keluar, tanggal_wib=datetime(2026, 3, day), created_at=NOON
        )
    builders.movement(
        connection, "A", lot="L1", masuk="7", tanggal_wib=datetime(2026, 3, 1), created_at=NOON, nomer_nota="BELI-2"
    )
    post(Line("A", "26", "20", "10"), nomer_nota="SO-1", diotorisasi_at=NOON + timedelta(hours=1), snapshot_at=NOON)
    view = {row["id"]: row["saldo"] for row in builders.rows(connection, "SELECT id, saldo FROM v_kartu_stok")}

    def balances(**filters: Any) -> list[tuple[str, D]]:
        rows, _ = read("stock-card", **filters)
        assert all(row["saldo"] == view[row["kartu_stok_id"]] for row in rows)
        return [(row["nomer_nota"], row["saldo"]) for row in rows]

    whole = [("BELI-1", D(30)), ("BELI-1", D(26)), ("SO-1", D(20)), ("BELI-1", D(18))]
    assert balances(kode_barang="A", lot="") == whole
    assert balances(kode_barang="A", lot="", since=date(2026, 3, 3), until=date(2026, 3, 10)) == whole[1:3]
    assert balances(nomer_nota="SO-1") == [("SO-1", D(20))]
    assert balances(nomer_nota="BELI-2") == [("BELI-2", D(7))]
    assert len(balances(gudang_kode="GD-A")) == 5


def test_h13_a_receipt_dated_before_a_posted_count_is_listed_against_its_nota(
    read: Read, post: Post, reverse: Reverse, connection: Any
) -> None:
    snapshot = NOON - timedelta(hours=1)
    post(
        Line("X", "1", "1", "1"),
        Line("A", "42", "1", "10"),
        nomer_nota="SO-1",
        diotorisasi_at=NOON,
        snapshot_at=snapshot,
    )
    now = datetime.now(UTC)

    def receipt(nota: str, kode: str = "A", at: datetime = datetime(2026, 3, 1), **more: Any) -> int:
        return builders.movement(
            connection, kode, masuk="9", tanggal_wib=at, created_at=more.pop("created_at", now), nomer_nota=nota, **more
        )

    listed = receipt("BELI-TELAT")
    receipt("BELI-TEPAT", at=datetime(2026, 3, 10, 11, 0))  # dated at the snapshot
    receipt("BELI-SESUDAH", at=datetime(2026, 3, 10, 11, 0, 1))  # dated after it: daily business
    receipt("BELI-DULU", created_at=snapshot - timedelta(hours=1))  # the snapshot knew it
    receipt("BELI-LAIN", kode="B")  # not counted
    receipt("BELI-GUDANG", gudang_kode="GD-B")  # counted elsewhere
    receipt("BELI-LOT", lot="L1")
    receipt("BELI-COCOK", kode="X")  # a line without variance is a count, too

    rows, report = read("late-movements")

    assert [(row["nomer_nota"], row["baris"], row["nota_mutasi"]) for row in rows] == [
        ("SO-1", 2, "BELI-TELAT"),
        ("SO-1", 1, "BELI-COCOK"),
        ("SO-1", 2, "BELI-TEPAT"),
    ]
    assert rows[0]["kartu_stok_id"] == listed
    assert {row["dicatat_setelah"] for row in rows} == {"posting"}
    assert report.totals["masuk"] == D(27)
    assert read("late-movements", nomer_nota="SO-1", kode_barang="X")[0] == [rows[1]]
    reverse("SO-1")
    assert read("late-movements")[0] == []


def test_a_movement_without_a_date_is_late_for_every_count_and_stops_no_report(
    read: Read, post: Post, connection: Any
) -> None:
    """An application with an empty sql_mode writes zero dates."""
    post(Line("A", "42", "1", "10"), nomer_nota="SO-1", diotorisasi_at=NOON, snapshot_at=NOON - timedelta(hours=1))
    undated = builders.movement(
        connection, "A", masuk="9", tanggal_wib=datetime(2026, 3, 1), created_at=datetime.now(UTC), nomer_nota="BELI-0"
    )
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute("UPDATE kartu_stok SET tanggal_wib = '0000-00-00 00:00:00' WHERE id = %s", (undated,))
        cursor.execute("SET SESSION sql_mode = DEFAULT")
    connection.commit()

    rows, _ = read("late-movements")

    assert [(row["nota_mutasi"], row["tanggal_mutasi"]) for row in rows] == [("BELI-0", None)]


def test_a_trace_leads_from_a_journal_row_to_everything_and_from_the_nota_to_the_same(
    read: Read, post: Post, reverse: Reverse, connection: Any
) -> None:
    document = post(*builders.EXAMPLE, nomer_nota="SO-1", diotorisasi_at=NOON)
    message = '{"transaksi_id": 1, "shadow_id": 1}'
    builders.insert(
        connection,
        "outbox",
        shadow_id=document.shadow_id,
        exchange="everest.jobs.x",
        routing_key="job.process",
        body=message,
        available_at=datetime(2026, 3, 10, 5, 0),
    )
    reverse("SO-1")
    post(Line("BRG-Q"), nomer_nota="SO-9")
    (journal_row, *_) = builders.rows(
        connection, "SELECT id, posting_id FROM jurnal WHERE nomer_nota = 'SO-1' ORDER BY id"
    )
    (card_row, *_) = builders.rows(connection, "SELECT id FROM kartu_stok WHERE nomer_nota = 'SO-1'")

    rows, _ = read("trace", jurnal_id=journal_row["id"])

    found = [row["objek"] for row in rows]
    assert {"dokumen": 1, "transaksi": 1, "pekerjaan": 1, "alur kerja": 1, "langkah": 3}.items() <= {
        what: found.count(what) for what in found
    }.items()
    assert (found.count("posting"), found.count("jurnal"), found.count("kartu stok")) == (2, 8, 4)
    assert any(message in row["isi"] for row in rows if row["objek"] == "pesan")
    (posting, reversal) = [row["isi"] for row in rows if row["objek"] == "posting"]
    dag_run_id = builders.shadow(connection, document.shadow_id)["dag_run_id"]
    assert dag_run_id and f"DAG run {dag_run_id}" in posting
    assert f"membalik posting {journal_row['posting_id']}" in reversal
    assert not any("SO-9" in str(row) for row in rows)
    for start in ({"nomer_nota": "SO-1"}, {"kartu_stok_id": card_row["id"]}, {"posting_id": journal_row["posting_id"]}):
        assert read("trace", **start)[0] == rows
