"""Files and pasted rows on Kirim opname: read alike, or all that is wrong is told, in place or as a file."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import openpyxl
import pytest

from everest.pages.words import catalogue
from tests import builders
from tests.pages.conftest import Be
from tests.pages.forms import HEADER, SOUND, TITLES
from tests.pages.posted import csv_rows, xlsx_rows


@pytest.mark.usefixtures("warehouse")
def test_everything_wrong_is_told_in_place_and_nothing_is_stored(browser: Be, connection: Any) -> None:
    wrong = "kode_barang;qty_sistem;qty_fisik;harga_pokok\nA;10;;1500\nA;1;2;-5\n<script>x</script>;x;1;1\n"
    answer = browser("warehouse").submit("/submit", pasted=wrong, submit_token="one", **HEADER)
    assert answer.status_code == 422 and "bukan angka" in answer.text and "<script>x" not in answer.text
    sound_cells = wrong.rsplit("<script>", 1)[0]
    answer = browser("warehouse").submit("/submit", pasted=sound_cells, submit_token="one", **HEADER)
    assert answer.status_code == 422
    assert "qty_fisik" in answer.text and "harga_pokok" in answer.text and "kode_barang" in answer.text
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


@pytest.mark.usefixtures("warehouse")
def test_a_file_is_read_as_pasted_rows_are(browser: Be, connection: Any) -> None:
    files = {"file": ("hitung.csv", SOUND.encode(), "text/csv")}
    assert browser("warehouse").submit("/submit", files=files, submit_token="two", **HEADER).status_code == 303
    template = browser("warehouse").get("/submit/template.csv")
    again = {**HEADER, "nomer_nota": "SO-H2"}
    filled = template.content + b"00123;10;12;1500,00\r\nBRG-B;7;5;2500,50\r\n"
    files = {"file": ("opname.csv", filled, "text/csv")}
    assert browser("warehouse").submit("/submit", files=files, submit_token="three", **again).status_code == 303
    connection.commit()
    stored = builders.rows(connection, "SELECT kode_barang FROM so_details_staging ORDER BY id")
    assert [row["kode_barang"] for row in stored] == ["00123", "BRG-B", "00123", "BRG-B"]


@pytest.mark.usefixtures("warehouse")
def test_of_a_file_and_pasted_rows_neither_is_taken_for_both(browser: Be, connection: Any) -> None:
    files, one = {"file": ("hitung.csv", SOUND.encode(), "text/csv")}, {"submit_token": "one", **HEADER}
    answer = browser("warehouse").submit("/submit", files=files, pasted=f"{TITLES}\nA;10;12;1500;", **one)
    assert answer.status_code == 422 and catalogue()["submit.both"]["id"] in answer.text
    assert "A;10;12;1500;</textarea>" in answer.text and kept_headers(connection) == 0
    assert browser("warehouse").submit("/submit", files=files, pasted=" \r\n", **one).status_code == 303
    assert kept_headers(connection) == 1


def kept_headers(connection: Any) -> int:
    connection.commit()
    return len(builders.rows(connection, "SELECT 1 FROM so_headers_staging"))


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{TITLES}\nA;10;12;1500;L1 ", id="a blank at the end of the last lot"),
        pytest.param(f"{TITLES}\nA;10;12;1500;L1\u00a0", id="one that does not break, either"),
        pytest.param("kode_barang\tqty_sistem\tqty_fisik\tharga_pokok\nC\t3\t3\t", id="a last cell that is blank"),
        pytest.param(f"\n\n{TITLES}\nA;10;12;1500;\nB;10;x;1500;\n", id="blank lines before the titles"),
        pytest.param(f"{TITLES}\nA;10;12;1500;\n\n\n", id="blank lines at the end"),
    ],
)
def test_pasted_rows_get_the_answer_that_the_same_bytes_get_as_a_file(browser: Be, connection: Any, text: str) -> None:
    clerk = browser("warehouse")
    pasted = clerk.submit("/submit", pasted=text, submit_token="one", **HEADER)
    file = {"file": ("hitung.csv", text.encode(), "text/csv")}
    sent = clerk.submit("/submit", files=file, submit_token="two", **{**HEADER, "nomer_nota": "SO-H2"})

    def said(answer: Any) -> list[str]:
        return re.findall(r"<td[^>]*>(.*?)</td>", answer.text)

    assert (pasted.status_code, said(pasted)) == (sent.status_code, said(sent))
    assert pasted.status_code == (422 if "L1" in text or "x" in text else 303), pasted.text
    stored = builders.rows(connection, "SELECT DISTINCT kode_barang, lot, harga_pokok FROM so_details_staging")
    assert len(stored) == (0 if pasted.status_code == 422 else 1), "both are the same document, or none"


def workbook(rows: list[list[Any]], template: bytes) -> bytes:
    """The template as somebody fills it in."""
    book = openpyxl.load_workbook(io.BytesIO(template))
    sheet: Any = book.active
    for row in rows:
        sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@pytest.mark.usefixtures("warehouse")
def test_a_filled_in_workbook_becomes_a_draft(browser: Be, connection: Any) -> None:
    client = browser("warehouse")
    content = workbook(
        [["00123", 10, 12, 1500], ["BRG-B", 7, 5.5, 2500.5]], client.get("/submit/template.xlsx").content
    )
    files = {"file": ("Hitung.XLSX", content, "application/octet-stream")}
    assert client.submit("/submit", files=files, submit_token="two", **HEADER).status_code == 303
    connection.commit()
    stored = builders.rows(connection, "SELECT kode_barang, qty_fisik FROM so_details_staging ORDER BY baris")
    assert [(row["kode_barang"], str(row["qty_fisik"])) for row in stored] == [
        ("00123", "12.0000"),
        ("BRG-B", "5.5000"),
    ]


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[123, 10, 12, 1500], ["B", "=1+1", 5, 1]], ["sel A2: ", "sel B3: ", "rumus"]),
        ([["A", 10, 12, 1500], ["B", 1, 2, -5]], ["sel D3: "]),
    ],
    ids=["what stands in the cells", "what the rules of posting say"],
)
def test_problems_of_a_workbook_are_told_by_cell_and_nothing_is_stored(
    browser: Be, connection: Any, rows: list[list[Any]], told: list[str]
) -> None:
    client = browser("warehouse")
    files = {"file": ("a.xlsx", workbook(rows, client.get("/submit/template.xlsx").content), "x")}
    answer = client.submit("/submit", files=files, submit_token="two", **HEADER)
    assert answer.status_code == 422 and [one for one in told if one not in answer.text] == []
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize("language", ["id", "en"])
def test_problems_that_are_too_many_for_a_page_are_a_file_and_nothing_is_stored(
    browser: Be, connection: Any, language: str
) -> None:
    """20,000 rows with two of them each: all are in the file, in the order and in the words of the page."""
    wrong = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n" + "".join(f"BRG-{n};x;y;1500\n" for n in range(20_000))
    client = browser("warehouse")
    client.cookies.set("everest_language", language)
    page = client.submit("/submit", pasted=wrong, submit_token="two", **HEADER)
    assert page.status_code == 422 and page.text.count("<code>qty_") == 500
    assert ("39.500" in page.text) and 'formaction="/submit/problems.csv"' in page.text
    found: list[tuple[Any, ...]]
    for form, rows_of in (("csv", csv_rows), ("xlsx", xlsx_rows)):
        answer = client.submit(f"/submit/problems.{form}", pasted=wrong, submit_token="two", **HEADER)
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="problems-SO-H1.{form}"'
        content = answer.content
        if form == "csv" and language == "en":  # read as Excel with English settings does
            rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
            found = [tuple(row) for row in rows][1:]
        else:
            found = [tuple(row.values()) for row in rows_of(content)]
        assert len(found) == 40_000
        assert [str(one) for one in found[-1][:3]] == ["20000", "20001", "qty_fisik"]
        assert {str(one[2]) for one in found} == {"qty_sistem", "qty_fisik"}
        assert str(found[0][3]) in html.unescape(page.text)
    for table in ("so_headers_staging", "so_details_staging", "audit_log"):
        assert builders.rows(connection, f"SELECT 1 FROM {table}") == []


@pytest.mark.usefixtures("warehouse")
def test_a_file_of_problems_is_asked_for_with_what_has_none_or_cannot_be_read(browser: Be, connection: Any) -> None:
    client = browser("warehouse")
    answer = client.submit("/submit/problems.csv", pasted=SOUND, submit_token="one", **HEADER)
    assert answer.status_code == 200 and csv_rows(answer.content) == []
    files = {"file": ("a.csv", b"PK\x03\x04", "x")}
    answer = client.submit("/submit/problems.csv", files=files, submit_token="one", **HEADER)
    assert answer.status_code in (200, 422) and "Traceback" not in answer.text
    assert client.submit("/submit/problems.exe", pasted=SOUND, **HEADER).status_code == 404
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xlsx", b"kode_barang\nA\n"),
        ("a.xlsx", b"PK\x03\x04broken"),
        ("a.xls", b"\xd0\xcf\x11\xe0"),
        ("a.csv", b"PK\x03\x04"),
    ],
)
def test_a_file_that_is_no_workbook_is_refused_with_a_sentence(
    browser: Be, connection: Any, name: str, content: bytes
) -> None:
    answer = browser("warehouse").submit("/submit", files={"file": (name, content, "x")}, submit_token="t", **HEADER)
    assert answer.status_code == 422 and ("simpan" in answer.text or ".xlsx" in answer.text)
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []
