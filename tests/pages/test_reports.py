"""Laporan: each bar leads to exactly its rows, each nota to its document, in the language that the reader chose."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import openpyxl
import pytest

from bench.pages import counted_statements
from everest import reversal
from everest.opname.workflow import REVERSE_OPNAME
from everest.pages.drill_down import CHARTED
from everest.pages.reports import BARS
from everest.reports import REPORTS
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.pages.bars import compare, drawn_bars
from tests.pages.conftest import Be
from tests.pages.tables import amount, table

FEW = 12
"""Statements of one report page, however many documents it shows."""
NOON = datetime(2026, 3, 1, 12, 0)
ODD_REASON = "  Rusak & <b>basah</b>,\n50% #1 + 'x' "


@pytest.fixture
def books(database: MysqlUrl, connection: Any) -> Iterator[Walker]:
    """Two months, two warehouses, reasons and groups of every kind, one document without variance, one reversed."""
    walker, backwards = Walker(database), Walker(database, definition=REVERSE_OPNAME)
    for code, group in (("BRG-A", "Besi"), ("BRG-A1", "Besi"), ("BRG-B", "Kayu"), ("BRG-C", "")):
        builders.insert(connection, "kelompok_barang", kode_barang=code, kelompok=group)
    documents: list[tuple[int, int, list[Line]]] = [
        (3, 10, [Line("BRG-A", "10", "12", "1500.55", alasan="rusak"), Line("BRG-B", "9", "2", "250.01", alasan="")]),
        (3, 20, [Line("BRG-A1", "1", "4", "10.10", gudang_kode="GD-B", alasan="RUSAK"), Line("BRG-C", "3", "3", "5")]),
        (2, 3, [Line("BRG-A", "5", "1", "1500.55", alasan=ODD_REASON), Line("BRG-D", "1", "3", "0.07")]),
        (3, 31, [Line("BRG-B", "4", "4", "250"), Line("BRG-E", "4", "4", "1")]),
        (3, 11, [Line("BRG-B", "2", "9", "33.33", alasan="(tanpa alasan)"), Line("BRG-C", "3", "1", "7.77")]),
    ]
    # Downwards: a number above the table's counter moves it, and a reversal takes the next one.
    for number, (month, day, lines) in enumerate(documents, start=1):
        document = builders.document(
            connection, [replace(line, lot=f"L{number}") for line in lines], nomer_nota=f"SO-{number}",
            transaksi_id=900_000 - number,
            diotorisasi_at=datetime(2026, month, day, 5, 0, tzinfo=UTC),
        )  # fmt: skip
        assert walker.post(document.shadow_id) == "COMPLETED"
    with backwards.database.transaction() as tx:
        asked = reversal.request(tx, "SO-5", "dewi", "salah rak")
    assert backwards.post(asked.shadow_id) == "COMPLETED"
    yield walker
    walker.close()
    backwards.close()


@pytest.mark.parametrize(
    ("filters", "language"),
    [
        ("since=", "id"),
        ("since=2026-02-01&until=2026-03-20&gudang_kode=GD-A", "id"),
        ("since=2026-03-11", "en"),
    ],
)
def test_the_rows_behind_each_bar_add_up_to_it_to_the_cent(
    browser: Be, books: Walker, filters: str, language: str
) -> None:
    for key in CHARTED:
        compare(browser("analyst"), key, filters, language)


def test_a_bar_of_a_document_leads_to_its_line(browser: Be, books: Walker, connection: Any) -> None:
    client = browser("analyst")
    (job,) = builders.rows(connection, "SELECT id FROM rabbit_publish_shadow WHERE nomer_nota = 'SO-1'")
    bars = drawn_bars(client.get(f"/documents/{job['id']}").text)
    assert len(bars) == 2
    for address, item, told in bars:
        path, _, anchor = html.unescape(address).partition("#")
        line = re.search(rf'<tr id="{anchor}" class="flawed">(.*?)</tr>', client.get(path).text, re.DOTALL)
        assert line and item in line[1] and told.removeprefix("-") in line[1]


def test_a_reason_is_one_bar_whatever_its_case_and_the_empty_one_has_its_own(browser: Be, books: Walker) -> None:
    client = browser("analyst")
    bars = {html.unescape(label): html.unescape(address) for address, label, _ in drawn_bars(
        client.get("/reports?report=reason&since=").text)}  # fmt: skip
    empty = next(address for label, address in bars.items() if label == "(tanpa alasan)")
    page = client.get(empty).text
    assert {row["Kode barang"] for row in table(page)[0]} == {"BRG-B", "BRG-C", "BRG-D"}
    assert 'type="checkbox" name="alasan" value="" checked' in page, (
        "what it was narrowed to can be seen and taken away"
    )
    odd = next(address for label, address in bars.items() if "basah" in label)
    assert [row["Kode barang"] for row in table(client.get(odd).text)[0]] == ["BRG-A"]


def test_a_month_is_no_wider_than_the_days_that_were_asked_for(browser: Be, books: Walker) -> None:
    page = browser("analyst").get("/reports?report=month&since=2026-03-11&until=2026-03-25").text
    addresses = {html.unescape(address) for address, _, _ in drawn_bars(page)}
    assert addresses and all("since=2026-03-11" in one and "until=2026-03-25" in one for one in addresses)


def test_the_share_of_documents_without_variance_stands_over_the_months(browser: Be, books: Walker) -> None:
    """Five counts, one without variance; the reversal counted nothing."""
    page = browser("analyst").get("/reports?report=month&since=").text
    rows, totals = table(page)
    march = next(row for row in rows if row["Bulan"] == "2026-03")
    assert (march["Dokumen hitung"], march["Dokumen tanpa selisih"], march["Tanpa selisih (%)"]) == (
        "4",
        "1",
        "25,00%",
    )
    assert (totals["Dokumen hitung"], totals["Dokumen tanpa selisih"]) == ("5", "1")
    assert "20,00%" in page and "1 dari 5 dokumen hitung" in page
    by_warehouse, _ = table(browser("analyst").get("/reports?report=warehouse&since=").text)
    assert {row["Gudang"]: row["Tanpa selisih (%)"] for row in by_warehouse} == {"GD-A": "40,00%", "GD-B": "0,00%"}


def test_a_nota_in_a_report_leads_to_its_document(browser: Be, books: Walker, connection: Any) -> None:
    builders.movement(
        connection, "BRG-A", masuk="1", nomer_nota="BELI-7", tanggal_wib=NOON, created_at=NOON.replace(tzinfo=UTC)
    )
    connection.commit()
    client = browser("analyst")
    (job,) = builders.rows(connection, "SELECT id FROM rabbit_publish_shadow WHERE nomer_nota = 'SO-1'")
    for key in ("variance", "documents", "journal", "stock-card", "trace"):
        query = {"stock-card": "kode_barang=BRG-A", "trace": "nomer_nota=SO-1"}.get(key, "since=")
        page = client.get(f"/reports?report={key}&since=&{query}").text
        links = re.findall(r'<a href="([^"]*/reports/document[^"]*)">([^<]*)</a>', page)
        answer = client.get(next(html.unescape(link) for link, nota in links if nota == "SO-1"))
        assert (answer.status_code, answer.headers["location"]) == (303, f"/documents/{job['id']}")
        assert "BELI-7" not in {nota for _, nota in links}, "a number of another module is no document of ours"


def test_a_nota_leads_to_a_draft_and_one_that_nobody_knows_nowhere(browser: Be, connection: Any) -> None:
    draft = builders.document(connection, nomer_nota="SO-DRAF")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM rabbit_publish_shadow")
    connection.commit()
    answer = browser("finance").get("/reports/document?nomer_nota=SO-DRAF")
    assert answer.headers["location"] == f"/drafts/{draft.transaksi_id}"
    assert browser("finance").get("/reports/document?nomer_nota=SO-%3F").status_code == 404
    assert browser("finance").get("/reports/document").status_code == 404


def test_every_report_is_told_in_the_language_that_was_chosen(browser: Be, books: Walker) -> None:
    client = browser("analyst")
    with_rows = set()
    for key, definition in REPORTS.items():
        address = f"/reports?report={key}&since=&nomer_nota=SO-1"
        for language, other in (("id", "en"), ("en", "id")):
            page = html.unescape(client.get(f"{address}&lang={language}").text)
            assert definition.title(language) in page
            assert all(note in page for note in definition.notes_in(language))
            assert not any(note in page for note in definition.notes_in(other))
            if "<thead>" in page:
                with_rows.add(key)
                assert [column.name for column in definition.columns if column.headed(language) not in page] == []
        book = openpyxl.load_workbook(io.BytesIO(client.get(f"/reports/{key}.xlsx?nomer_nota=SO-1&lang=en").content))
        assert book.sheetnames == ["Report", "About"]
        assert [cell.value for cell in book["Report"][1]] == [column.heading_en for column in definition.columns]
        assert book["About"]["B1"].value == definition.title("en")
    assert with_rows >= {"variance", "documents", "month", "journal", "stock-card", "trace"}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "since=2026-03-02&until=2026-03-01",
            ("Tanggal awal sesudah tanggal akhir.", "The first day is after the last"),
        ),
        ("nomer_nota=SO-TIADA", ("Tidak ada nota SO-TIADA.", "There is no nota SO-TIADA.")),
    ],
)
def test_what_a_report_cannot_be_made_for_is_said_in_that_language(
    browser: Be, query: str, told: tuple[str, str]
) -> None:
    for language, sentence in zip(("id", "en"), told, strict=True):
        assert sentence in browser("analyst").get(f"/reports?report=variance&{query}&lang={language}").text


def test_a_report_of_many_documents_asks_the_database_a_few_times(
    browser: Be, database: MysqlUrl, connection: Any
) -> None:
    walker = Walker(database)
    for number in range(15):
        document = builders.document(
            connection, [Line(f"BRG-{number}", "1", "4", "10"), Line(f"BOX-{number}", "5", "4", "10")]
        )
        assert walker.post(document.shadow_id) == "COMPLETED"
    walker.close()
    client = browser("analyst")
    for key in ("variance", "documents", "month", "reason", "group"):
        client.get(f"/reports?report={key}&since=")
        with counted_statements() as sent:
            page = client.get(f"/reports?report={key}&since=").text
        assert sent.total() <= FEW + SESSION_STATEMENTS, key
        assert key != "variance" or len(table(page)[0]) == 30


SESSION_STATEMENTS = 8
"""A connection of the pages is opened twice per page, each set up by a few statements."""


def test_the_report_by_item_has_the_largest_first_and_draws_those(
    browser: Be, database: MysqlUrl, connection: Any
) -> None:
    """Surplus and shortage of an item together say how large it is; the table has all of them, the chart the first."""
    walker = Walker(database)
    counted = {f"BRG-{n:02d}": (n % 2 == 0, Decimal(n * 7 % 16 + 1)) for n in range(1, BARS + 4)}
    lines = [Line(code, "50", "51" if up else "49", f"{worth}.25") for code, (up, worth) in counted.items()]
    document = builders.document(connection, lines, nomer_nota="SO-BANYAK")
    assert walker.post(document.shadow_id) == "COMPLETED"
    walker.close()
    largest = sorted(counted, key=lambda code: counted[code][1], reverse=True)
    page = browser("analyst").get("/reports?report=item&since=").text
    rows, _ = table(page)
    assert [row["Kode barang"] for row in rows] == largest
    bars = [(html.unescape(label), amount(told)) for _, label, told in drawn_bars(page)]
    drawn = [(code, (counted[code][1] + Decimal("0.25")) * (1 if counted[code][0] else -1)) for code in largest[:BARS]]
    assert sorted(bars) == sorted(drawn)
