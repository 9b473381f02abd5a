"""The lines of a document: sorted by each column in both directions, searched, paged to the end; their problems."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.pages.conftest import Be
from tests.pages.posted import asked_back, csv_rows, taken_back, walked, xlsx_rows
from tests.pages.standing import failed, run

# No two equal in any column but the sides of the amount: line 1 +30, 2 -20, 3 none, 4 +2.
LINES = (
    Line("C", "10", "13", "10", lot="L2", gudang_kode="GD-B", satuan="PCS", alasan="rusak"),
    Line("A", "50", "30", "1", lot="L3", gudang_kode="GD-A", satuan="DUS", alasan="hilang"),
    Line("D", "7", "7", "9", lot=None, gudang_kode="GD-D", satuan="BOX", alasan=None),
    Line("B", "1", "2", "2", lot="L1", gudang_kode="GD-C", satuan="KG", alasan="salah label"),
)
ASCENDING = {
    "line": [1, 2, 3, 4],
    "item": [2, 4, 1, 3],
    "lot": [4, 1, 2, 3],  # without one: last
    "warehouse": [2, 1, 4, 3],
    "unit": [3, 2, 4, 1],
    "book": [4, 3, 1, 2],
    "counted": [4, 3, 1, 2],
    "difference": [2, 3, 4, 1],
    "cost": [2, 4, 3, 1],
    "surplus": [2, 3, 4, 1],
    "shortage": [1, 3, 4, 2],
    "reason": [2, 1, 4, 3],
}
DESCENDING = {name: list(reversed(order)) for name, order in ASCENDING.items()} | {
    "lot": [2, 1, 4, 3],
    "reason": [4, 1, 2, 3],
    "surplus": [1, 4, 2, 3],  # equal ones stay in the order of the document
    "shortage": [2, 1, 3, 4],
}
ORDERS = [(name, "asc", order) for name, order in ASCENDING.items()] + [
    (name, "desc", order) for name, order in DESCENDING.items()
]


def numbers(page: str) -> list[int]:
    """The lines that are shown, from the top."""
    return [int(number) for number in re.findall(r'<tr id="line-(\d+)"', page)]


@pytest.mark.parametrize("kind", ["posted", "sent"])
def test_lines_are_sorted_by_every_column_both_ways(
    browser: Be, connection: Any, database: MysqlUrl, kind: str
) -> None:
    is_posted = kind == "posted"
    document = walked(database, connection, *LINES) if is_posted else builders.document(connection, LINES)
    client = browser("analyst")
    computed = ("difference", "surplus", "shortage")
    orders = [one for one in ORDERS if kind == "posted" or one[0] not in computed]
    for name, order, wanted in orders:
        page = client.get(f"/documents/{document.shadow_id}?tab=lines&sort={name}&order={order}").text
        assert numbers(page) == wanted, (name, order)
        (sorted_by,) = re.findall(r'<th scope="col"[^>]*aria-sort="(\w+)"><a href="([^"]+)"', page)
        assert sorted_by[0] == {"asc": "ascending", "desc": "descending"}[order]
        assert f"sort={name}" in sorted_by[1] and f"order={'desc' if order == 'asc' else 'asc'}" in sorted_by[1]
    page = client.get(f"/documents/{document.shadow_id}?tab=lines").text
    assert "DUS" in page and "salah label" in page
    assert len(re.findall(r"[?&;]sort=(\w+)", page)) == len(ASCENDING) - (0 if kind == "posted" else len(computed))


def test_amounts_begin_with_the_largest_and_texts_with_the_first(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection, *LINES)
    for name in ("surplus", "shortage", "difference", "cost"):
        page = browser("analyst").get(f"/documents/{document.shadow_id}?tab=lines&sort={name}").text
        assert numbers(page) == DESCENDING[name], name
    assert numbers(browser("analyst").get(f"/documents/{document.shadow_id}?tab=lines&sort=item").text) == [2, 4, 1, 3]


def test_the_last_page_of_lines_has_what_is_left(browser: Be, connection: Any, database: MysqlUrl) -> None:
    document = walked(database, connection, *(Line(f"I{n:04}", "1", "2", str(n)) for n in range(1, 121)))
    client, address = browser("analyst"), f"/documents/{document.shadow_id}?tab=lines"
    first = client.get(address).text
    assert numbers(first) == list(range(1, 51)) and "1–50 dari 120" in first
    assert re.search(r'href="([^"]*skip=100[^"]*)">Akhir', first)
    last = client.get(f"{address}&skip=100").text
    assert numbers(last) == list(range(101, 121)) and "101–120 dari 120" in last and 'rel="next"' not in last
    largest = client.get(f"{address}&sort=surplus&skip=100").text
    assert numbers(largest) == list(range(20, 0, -1))
    assert numbers(client.get(f"{address}&line=73").text) == list(range(51, 101))
    assert numbers(client.get(f"{address}&search=I010").text) == list(range(100, 110))


def test_a_line_is_told_what_is_wrong_with_it_and_a_problem_leads_to_its_line(browser: Be, connection: Any) -> None:
    document = failed(connection, lines=[Line(f"I{n:04}", "1", "2", "5") for n in range(1, 121)])
    problems = [{"baris": n, "kolom": "harga_pokok", "pesan": f"harga {n} salah"} for n in (117, 3)]
    problems.append({"baris": None, "kolom": "tanggal_opname", "pesan": "tanggal salah"})
    run(
        connection,
        "UPDATE rabbit_publish_shadow SET response=%s WHERE id=%s",
        json.dumps({"message": "3 masalah", "errors": problems}),
        document.shadow_id,
    )
    client, address = browser("warehouse"), f"/documents/{document.shadow_id}"
    assert client.get(address).status_code == 404
    client = browser("finance")
    summary = client.get(address).text
    assert f'href="{address}?tab=lines&amp;line=117#line-117"' in summary
    page = client.get(f"{address}?tab=lines&line=117").text
    assert numbers(page) == list(range(101, 121)) and "harga 117 salah" in page and "harga 3 salah" not in page
    assert numbers(client.get(f"{address}?tab=lines&flawed=1").text) == [3, 117]
    assert numbers(client.get(f"{address}?tab=lines&sort=problem").text)[:3] == [3, 117, 1]
    assert numbers(client.get(f"{address}?tab=lines&sort=problem&order=asc&skip=100").text)[-2:] == [3, 117]


def test_every_problem_is_in_the_file_however_many_are_shown(browser: Be, connection: Any) -> None:
    document = failed(connection)
    problems = [{"baris": n, "kolom": "qty_fisik", "pesan": f"=masalah {n}"} for n in range(1, 1_501)]
    run(
        connection,
        "UPDATE rabbit_publish_shadow SET response=%s WHERE id=%s",
        json.dumps({"message": "banyak", "errors": problems}),
        document.shadow_id,
    )
    client, address = browser("finance"), f"/documents/{document.shadow_id}"
    page = client.get(address).text
    assert "Masalah (1.500)" in page and "dan 1.300 masalah lagi" in page and f"{address}/problems.csv" in page
    rows = csv_rows(client.get(f"{address}/problems.csv").content)
    assert [(row["Baris"], row["Kolom"]) for row in rows] == [(str(n), "qty_fisik") for n in range(1, 1_501)]
    assert rows[0]["Masalah"].endswith("=masalah 1") and not rows[0]["Masalah"].startswith("=")
    sheet = xlsx_rows(client.get(f"{address}/problems.xlsx").content)
    assert [row["Baris"] for row in sheet] == list(range(1, 1_501)) and sheet[0]["Masalah"] == "=masalah 1"


def test_a_document_that_was_corrected_shows_what_it_says_now_and_not_what_was_computed_before(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    """Its third step refused it after the first had computed; the lines that count are the corrected ones."""
    walked(database, connection, nomer_nota="SO-1")
    document = walked(database, connection, *LINES, ends="FAILED", nomer_nota="SO-1")
    run(connection, "UPDATE so_headers_staging SET tanggal_posting = NULL WHERE id = %s", document.header_id)
    computed = builders.rows(
        connection, "SELECT COUNT(*) AS n FROM transaksi_values WHERE transaksi_id = %s", document.transaksi_id
    )[0]["n"]
    if not computed:  # refused before anything was computed: as an attempt that came further left it
        for n, line in enumerate(LINES, start=1):
            builders.insert(
                connection, "transaksi_values", transaksi_id=document.transaksi_id, baris=n,
                kode_barang=line.kode_barang, lot=line.lot or "", gudang_kode=line.gudang_kode,
                qty_sistem=line.qty_sistem, qty_fisik=line.qty_fisik, harga_pokok=line.harga_pokok,
                selisih_qty=0, nilai_debet=7, nilai_kredit=0,
            )  # fmt: skip
    client, address = browser("finance"), f"/documents/{document.shadow_id}"
    assert "Selisih belum dihitung" not in client.get(f"{address}?tab=lines").text
    builders.write_lines(connection, document.header_id, (*LINES[:3], Line("E", "5", "6", "7")))
    page = client.get(f"{address}?tab=lines").text
    assert "Selisih belum dihitung" in page and ">E</th>" in page and ">B</th>" not in page
    assert 'class="cards figures"' not in client.get(address).text


def test_the_lines_of_a_reversal_have_the_units_and_reasons_of_the_count(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    walked(database, connection, *LINES, nomer_nota="SO-1")
    asked = asked_back(database, "SO-1")
    page = browser("finance").get(f"/documents/{asked.shadow_id}?tab=lines").text
    assert numbers(page) == [] and "belum diposting" in page and ">SO-1</a>" in page


def test_the_lines_of_a_posted_reversal_are_the_mirror(browser: Be, connection: Any, database: MysqlUrl) -> None:
    walked(database, connection, *LINES, nomer_nota="SO-1")
    taken = taken_back(database, "SO-1")
    page = browser("finance").get(f"/documents/{taken.shadow_id}?tab=lines&sort=surplus").text
    assert numbers(page) == [2, 1, 4] and "DUS" in page and "hilang" in page


def test_the_history_goes_on_behind_its_first_page(browser: Be, connection: Any) -> None:
    document = failed(connection)
    for n in range(1, 231):
        builders.insert(
            connection, "audit_log", actor="finance", action="rerun", transaksi_id=document.transaksi_id,
            reason=f"alasan {n:03}",
        )  # fmt: skip
    client, address = browser("analyst"), f"/documents/{document.shadow_id}?tab=history"
    found: list[str] = []
    for skip in (0, 100, 200):
        page = client.get(f"{address}&skip={skip}").text
        found += re.findall(r"alasan (\d{3})", page)
        assert ('rel="next"' in page) is (skip < 200)
    assert found == [f"{n:03}" for n in range(230, 0, -1)]
    rows = csv_rows(client.get(f"/documents/{document.shadow_id}/history.csv").content)
    assert [row["Alasan"] for row in rows] == [f"alasan {n:03}" for n in range(230, 0, -1)]
    assert (rows[0]["Siapa"], rows[0]["Apa"]) == ("finance", "menjalankan lagi")
    sheet = xlsx_rows(client.get(f"/documents/{document.shadow_id}/history.xlsx?lang=en").content)
    assert len(sheet) == 230
