"""What a report points out, and whose lines they are, whatever is filtered."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal as D
from typing import Any

from tests import builders
from tests.builders import Line
from tests.integration.reports.asked import NOON, Post, Reverse, amounts
from tests.integration.reports.conftest import Read


def test_h29_negative_system_stock_is_posted_and_flagged_in_the_report(read: Read, post: Post) -> None:
    post(Line("A", "-2000", "0", "15"), Line("B", "3", "3", "15"), nomer_nota="SO-1")

    flagged, other = read("variance", nomer_nota="SO-1")[0]

    assert (flagged["nilai_lebih"], other["petunjuk"]) == (D("30000.00"), None)
    assert "stok sistem negatif (-2.000)" in flagged["petunjuk"]


def test_hints_are_about_the_whole_document_whatever_is_filtered(read: Read, post: Post, connection: Any) -> None:
    lines = [Line("A", "5", "60", "1"), Line("B", "20", "13", "1"), Line("C", "10", "17", "1", gudang_kode="GD-B")]
    post(*lines, nomer_nota="SO-1")
    builders.document(connection, lines, nomer_nota="SO-2")

    for nota in ("SO-1", "SO-2"):
        (row,) = read("variance", nomer_nota=nota, gudang_kode="GD-B")[0]
        assert "label mungkin tertukar" in row["petunjuk"]
        (unit, *_) = read("variance", nomer_nota=nota)[0]
        assert "12 kali" in unit["petunjuk"]
    assert "12 kali" in read("variance")[0][0]["petunjuk"]


def test_an_item_that_other_recent_documents_missed_elsewhere_is_named(
    read: Read, post: Post, reverse: Reverse
) -> None:
    post(Line("A", "11", "3", "1"), nomer_nota="SO-LAMA", gudang_kode="GD-C", diotorisasi_at=NOON - timedelta(days=90))
    post(Line("A", "11", "3", "1"), nomer_nota="SO-DEKAT", gudang_kode="GD-B", diotorisasi_at=NOON - timedelta(days=9))
    post(Line("A", "11", "3", "1"), nomer_nota="SO-BALIK", gudang_kode="GD-D", diotorisasi_at=NOON)
    reverse("SO-BALIK")
    post(Line("A", "13", "2", "1"), nomer_nota="SO-1", gudang_kode="GD-A", diotorisasi_at=NOON)

    (row,) = read("variance", nomer_nota="SO-1")[0]

    assert row["petunjuk"] == ("barang A juga meleset separuh atau lebih di dokumen lain (gudang GD-B di SO-DEKAT)")


def test_a_filter_that_leaves_nothing_of_a_posted_nota_does_not_show_another_document_of_that_nota(
    read: Read, post: Post, connection: Any
) -> None:
    post(Line("A", "1", "2", "5"), nomer_nota="SO-1")
    builders.document(connection, [Line("B", "1", "9", "5")], nomer_nota="SO-1")

    assert [row["kode_barang"] for row in read("variance", nomer_nota="SO-1")[0]] == ["A"]
    assert read("variance", nomer_nota="SO-1", kode_barang="B")[0] == []


def test_the_lines_of_a_document_are_its_own_whatever_is_posted_under_its_nota(
    read: Read, post: Post, reverse: Reverse, connection: Any
) -> None:
    posted = post(*builders.EXAMPLE, nomer_nota="SO-1")
    reverse("SO-1")
    other = builders.document(connection, [Line("Z", "1", "9", "5")], nomer_nota="SO-1")

    rows, report = read("document-lines", transaksi_id=posted.transaksi_id)
    assert [row["kode_barang"] for row in rows] == ["BRG-A", "BRG-B", "BRG-C"]
    assert amounts(report) == (D("3000.00"), D("5001.00"), D("-2001.00"))
    rows, report = read("document-lines", transaksi_id=other.transaksi_id)
    assert [(row["kode_barang"], row["posting_id"]) for row in rows] == [("Z", None)]
    assert amounts(report) == (D("40.00"), D("0.00"), D("40.00"))
