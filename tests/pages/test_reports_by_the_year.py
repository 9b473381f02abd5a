"""Laporan about more than a year: the last year of it, said so in both languages; files have all that was asked for."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from bench.pages import counted_statements
from everest.pages import reports
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.pages.bars import compare, drawn_bars
from tests.pages.conftest import Be
from tests.pages.tables import amount, table

TODAY = date(2026, 3, 31)
POSTED = {
    "SO-BARU": (date(2026, 3, 20), "1"),
    "SO-HARI-PERTAMA": (date(2025, 3, 31), "20"),
    "SO-SEHARI-LEBIH-TUA": (date(2025, 3, 30), "300"),
    "SO-LAMA": (date(2023, 2, 1), "4000"),
}
"""The first two are of the last 366 days."""
NOTE = {
    "id": "Layar menunjukkan 366 hari terakhir dari masa yang diminta: {} s.d. {}.",
    "en": "The screen shows the last 366 days of the period that was asked for: {} to {}.",
}
WHOLE = {"id": "Berkas: seluruh masa yang diminta", "en": "Files: the whole period asked for"}
EMPTY = {
    "id": "Tidak ada yang diposting pada hari-hari ini dengan saringan ini.",
    "en": "Nothing was posted on these days with these filters.",
}
BEFORE = re.compile(r'<a rel="prev" href="([^"]*)">([^<]*)</a>')


@pytest.fixture
def years(database: MysqlUrl, connection: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walker]:
    """A count of a line each, its shortage in the second warehouse; and a movement that each of them did not know."""
    monkeypatch.setattr(reports, "_today", lambda: TODAY)
    walker = Walker(database)
    for number, (nota, (day, worth)) in enumerate(POSTED.items(), start=1):
        posted_at = datetime(day.year, day.month, day.day, 5, 0, tzinfo=UTC)
        lines = [
            Line(f"BRG-{number}", "1", "2", worth, alasan=f"sebab {number}"),
            Line(f"BRG-{number}", "2", "1", worth, gudang_kode="GD-B", alasan=f"sebab {number}"),
        ]
        document = builders.document(
            connection, lines, nomer_nota=nota, transaksi_id=900_000 - number, diotorisasi_at=posted_at
        )
        assert walker.post(document.shadow_id) == "COMPLETED"
        builders.movement(
            connection, f"BRG-{number}", masuk="1", nomer_nota=f"BELI-{number}",
            tanggal_wib=datetime(day.year, day.month, day.day) - timedelta(days=3), created_at=datetime.now(UTC),
        )  # fmt: skip
    connection.commit()
    yield walker
    walker.close()


def shown(page: str) -> set[str]:
    """The numbers of the documents whose rows a table has: they stand in what it is grouped by."""
    return {re.sub(r"\D", "", next(iter(row.values()))) for row in table(page)[0]}


@pytest.mark.parametrize("language", ["id", "en"])
@pytest.mark.parametrize("key", ["item", "reason"])
def test_everything_is_the_last_year_of_it_and_the_page_says_so(
    browser: Be, years: Walker, key: str, language: str
) -> None:
    client = browser("analyst")
    page = html.unescape(client.get(f"/reports?report={key}&since=&lang={language}").text)
    assert NOTE[language].format("31-03-2025", "31-03-2026") in page
    assert WHOLE[language] in page and page.count('aria-describedby="whole"') == 2
    assert shown(page) == {"1", "2"}
    surplus = {"id": "Nilai lebih", "en": "Surplus value"}[language]
    rows, totals = table(page)
    assert amount(totals[surplus]) == sum(amount(row[surplus]) for row in rows) == Decimal(21)
    bars = {html.unescape(address) for address, _, _ in drawn_bars(page)}
    assert bars and all("since=2025-03-31" in one for one in bars)
    compare(client, key, "since=", language)
    assert 'name="since" value=""' in page and 'name="until" value=""' in page, "the fields say what was asked for"
    assert not re.search(rf'report={key}&lang=(id|en)"', page), "the other language is about everything, too"


@pytest.mark.parametrize("key", ["item", "reason", "group", "late-movements"])
def test_the_year_before_is_a_link_away_and_keeps_the_other_filters(browser: Be, years: Walker, key: str) -> None:
    client = browser("analyst")
    page = client.get(f"/reports?report={key}&since=&gudang_kode=GD-A&lang=id").text
    found = BEFORE.search(page)
    assert found and found[2] == "Setahun sebelumnya, s.d. 30-03-2025"
    address = html.unescape(found[1])
    assert address == f"/reports?report={key}&since=&gudang_kode=GD-A&until=2025-03-30"
    page = client.get(address).text
    assert NOTE["id"].format("30-03-2024", "30-03-2025") in page
    assert 'name="until" value="2025-03-30"' in page and 'value="GD-A" selected' in page
    if key == "late-movements":
        assert [row["Nomor nota"] for row in table(page)[0]] == ["SO-SEHARI-LEBIH-TUA"]
    elif key == "group":
        (group,) = table(page)[0]
        assert amount(group["Nilai lebih"]) == 300
    else:
        assert shown(page) == {"3"}
    found = BEFORE.search(page)
    assert found
    page = client.get(html.unescape(found[1])).text
    assert NOTE["id"].format("30-03-2023", "29-03-2024") in page
    assert EMPTY["id"] in page, "nothing was posted in that year, and more is further back"
    found = BEFORE.search(page)
    assert found
    page = client.get(html.unescape(found[1])).text
    assert "hari terakhir dari" not in page and BEFORE.search(page) is None, "the first year of the books ends it"
    assert len(table(page)[0]) == 1


@pytest.mark.parametrize("language", ["id", "en"])
@pytest.mark.parametrize(
    ("query", "first", "last", "numbers"),
    [
        ("since=2025-03-30", "31-03-2025", "31-03-2026", {"1", "2"}),
        ("until=2025-12-31", "31-12-2024", "31-12-2025", {"2", "3"}),
        ("until=2099-12-31", "31-03-2025", "31-03-2026", {"1", "2"}),
        ("since=2020-01-01&until=2025-03-30", "30-03-2024", "30-03-2025", {"3"}),
        ("since=&gudang_kode=GD-B", "31-03-2025", "31-03-2026", {"1", "2"}),
        ("since=&gudang_kode=GD-X", "31-03-2025", "31-03-2026", set()),
        ("since=2020-01-01&until=2024-12-31", "01-01-2024", "31-12-2024", set()),
        ("since=2025-03-31", None, None, {"1", "2"}),
        ("since=2025-03-30&until=2025-04-01", None, None, {"2", "3"}),
        ("since=2020-01-01&until=2023-12-31", None, None, {"4"}),
        ("since=&nomer_nota=SO-LAMA", None, None, {"4"}),
    ],
)
def test_a_page_says_which_days_it_shows(
    browser: Be, years: Walker, query: str, first: str | None, last: str | None, numbers: set[str], language: str
) -> None:
    page = html.unescape(browser("analyst").get(f"/reports?report=item&{query}&lang={language}").text)
    note = NOTE[language].partition(":")[0]
    assert (NOTE[language].format(first, last) in page) if first else (note not in page)
    assert (WHOLE[language] in page) == (first is not None)
    assert (EMPTY[language] in page) == (not numbers)
    assert (shown(page) if numbers else set()) == numbers


def test_an_empty_range_is_told_as_that(browser: Be, years: Walker) -> None:
    page = browser("analyst").get("/reports?report=item&since=2026-01-01&until=2020-01-01").text
    assert "Tanggal awal sesudah tanggal akhir." in page and 'class="part"' not in page


def test_the_files_beside_such_a_page_have_all_that_was_asked_for(browser: Be, years: Walker) -> None:
    client = browser("analyst")
    for key in ("item", "reason", "late-movements"):
        for query, numbers in (("since=", "1234"), ("since=&until=2025-03-30", "34"), ("since=2025-03-30", "123")):
            page = client.get(f"/reports?report={key}&{query}&gudang_kode=GD-A").text
            assert 'class="part"' in page
            (link,) = re.findall(r'href="([^"]*csv[^"]*)"', page)
            whole = client.get(html.unescape(link)).content.decode("utf-8-sig")
            assert [one for one in "1234" if re.search(rf"(BRG-|sebab ){one};", whole)] == list(numbers), query
        assert client.get(f"/reports/{key}.xlsx?since=").content.startswith(b"PK")


def test_other_reports_show_everything(browser: Be, years: Walker) -> None:
    client = browser("analyst")
    for key in ("variance", "documents", "warehouse", "month", "journal"):
        page = client.get(f"/reports?report={key}&since=").text
        assert 'class="part"' not in page and WHOLE["id"] not in page
    assert len(table(client.get("/reports?report=documents&since=").text)[0]) == len(POSTED)


def test_a_part_costs_one_statement_more(browser: Be, years: Walker) -> None:
    client = browser("analyst")
    counts = []
    for query in ("since=2026-01-01", "since="):
        with counted_statements() as sent:
            client.get(f"/reports?report=item&{query}")
        counts.append(sent.total())
    assert counts[1] == counts[0] + 1


def test_the_other_language_asks_the_same(browser: Be, years: Walker) -> None:
    """An empty date is everything, and without it the page would open with the last months."""
    page = browser("analyst").get("/reports?report=month&since=&lang=id").text
    (other,) = re.findall(r'<a lang="en" href="([^"]*)"', page)
    assert html.unescape(other) == "/reports?report=month&since=&lang=en"
