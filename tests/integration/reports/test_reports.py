"""What the reports show of real postings: totals that are the journal's, and every row that belongs there."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pytest

from everest import reports
from everest.errors import DocumentMissing
from everest.reports import Filters, ReportRefused
from everest.reports import variance as variance_report
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.integration.reports.asked import NOON, Post, Reverse, amounts
from tests.integration.reports.conftest import Read

AGGREGATES = ("variance", "documents", "warehouse", "group", "item", "month", "reason")


def inventory(connection: Any) -> tuple[D, D]:
    """Debit and credit of the inventory account, from the journal itself."""
    (row,) = builders.rows(
        connection,
        "SELECT COALESCE(SUM(debet), 0) AS d, COALESCE(SUM(kredit), 0) AS k FROM jurnal"
        " WHERE kode_akun = %s AND posting_id IS NOT NULL",
        builders.PERSEDIAAN,
    )
    return row["d"], row["k"]


def test_a_document_is_shown_line_by_line_with_its_header(read: Read, post: Post) -> None:
    post(
        Line("BRG-A", "10", "12", "1500.00", alasan="salah hitung"),
        Line("BRG-B", "7", "5", "2500.50"),
        Line("BRG-C", "3", "3", "100.00"),
        nomer_nota="SO-1",
        diotorisasi_at=NOON,
    )

    rows, report = read("variance", nomer_nota="SO-1")

    assert [(row["baris"], row["kode_barang"], row["selisih_qty"], row["nilai_bersih"]) for row in rows] == [
        (1, "BRG-A", D("2"), D("3000.00")),
        (2, "BRG-B", D("-2"), D("-5001.00")),
        (3, "BRG-C", D("0"), D("0.00")),
    ]
    assert {row["tanggal_wib"] for row in rows} == {datetime(2026, 3, 10, 12, 0)}
    assert (rows[0]["jenis"], rows[0]["diotorisasi_oleh"], rows[0]["alasan"]) == ("POSTING", "budi", "salah hitung")
    assert amounts(report) == (D("3000.00"), D("5001.00"), D("-2001.00"))
    assert report.row_count == 3


@pytest.mark.parametrize("key", AGGREGATES)
def test_the_totals_of_every_report_are_those_of_the_inventory_account_reversals_included(
    read: Read, post: Post, reverse: Reverse, connection: Any, key: str
) -> None:
    post(*builders.EXAMPLE, nomer_nota="SO-1", diotorisasi_at=NOON)
    post(
        Line("BRG-A", "1", "4", "10.10", gudang_kode="GD-B", alasan="rusak"),
        Line("BRG-D", "9", "1", "0.049", alasan=""),
        nomer_nota="SO-2",
        diotorisasi_at=NOON + timedelta(days=40),
    )
    reverse("SO-1")

    _, report = read(key)

    debit, credit = inventory(connection)
    assert amounts(report) == (debit, credit, debit - credit) == (D("8031.30"), D("8001.39"), D("29.91"))


def test_a_reversed_document_and_its_reversal_add_up_to_nothing_and_the_range_parts_them(
    read: Read, post: Post, reverse: Reverse
) -> None:
    post(
        Line("BRG-A", "10", "12", "1500.00", alasan="rusak"),
        *builders.EXAMPLE[1:],
        nomer_nota="SO-1",
        diotorisasi_at=NOON,
    )
    reversal_nota = reverse("SO-1")

    both, report = read("variance", nomer_nota="SO-1")
    march, in_march = read("documents", until=date(2026, 3, 31))
    since_april, in_april = read("month", since=date(2026, 4, 1))

    assert amounts(report) == (D("8001.00"), D("8001.00"), D("0.00"))
    assert [(row["jenis"], row["baris"]) for row in both] == [
        *(("POSTING", baris) for baris in (1, 2, 3)),
        *(("PEMBALIKAN", baris) for baris in (1, 2)),
    ]
    back = both[3]
    assert (back["nomer_nota"], back["membalik"], back["alasan"]) == (reversal_nota, "SO-1", "rusak")
    assert (back["qty_sistem"], back["selisih_qty"], back["nilai_kurang"]) == (None, D("-2"), D("3000.00"))
    assert [(row["nomer_nota"], row["dibalik_oleh"]) for row in march] == [("SO-1", reversal_nota)]
    assert amounts(in_march) == (D("3000.00"), D("5001.00"), D("-2001.00"))
    assert len(since_april) == 1
    assert amounts(in_april) == (D("5001.00"), D("3000.00"), D("2001.00"))
    assert {row["alasan"]: row["nilai_bersih"] for row in read("reason")[0]} == {"rusak": D(0), "(tanpa alasan)": D(0)}


def test_the_reversal_of_a_count_without_variance_is_a_posting_too(read: Read, post: Post, reverse: Reverse) -> None:
    post(Line("BRG-C", "3", "3", "100.00"), nomer_nota="SO-1")
    reversal_nota = reverse("SO-1")

    documents, report = read("documents")
    (month,), _ = read("month")

    assert [(row["nomer_nota"], row["membalik"], row["jumlah_baris"], row["baris_selisih"]) for row in documents] == [
        ("SO-1", None, 1, 0),
        (reversal_nota, "SO-1", 0, 0),
    ]
    assert amounts(report) == (D(0), D(0), D(0))
    assert [read("documents", kode_barang=kode)[1].row_count for kode in ("BRG-C", "BRG-D")] == [1, 0]
    assert (month["jumlah_posting"], month["baris_selisih"], month["nilai_bersih"]) == (2, 0, D(0))


def test_reports_are_filtered_by_item_warehouse_and_wib_day(read: Read, post: Post) -> None:
    late_in_january = datetime(2026, 1, 31, 17, 30, tzinfo=UTC)  # 00:30 WIB on 1 February
    post(
        Line("A", "1", "2", "5", gudang_kode="GD-B"),
        Line("B", "1", "3", "5", gudang_kode="GD-C"),
        diotorisasi_at=late_in_january,
    )

    assert [row["gudang_kode"] for row in read("warehouse")[0]] == ["GD-B", "GD-C"]
    assert [row["gudang_kode"] for row in read("warehouse", kode_barang="B")[0]] == ["GD-C"]
    assert [row["kode_barang"] for row in read("variance", gudang_kode="GD-B")[0]] == ["A"]
    assert [row["bulan"] for row in read("month")[0]] == ["2026-02"]
    assert read("item", until=date(2026, 1, 31))[0] == []


@pytest.mark.parametrize("key", ["variance", "documents", "journal", "stock-card"])
def test_the_server_adds_up_what_a_screen_shows_the_first_rows_of(
    read: Read, post: Post, reverse: Reverse, key: str
) -> None:
    """`read` compares the sums with the rows; here are all filters, and something in each of them to be left out."""
    first = post(Line("A", "10", "12", "5.55"), Line("B", "3", "1", "7", gudang_kode="GD-C", lot="L1"))
    post(Line("D", "1", "1", "5"), Line("C", "2", "9", "0.01"), diotorisasi_at=datetime(2026, 1, 15, tzinfo=UTC))
    reverse(first.nomer_nota)
    filters: dict[str, Any] = {
        "gudang_kode": "GD-C",
        "nomer_nota": first.nomer_nota,
        "kode_barang": "A",
        "lot": "L1",
        "kode_akun": "1010030030",
        "since": date(2026, 2, 1),
        "until": date(2026, 1, 31),
    }
    accepts = reports.REPORTS[key].accepts
    for name, value in filters.items():
        needed = {"kode_barang": "A"} if key == "stock-card" and name != "kode_barang" else {}
        if name in accepts:
            rows, report = read(key, **needed | {name: value})
            assert report.row_count == len(rows)
    assert key == "stock-card" or read(key)[1].row_count >= 3


def test_h44_no_line_gets_lost_in_a_group(read: Read, post: Post, connection: Any) -> None:
    lines = [Line(f"I{n}", "10", "11", "5", gudang_kode="GD-B" if n % 2 else None) for n in range(1, 101)]
    lines[0] = Line("I1", "10", "11", "5", gudang_kode="GD-B", alasan="rusak")
    lines[1] = Line("I2", "10", "11", "5", gudang_kode=None, alasan="")
    post(*lines)

    by_warehouse, warehouses = read("warehouse")
    by_reason, reasons = read("reason")
    _, lines_of_it = read("variance")

    assert {row["gudang_kode"]: row["baris_selisih"] for row in by_warehouse} == {"GD-A": 50, "GD-B": 50}
    assert {row["alasan"]: row["baris_selisih"] for row in by_reason} == {"rusak": 1, "(tanpa alasan)": 99}
    assert amounts(warehouses) == amounts(reasons) == amounts(lines_of_it) == (D("500.00"), D("0.00"), D("500.00"))


def test_h21_a_staging_row_edited_after_posting_changes_no_report(
    read: Read, post: Post, walker: Walker, connection: Any
) -> None:
    document = post(Line("A", "10", "12", "1500", alasan="lama"), nomer_nota="SO-1")
    before = [read(key, nomer_nota="SO-1")[0] for key in ("variance", "journal", "stock-card")]

    with connection.cursor() as cursor:
        cursor.execute("UPDATE so_details_staging SET harga_pokok = 9, qty_fisik = 99")
    connection.commit()
    again = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)
    assert walker.post(again) in ("COMPLETED", "FAILED")

    response = builders.shadow(connection, document.shadow_id)["response"]
    rows, report = read("variance", nomer_nota="SO-1")
    journal, posted = read("journal", nomer_nota="SO-1")
    assert [rows, journal, read("stock-card", nomer_nota="SO-1")[0]] == before
    assert response["total_debet"] == str(report.totals["nilai_lebih"]) == str(posted.totals["debet"]) == "3000.00"


def test_h21_the_reason_of_another_item_is_not_shown_for_what_was_posted(
    read: Read, post: Post, connection: Any
) -> None:
    post(Line("A", "10", "12", "1500", alasan="milik A"), nomer_nota="SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE so_details_staging SET kode_barang = 'Z', alasan = 'milik Z'")
    connection.commit()

    (row,) = read("variance", nomer_nota="SO-1")[0]

    assert (row["kode_barang"], row["alasan"]) == ("A", None)


def test_a_document_that_is_not_posted_is_shown_as_it_would_post_and_counts_nowhere_else(
    read: Read, connection: Any
) -> None:
    builders.document(connection, [Line("A", "10", "12", "0.049"), Line("B", "10", None, "5")], nomer_nota="SO-1")

    rows, report = read("variance", nomer_nota="SO-1")

    assert [(row["jenis"], row["nilai_lebih"]) for row in rows] == [
        ("BELUM DIPOSTING (PENDING)", D("0.10")),
        ("BELUM DIPOSTING (PENDING)", None),
    ]
    assert report.totals["nilai_lebih"] == D("0.10")
    assert all(read(key)[0] == [] for key in (*AGGREGATES, "journal"))


def test_a_document_larger_than_a_batch_is_read_whole_and_in_order(
    read: Read, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variance_report, "LINES_PER_BATCH", 3)
    post(*(Line(f"I{n:02}", "1", "2", "1") for n in range(1, 10)))

    assert [row["baris"] for row in read("variance")[0]] == list(range(1, 10))


@pytest.mark.parametrize(("page", "batch"), [(1, 1), (2, 3), (3, 4), (100, 5_000)])
def test_every_line_of_every_posting_is_read_once_however_they_are_grouped(
    read: Read, post: Post, monkeypatch: pytest.MonkeyPatch, page: int, batch: int
) -> None:
    """Some of one instant, some larger than a batch, one without variance; a hint belongs to its own document."""
    for number, count in enumerate((1, 2, 5, 1, 3)):
        lines = [Line(f"I{number}{n}", "5", "60" if number == 1 else "6", "1") for n in range(count)]
        post(*lines, nomer_nota=f"SO-{number}", diotorisasi_at=NOON + timedelta(days=number // 3))
    monkeypatch.setattr(variance_report, "POSTINGS_PER_PAGE", page)
    monkeypatch.setattr(variance_report, "LINES_PER_BATCH", batch)

    rows, _ = read("variance")

    found = [(row["nomer_nota"], row["baris"]) for row in rows]
    assert sorted(found) == [(f"SO-{n}", baris) for n, c in enumerate((1, 2, 5, 1, 3)) for baris in range(1, c + 1)]
    assert [row["tanggal_wib"] for row in rows] == sorted(row["tanggal_wib"] for row in rows)
    assert {nota for nota, _ in found[:8]} == {"SO-0", "SO-1", "SO-2"}, "documents stay together"
    assert found == sorted(found, key=lambda one: [nota for nota, _ in found].index(one[0]))
    assert {row["nomer_nota"] for row in rows if "12 kali" in (row["petunjuk"] or "")} == {"SO-1"}


def test_lines_are_found_by_the_reason_and_the_group_that_the_other_reports_count(
    read: Read, post: Post, reverse: Reverse, connection: Any
) -> None:
    for code, group in (("A", "Besi"), ("B", "Kayu"), ("C", "Besi")):
        builders.insert(connection, "kelompok_barang", kode_barang=code, kelompok=group)
    connection.commit()
    post(
        Line("A", "1", "3", "5", alasan="rusak"), Line("B", "3", "1", "7", alasan="rusak"), Line("D", "1", "2", "9"),
        Line("C", "2", "2", "9"), nomer_nota="SO-1",
    )  # fmt: skip
    reverse("SO-1")
    builders.document(
        connection, [Line("A", "1", "3", "5", alasan="hilang"), Line("B", "1", "4", "2")], nomer_nota="SO-2"
    )

    def lines(**filters: Any) -> list[tuple[str, D]]:
        return [(row["kode_barang"], row["nilai_bersih"]) for row in read("variance", **filters)[0]]

    assert lines(alasan="rusak") == [("A", D(10)), ("B", D(-14)), ("A", D(-10)), ("B", D(14))]
    assert lines(alasan="") == [("D", D(9)), ("D", D(-9))], "a line that agrees needs no reason"
    assert lines(kelompok="Besi", nomer_nota="SO-1") == [("A", D(10)), ("C", D(0)), ("A", D(-10))]
    assert lines(kelompok="") == [("D", D(9)), ("D", D(-9))]
    assert lines(kelompok="besi") == lines(alasan="tidak ada") == []
    assert lines(nomer_nota="SO-2", kelompok="Kayu") == lines(nomer_nota="SO-2", alasan="") == [("B", D(6))]
    by_group, report = read("group")
    assert {row["kelompok"]: (row["jumlah_barang"], row["nilai_lebih"]) for row in by_group} == {
        "(tanpa kelompok)": (1, D(9)), "Besi": (2, D(10)), "Kayu": (1, D(14)),
    }  # fmt: skip
    assert amounts(report) == amounts(read("month")[1])


def test_the_share_of_documents_without_variance_is_of_counts_and_of_what_was_asked_for(
    read: Read, post: Post, reverse: Reverse
) -> None:
    post(Line("A", "1", "1", "5"), Line("B", "1", "2", "5", gudang_kode="GD-B"), nomer_nota="SO-1", diotorisasi_at=NOON)
    post(Line("A", "1", "1", "5"), nomer_nota="SO-2", diotorisasi_at=NOON)
    post(Line("B", "1", "1", "5"), nomer_nota="SO-3", diotorisasi_at=NOON + timedelta(days=40))
    reverse("SO-3")

    def shares(key: str, **filters: Any) -> dict[str, tuple[int, int, D | None]]:
        names = ("jumlah_dokumen", "dokumen_cocok", "persen_cocok")
        return {row[{"month": "bulan"}.get(key, "gudang_kode")]: tuple(row[name] for name in names)
                for row in read(key, **filters)[0]}  # type: ignore[misc]  # fmt: skip

    months = shares("month")
    assert (months["2026-03"], months["2026-04"]) == ((2, 1, D("50.00")), (1, 1, D("100.00")))
    assert [share for month, share in months.items() if month > "2026-04"] == [(0, 0, None)], (
        "a reversal counts nothing"
    )
    assert shares("month", kode_barang="A")["2026-03"] == (2, 2, D("100.00"))
    assert shares("warehouse", until=date(2026, 3, 31)) == {"GD-A": (2, 2, D("100.00")), "GD-B": (1, 0, D("0.00"))}
    assert read("month")[1].totals["dokumen_cocok"] == 2


def test_a_report_shows_one_moment_whatever_is_posted_meanwhile(
    walker: Walker, read: Read, post: Post, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variance_report, "LINES_PER_BATCH", 2)
    post(*builders.EXAMPLE, nomer_nota="SO-1")

    with walker.database.transaction() as tx, reports.opened(tx, "variance", Filters()) as report:
        rows = report.rows()
        next(rows)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE transaksi_values SET nilai_kredit = 1 WHERE nilai_kredit > 0")
        connection.commit()
        list(rows)

    assert report.totals["nilai_kurang"] == D("5001.00")


@pytest.mark.parametrize(
    ("key", "filters"),
    [
        ("tidak-ada", {}),
        ("journal", {"kode_barang": "A"}),
        ("stock-card", {}),
        ("trace", {}),
        ("month", {"since": date(2026, 2, 1), "until": date(2026, 1, 1)}),
    ],
)
def test_a_report_that_makes_no_sense_is_refused(read: Read, key: str, filters: dict[str, Any]) -> None:
    with pytest.raises(ReportRefused):
        read(key, **filters)


@pytest.mark.parametrize(
    ("key", "filters"),
    [("variance", {"nomer_nota": "SO-?"}), ("trace", {"jurnal_id": 7}), ("trace", {"posting_id": 7})],
)
def test_what_nobody_knows_is_said_so(read: Read, key: str, filters: dict[str, Any]) -> None:
    with pytest.raises(DocumentMissing):
        read(key, **filters)


def test_a_report_left_in_the_middle_leaves_a_usable_connection(walker: Walker, read: Read, post: Post) -> None:
    post(*(Line(f"I{n:04}", "1", "2", "1") for n in range(1, 3001)))
    with walker.database.transaction() as tx, reports.opened(tx, "item") as report:
        next(report.rows())

    assert read("item")[1].row_count == 3000


# ----------------------------------------------------------------------------------------------------------- hints
