"""What a document's files hold: its own lines, journal and stock card, to the cent, and nothing of its neighbours."""

from __future__ import annotations

import io
from decimal import Decimal as D
from typing import Any, Literal

import openpyxl
import pytest

from everest.reports import Filters, Report
from everest.reports.csv_file import write_csv
from everest.reports.document import OF_A_DOCUMENT
from everest.reports.shape import Kind
from everest.reports.xlsx_file import write_xlsx
from everest.settings import MysqlUrl
from everest.spreadsheets import guarded
from tests import builders
from tests.builders import Line
from tests.pages.conftest import Be, Browser
from tests.pages.posted import asked_back, csv_rows, taken_back, walked, xlsx_rows

OTHER = (Line("BRG-X", "1", "4", "10.10"), Line("BRG-Y", "9", "1", "0.049"))
AMOUNTS = ("Nilai lebih", "Nilai kurang", "Nilai bersih")


def lines_of(browser: Browser, shadow_id: int) -> list[tuple[str, ...]]:
    """(item, variance, surplus, shortage) of the CSV, its totals last; the workbook has to say the same."""
    names = ("Kode barang", "Selisih", "Nilai lebih", "Nilai kurang")
    answer = browser.get(f"/documents/{shadow_id}/lines.csv")
    assert answer.status_code == 200, answer.text
    found = [tuple(row[name] for name in names) for row in csv_rows(answer.content)]
    sheet = xlsx_rows(browser.get(f"/documents/{shadow_id}/lines.xlsx").content)
    for text, row in zip(found, sheet, strict=True):
        numbers = [None if one == "" else D(one.replace(",", ".")) for one in text[1:]]
        assert [None if row[name] is None else D(str(row[name])) for name in names[1:]] == numbers
        assert (row[names[0]] or "") == text[0]
    return found


def test_the_file_of_a_posted_document_has_its_lines_and_their_totals(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection, nomer_nota="SO-1")
    assert lines_of(browser("analyst"), document.shadow_id) == [
        ("BRG-A", "2,0000", "3000,00", "0,00"),
        ("BRG-B", "-2,0000", "0,00", "5001,00"),
        ("BRG-C", "0,0000", "0,00", "0,00"),
        ("", "", "3000,00", "5001,00"),
    ]
    disposition = browser("analyst").get(f"/documents/{document.shadow_id}/lines.csv").headers["content-disposition"]
    assert disposition == 'attachment; filename="lines-SO-1.csv"'


def test_a_reversed_document_and_its_reversal_have_each_their_own_file(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection, nomer_nota="SO-1")
    taken = taken_back(database, "SO-1")
    client = browser("finance")
    assert [row[0] for row in lines_of(client, document.shadow_id)] == ["BRG-A", "BRG-B", "BRG-C", ""]
    assert lines_of(client, document.shadow_id)[-1] == ("", "", "3000,00", "5001,00")
    assert lines_of(client, taken.shadow_id) == [
        ("BRG-A", "-2,0000", "0,00", "3000,00"),
        ("BRG-B", "2,0000", "5001,00", "0,00"),
        ("", "", "5001,00", "3000,00"),
    ]
    page = client.get(f"/documents/{taken.shadow_id}").text
    assert f"/documents/{taken.shadow_id}/lines.csv" in page and f"/documents/{taken.shadow_id}/lines.xlsx" in page


def test_a_document_refused_because_its_nota_is_posted_shows_its_own_lines_and_not_the_posted_ones(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    """409: the clerk who sent it may see what they counted, and not what somebody else did."""
    posted = walked(database, connection, *OTHER, nomer_nota="SO-1", dibuat_oleh="other-clerk")
    refused = walked(database, connection, ends="FAILED", nomer_nota="SO-1", dibuat_oleh="warehouse")
    assert builders.shadow(connection, refused.shadow_id)["error_code"] == 409
    clerk = browser("warehouse")
    assert lines_of(clerk, refused.shadow_id) == [
        ("BRG-A", "2,0000", "3000,00", "0,00"),
        ("BRG-B", "-2,0000", "0,00", "5001,00"),
        ("BRG-C", "0,0000", "0,00", "0,00"),
        ("", "", "3000,00", "5001,00"),
    ]
    kinds = {row["Jenis"] for row in csv_rows(clerk.get(f"/documents/{refused.shadow_id}/lines.csv").content)}
    assert kinds == {"BELUM DIPOSTING (FAILED)", ""}
    assert clerk.get(f"/documents/{posted.shadow_id}/lines.csv").status_code == 404
    assert lines_of(browser("other-clerk"), posted.shadow_id)[-1] == ("", "", "30,30", "0,39")


def test_two_documents_of_one_nota_that_are_not_posted_have_each_their_own_lines(browser: Be, connection: Any) -> None:
    first = builders.document(connection, nomer_nota="SO-1")
    second = builders.document(connection, OTHER, nomer_nota="SO-1")
    client = browser("finance")
    assert [row[0] for row in lines_of(client, first.shadow_id)] == ["BRG-A", "BRG-B", "BRG-C", ""]
    assert lines_of(client, second.shadow_id)[-1] == ("", "", "30,30", "0,39")


@pytest.mark.parametrize("part", ["journal", "card"])
def test_the_books_of_a_document_are_files_of_their_own(
    browser: Be, connection: Any, database: MysqlUrl, part: str
) -> None:
    walked(database, connection, *OTHER, nomer_nota="SO-2")
    document = walked(database, connection, nomer_nota="SO-1")
    taken = taken_back(database, "SO-1")
    client = browser("analyst")
    for one, sides in ((document, ("3000,00", "5001,00")), (taken, ("5001,00", "3000,00"))):
        rows = csv_rows(client.get(f"/documents/{one.shadow_id}/{part}.csv").content)
        assert {row["Nomor nota"] for row in rows[:-1]} == {one.nomer_nota}
        assert client.get(f"/documents/{one.shadow_id}/{part}.xlsx").content.startswith(b"PK")
        if part == "journal":
            assert (rows[-1]["Debet"], rows[-1]["Kredit"]) == ("8001,00", "8001,00")
            stock = [row for row in rows if row["Akun"] == builders.PERSEDIAAN]
            assert tuple(max(row[side] for row in stock) for side in ("Debet", "Kredit")) == sides
        else:
            assert [row["Kode barang"] for row in rows[:-1]] == ["BRG-A", "BRG-B"]
            assert rows[-1]["Nilai"] == {"3000,00": "-2001,00", "5001,00": "2001,00"}[sides[0]]


def test_there_is_no_file_where_there_is_nothing_to_put_into_it(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    """A document that is not posted has no books; a reversal on its way has no lines yet."""
    waiting = builders.document(connection)
    walked(database, connection, nomer_nota="SO-1")
    asked = asked_back(database, "SO-1")
    client = browser("finance")
    for shadow_id, parts in ((waiting.shadow_id, ("journal", "card")), (asked.shadow_id, ("lines", "journal", "card"))):
        assert [client.get(f"/documents/{shadow_id}/{part}.csv").status_code for part in parts] == [404] * len(parts)
    assert client.get(f"/documents/{waiting.shadow_id}/nothing.csv").status_code == 404
    assert f"/documents/{asked.shadow_id}/lines.csv" not in client.get(f"/documents/{asked.shadow_id}").text


HOSTILE = '=HYPERLINK("http://evil";"x")</td><script>alert(1)</script>\u202egnp.exe 😀;@SUM(1)\t'


def test_lines_full_of_hostile_text_are_text_in_both_files(browser: Be, connection: Any) -> None:
    """As much of it as each column takes, unchanged in the workbook and disarmed in the CSV."""
    brim = {"kode_barang": 64, "lot": 64, "satuan": 20, "alasan": 255}
    texts = {name: (HOSTILE + "x" * most)[:most] for name, most in brim.items()}
    document = builders.document(connection, [Line(qty_sistem="1", qty_fisik="2", harga_pokok="3", **texts)])
    client = browser("analyst")
    (line, _) = csv_rows(client.get(f"/documents/{document.shadow_id}/lines.csv").content)
    (row, _) = xlsx_rows(client.get(f"/documents/{document.shadow_id}/lines.xlsx").content)
    for heading, name in (("Kode barang", "kode_barang"), ("Lot", "lot"), ("Satuan", "satuan"), ("Alasan", "alasan")):
        assert row[heading] == texts[name]
        assert line[heading] == guarded(texts[name]) and line[heading].startswith("'=")


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_ten_thousand_characters_in_a_line_are_in_the_file_and_no_formula(form: Literal["csv", "xlsx"]) -> None:
    """More than a column of ours holds: the writers of the files count on no table."""
    definition = OF_A_DOCUMENT["document-lines"]
    text = (HOSTILE + "x" * 10_000)[:10_000]
    texts = {Kind.TEXT, Kind.CODE}
    row = tuple(text if one.kind in texts else None for one in definition.columns)
    file = io.BytesIO()
    {"csv": write_csv, "xlsx": write_xlsx}[form](Report(definition, Filters(), iter([row])), file, "id")
    found = (csv_rows if form == "csv" else xlsx_rows)(file.getvalue())[0]
    cells = [found[one.headed("id")] for one in definition.columns if one.kind in texts]
    assert cells == [guarded(text) if form == "csv" else text] * len(cells) and len(cells) > 4
    if form == "xlsx":
        sheet = openpyxl.load_workbook(file).worksheets[0]
        assert {cell.data_type for cell in sheet[2]} <= {"s", "inlineStr", "n"}, "no f"
