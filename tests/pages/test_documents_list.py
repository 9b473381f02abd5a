"""The list of documents in numbers: what the cards say is what the list shows, whatever is filtered; so is its file."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pytest

from everest.pages import lists
from everest.pages.words import catalogue
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.pages.conftest import Be, Browser
from tests.pages.posted import asked_back, csv_rows, taken_back, walked, xlsx_rows
from tests.pages.standing import failed, run


def cards(page: str) -> dict[str, int]:
    """The number on each card, by the words of its badge."""
    found = re.findall(r'<span class="badge[^"]*">([^<]+)</span>\s*<strong>([\d.]+)</strong>', page)
    return {name: int(number.replace(".", "")) for name, number in found}


def listed(page: str) -> list[int]:
    """The jobs in the rows, from the top."""
    rows = page[page.index('id="rows"') :]
    return [int(number) for number in re.findall(r'<th scope="row"><a href="/documents/(\d+)"', rows)]


@pytest.fixture
def many(connection: Any, database: MysqlUrl) -> dict[str, int]:
    """A document in each situation, by its name: the job."""
    long_ago = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=5)
    posted = walked(database, connection, nomer_nota="SO-POSTED", dibuat_oleh="warehouse")
    reversed_one = walked(database, connection, nomer_nota="SO-BACK", gudang_kode="GD-B")
    taken = taken_back(database, "SO-BACK")
    asked = asked_back(database, "SO-POSTED")
    broken = failed(connection, lines=[Line("A", "1", "5", "1000"), Line("B", "3", None, "5")], nomer_nota="SO-WRONG")
    queued = builders.document(connection, nomer_nota="SO-QUEUED", gudang_kode="GD-B", dibuat_oleh="Warehouse ")
    run(connection, "UPDATE rabbit_publish_shadow SET created_at=%s WHERE id=%s", long_ago, queued.shadow_id)
    # A second sender announced the posted one again: the same run, another job.
    second = builders.shadow_row(connection, posted.transaksi_id, "SO-POSTED", worker_status="COMPLETED")
    run(
        connection,
        "UPDATE rabbit_publish_shadow s JOIN rabbit_publish_shadow c ON c.id = %s SET s.workflow_id = c.workflow_id"
        " WHERE s.id = %s",
        posted.shadow_id, second,
    )  # fmt: skip
    return {
        "posted": posted.shadow_id,
        "reversed": reversed_one.shadow_id,
        "taken": taken.shadow_id,
        "asked": asked.shadow_id,
        "broken": broken.shadow_id,
        "queued": queued.shadow_id,
        "second": second,
    }


FILTERS = (
    "",
    "nota=SO-",
    "nota=SO-BACK",
    "gudang=GD-B",
    "since=2020-01-01",
    "min=1",
    "min=4.000&max=4.000",
    "max=8.000",
)


@pytest.mark.parametrize(
    "path",
    ["/documents?gudang=G%25%26", "/reports?report=variance&since=&gudang_kode=G%25%26", "/workflows?workflow=G%25%26"],
)
def test_a_field_shows_what_an_address_asks_for_also_where_its_list_has_no_such_value(browser: Be, path: str) -> None:
    page = browser("analyst").get(path).text
    assert '<option value="G%&amp;" selected>G%&amp;</option>' in page and 'class="empty"' in page


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("since=2026-09-01&until=2026-08-31", "report.empty_range"),
        ("since=2026-08-31&until=2026-08-31", None),
        ("min=1.000.000&max=999.999,99", "documents.empty_amounts"),
        ("min=1&max=1", None),
        ("max=0", None),
    ],
)
def test_a_range_that_ends_before_it_begins_is_told(browser: Be, query: str, told: str | None) -> None:
    page = browser("analyst").get(f"/documents?{query}").text
    for key in ("report.empty_range", "documents.empty_amounts"):
        assert (catalogue()[key]["id"] in page) is (key == told)


@pytest.mark.parametrize("who", ["analyst", "warehouse"])
def test_a_card_says_how_many_the_list_shows_when_it_is_chosen(browser: Be, many: dict[str, int], who: str) -> None:
    for query in FILTERS:
        the_cards_agree(browser(who), many, query)


def the_cards_agree(client: Browser, many: dict[str, int], query: str) -> None:
    page = client.get(f"/documents?{query}").text
    found = cards(page)
    assert sum(found.get(name, 0) for name in ("Antre", "Diproses", "Menunggu", "Gagal", "Selesai")) == len(
        listed(page)
    )
    assert many["second"] not in listed(page)
    for name, status in (("Antre", "PENDING"), ("Gagal", "FAILED"), ("Selesai", "COMPLETED")):
        chosen = client.get(f"/documents?{query}&status={status}").text
        assert len(listed(chosen)) == found[name], name
        assert cards(chosen) == found, "choosing one leaves the numbers of the others"
    if "Macet" in found:
        assert len(listed(client.get(f"/documents?{query}&stuck=1").text)) == found["Macet"]


def test_the_numbers_are_those_of_the_documents(browser: Be, many: dict[str, int]) -> None:
    page = browser("finance").get("/documents").text
    assert cards(page) == {
        "Antre": 2,
        "Diproses": 0,
        "Menunggu": 0,
        "Gagal": 1,
        "Selesai": 3,
        "Dibatalkan": 0,
        "Draf": 0,
        "Macet": 1,
    }
    assert listed(page) == sorted((id for name, id in many.items() if name != "second"), reverse=True)
    assert cards(browser("finance").get("/dead-letters").text) == {}
    assert ">1</strong>" in browser("finance").get("/dead-letters").text


def test_a_card_has_the_age_of_the_oldest_that_it_counts(browser: Be, many: dict[str, int]) -> None:
    """In the queue since it was announced, as long as nobody has taken it; with a filter and without."""
    for who, query in (("finance", ""), ("finance", "nota=SO-QUEUED"), ("warehouse", "")):
        page = browser(who).get(f"/documents?{query}").text
        ages = re.findall(r'<span class="badge pending">Antre</span>.*?<small>(.*?)</small>', page, re.DOTALL)
        assert ages[0] == "terlama 5 jam 0 mnt", (who, query)


def test_a_card_keeps_the_other_filters(browser: Be, many: dict[str, int]) -> None:
    page = browser("finance").get("/documents?gudang=GD-B&min=1&status=FAILED&before=999999").text
    links = {link.replace("&amp;", "&") for link in re.findall(r'<li><a[^>]*href="([^"]+)"', page)}
    assert "/documents?gudang=GD-B&min=1&status=COMPLETED" in links
    assert "/documents?gudang=GD-B&min=1&stuck=1" in links


def test_a_failed_document_counted_twice_as_a_letter_is_one_letter(browser: Be, connection: Any) -> None:
    document = failed(connection)
    run_id = builders.insert(
        connection, "workflow_runs", workflow="opname_posting", version="1", definition_hash="x", payload="{}",
        state="{}", status="failed", n=1, dag_id="opname_posting", dag_run_id="r1",
        carrier_shadow_id=document.shadow_id, created_at=datetime.now(UTC), updated_at=datetime.now(UTC),
    )  # fmt: skip
    second = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota, worker_status="FAILED")
    run(
        connection,
        "UPDATE rabbit_publish_shadow SET workflow_id=%s WHERE id IN (%s, %s)",
        run_id,
        document.shadow_id,
        second,
    )
    client = browser("finance")
    page = client.get("/dead-letters").text
    assert "<strong>1</strong>" in page and f'value="{second}"' not in page and f'value="{document.shadow_id}"' in page
    assert (
        cards(client.get("/documents").text)["Gagal"] == len(listed(client.get("/documents?status=FAILED").text)) == 1
    )
    rows = csv_rows(client.get("/dead-letters.csv").content)
    assert [(row["Nomor pekerjaan"], row["Kode"]) for row in rows] == [(str(document.shadow_id), "422")]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("min=4.000&max=4.000", ["broken"]),
        ("min=4000,01", ["queued", "asked", "taken", "reversed", "posted"]),
        ("min=8.001&max=8001", ["queued", "asked", "taken", "reversed", "posted"]),
        ("min=Rp 8,001.01", []),
        ("max=8.000,99&status=FAILED", ["broken"]),
    ],
)
def test_the_amount_finds_what_is_not_posted_as_well(
    browser: Be, many: dict[str, int], query: str, found: list[str]
) -> None:
    """What the lines would post as they stand; a reversal on its way is worth what it reverses."""
    assert listed(browser("finance").get(f"/documents?{query}").text) == [many[name] for name in found]


def test_an_amount_that_cannot_be_read_is_named_and_can_be_cleared(browser: Be, many: dict[str, int]) -> None:
    for name, text in (("min", "banyak"), ("max", "1.000.5"), ("min", "-5"), ("min", "1,2,3")):
        page = browser("finance").get(f"/documents?{name}={text}").text
        assert f"&#34;{text}&#34; tidak terbaca" in page and "Hapus saringan" in page, text
        assert len(listed(page)) == 6
        assert "tidak terbaca" not in browser("finance").get(f"/documents?{name}=").text


def test_the_list_is_a_file_with_the_same_filters(
    browser: Be, many: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser("finance")
    page = client.get("/documents?gudang=GD-B&min=1").text
    assert "/documents.csv?gudang=GD-B&amp;min=1" in page
    rows = csv_rows(client.get("/documents.csv?gudang=GD-B&min=1").content)
    assert [(row["Nota"], row["Status"], row["Nilai selisih"]) for row in rows] == [
        ("SO-QUEUED", "PENDING", "8001,00"),
        (rows[1]["Nota"], "COMPLETED", "8001,00"),
        ("SO-BACK", "COMPLETED", "8001,00"),
        ("JUMLAH", "", "24003,00"),
    ]
    sheet = xlsx_rows(client.get("/documents.xlsx").content)
    assert [row["Nomor pekerjaan"] for row in sheet[:-1]] == listed(client.get("/documents").text)
    assert D(str(sheet[-1]["Nilai selisih"])) == 5 * D("8001.00") + D("4000.00")
    own = csv_rows(browser("warehouse").get("/documents.csv").content)
    assert [row["Nota"] for row in own] == ["SO-QUEUED", "SO-POSTED", "JUMLAH"]
    monkeypatch.setattr(lists, "MAX_ROWS", 5)
    assert client.get("/documents.csv").status_code == 422
    assert client.get("/documents.csv?gudang=GD-B").status_code == 200


def test_whoever_is_written_with_other_letters_opens_what_their_list_shows(
    browser: Be, connection: Any, many: dict[str, int]
) -> None:
    """The existing application wrote `Warehouse `, with whatever blanks; an accent makes another person."""
    accent = builders.document(connection, dibuat_oleh="wárehouse")
    padded = builders.document(connection, dibuat_oleh=f"{'WAREHOUSE':100}")
    clerk = browser("warehouse")
    shown = listed(clerk.get("/documents").text)
    assert shown == [padded.shadow_id, many["queued"], many["posted"]]
    assert [clerk.get(f"/documents/{id}").status_code for id in shown] == [200, 200, 200]
    assert clerk.get(f"/documents/{accent.shadow_id}").status_code == 404
