"""CSV, XLSX and JSON of a report: what went in comes out, codes as text, numbers exact, nothing ever a formula."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

from everest.intake.files import Reading, read_file
from everest.reports.csv_file import DELIMITERS, cell, write_csv
from everest.reports.files import new_file
from everest.reports.json_file import write_json
from everest.reports.shape import Column, Filters, Kind, Report, ReportDefinition, ReportRefused
from everest.reports.xlsx_file import write_xlsx
from everest.spreadsheets import decimal_of, exact_double, guarded, unguarded

D = Decimal
CODES = [
    "00123",
    "8991234567890123456",
    "NA",
    "1e5",
    "=1+1",
    "+62",
    "-5",
    "@SUM(A1)",
    "'=x",
    "'kutip",
    "TRUE",
    "é😀",
    "_x0041_",
    "_x0041_x0042_",
]
COLUMNS = (
    Column("kode", "Kode", "Code", Kind.CODE),
    Column("jumlah", "Jumlah", "Quantity", Kind.QUANTITY),
    Column("nilai", "Nilai", "Value", Kind.MONEY, is_summed=True),
    Column("hari", "Hari", "Day", Kind.DATE),
    Column("saat", "Saat", "At", Kind.INSTANT),
    Column("baris", "Baris", "Lines", Kind.INTEGER, is_summed=True),
)


def report(rows: Sequence[Sequence[Any]], columns: tuple[Column, ...] = COLUMNS) -> Report:
    definition = ReportDefinition("month", "A test.", columns, (), lambda source, filters: iter(rows))
    return Report(definition, Filters(), iter(rows))


def row(kode: str | None = "A", jumlah: str | None = None, nilai: str | None = None) -> list[Any]:
    return [kode, jumlah and D(jumlah), nilai and D(nilai), date(2026, 8, 31), datetime(2026, 8, 31, 17, 0, 5), 2]


def csv_of(rows: Sequence[Sequence[Any]], locale: Any = "id") -> tuple[bytes, list[list[str]]]:
    stream = io.BytesIO()
    write_csv(report(rows), stream, locale)
    text = stream.getvalue().decode("utf-8-sig")
    return stream.getvalue(), list(csv.reader(io.StringIO(text, newline=""), delimiter=";" if locale == "id" else ","))


def xlsx_of(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    stream = io.BytesIO()
    write_xlsx(report(rows), stream)
    sheet = openpyxl.load_workbook(stream)["Laporan"]
    return [list(cells) for cells in sheet.iter_rows()]


def test_csv_is_what_indonesian_excel_opens() -> None:
    raw, cells = csv_of([row("00123", "-12.5000", "1234567.89"), row(None, None, None)])

    assert raw.startswith(b"\xef\xbb\xbfKode;Jumlah;Nilai;Hari;Saat;Baris\r\n")
    assert cells[1] == ["00123", "-12,5000", "1234567,89", "2026-08-31", "2026-08-31 17:00:05", "2"]
    assert cells[2][:3] == ["", "", ""]
    assert cells[3] == ["JUMLAH", "", "1234567,89", "", "", "4"]


def test_csv_for_the_rest_of_the_world_has_commas_points_and_english_headings() -> None:
    _, cells = csv_of([row("A", "-12.5000", "1234567.89")], "en")

    assert cells[0][:2] == ["Code", "Quantity"]
    assert cells[1][:3] == ["A", "-12.5000", "1234567.89"]
    assert cells[2][0] == "TOTAL"


OF_A_KIND = {
    Kind.CODE: st.text("ab=-+@;,. \n0", max_size=4),
    Kind.MONEY: st.decimals(-(10**20), 10**20, places=2)
    | st.sampled_from([D("1.0"), D("1.00"), D("0E-7"), D("1E+3"), 1]),
    Kind.INSTANT: st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 3)).map(lambda at: at.replace(microsecond=0)),
    Kind.DATE: st.dates(date(2026, 1, 1), date(2026, 1, 3)),
    Kind.INTEGER: st.integers() | st.decimals(-(10**9), 10**9, places=0),
}


@given(st.lists(st.tuples(*(st.none() | values for values in OF_A_KIND.values())), max_size=12), st.sampled_from("ie"))
@settings(max_examples=60, deadline=None)
def test_rows_written_together_are_what_each_cell_is_by_itself(rows: list[tuple[Any, ...]], first: str) -> None:
    locale: Any = {"i": "id", "e": "en"}[first]
    columns = tuple(Column(kind.value, kind.value, kind.value, kind) for kind in OF_A_KIND)
    stream = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("everest.reports.csv_file.ROWS_AT_ONCE", 5)
        write_csv(report(rows, columns), stream, locale)
    lines = csv.reader(io.StringIO(stream.getvalue().decode("utf-8-sig"), newline=""), delimiter=DELIMITERS[locale])

    expected = [[cell(kind, value, locale) for kind, value in zip(OF_A_KIND, row, strict=True)] for row in rows]
    assert list(lines)[1:] == expected


def test_h45_codes_survive_in_csv_and_none_of_them_begins_a_formula() -> None:
    _, cells = csv_of([row(code) for code in CODES])

    written = [line[0] for line in cells[1:-1]]
    assert [unguarded(cell) for cell in written] == CODES
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in written)
    assert written[:4] == CODES[:4], "what is harmless is written as it is"


def test_h45_codes_survive_in_xlsx_as_text_and_none_of_them_is_a_formula() -> None:
    cells = xlsx_of([row(code) for code in CODES])

    assert [unescape(line[0].value) for line in cells[1:-1]] == CODES
    assert {line[0].data_type for line in cells[1:-1]} == {"s"}


def test_a_text_that_is_xml_is_the_text_that_it_is_and_one_too_long_is_cut_between_characters() -> None:
    texts = [
        "<r><t>x</t></r>",
        'a & <b> "c"',
        " di tepi ",
        "a\nb",
        "a\rb",
        "\x00\x0b",
        "\ufffe",
        "<is/>",
        "😀" * 20_000,
        "x" * 40_000,
    ]

    cells = xlsx_of([row(text) for text in texts])

    found = [unescape(line[0].value) for line in cells[1:-1]]
    assert found == [*texts[:-2], "😀" * 16_383, "x" * 32_767]


@given(
    st.lists(
        st.tuples(
            st.text(max_size=8),
            st.decimals(-(10**18), 10**18, places=4),
            st.datetimes(datetime(1890, 1, 1), datetime(2999, 1, 1)),
        )
    )
)
@settings(max_examples=40, deadline=None)
def test_rows_are_what_xlsxwriter_would_have_written(values: list[tuple[str, Decimal, datetime]]) -> None:
    whole = [(text, number, saat.replace(microsecond=0)) for text, number, saat in values]
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        usual = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        for place, (text, number, saat) in enumerate(whole):
            sheet.write_string(place, 0, text)
            double = exact_double(number)
            if double is None:
                sheet.write_string(place, 1, f"{number:f}")
            else:
                sheet.write_number(place, 1, double)
            if saat.date() < date(1900, 3, 1):
                sheet.write_string(place, 2, str(saat))
            else:
                sheet.write_datetime(place, 2, saat, usual)
    expected = [list(cells) for cells in openpyxl.load_workbook(stream).worksheets[0].iter_rows(values_only=True)]

    cells = xlsx_of([[text, number, None, None, saat, 1] for text, number, saat in whole])[1:-1]

    assert [[line[0].value, line[1].value, line[4].value] for line in cells] == [one for one in expected if values]


def test_numbers_dates_and_totals_of_a_workbook_are_real_ones() -> None:
    cells = xlsx_of([row("A", "-12.5000", "1234567.89"), row("B", "0.0001", "8.70")])

    kode, jumlah, nilai, hari, saat, baris = cells[1]
    assert (jumlah.value, jumlah.number_format) == (-12.5, "#,##0.00##")
    assert (nilai.value, nilai.number_format) == (1234567.89, "#,##0.00")
    assert (hari.value, hari.number_format) == (datetime(2026, 8, 31), "yyyy-mm-dd")
    assert saat.value == datetime(2026, 8, 31, 17, 0, 5)
    assert (baris.value, kode.number_format) == (2, "@")
    assert [cell.value for cell in cells[-1]] == ["JUMLAH", None, 1234576.59, None, None, 4]


def test_a_number_that_no_spreadsheet_holds_exactly_is_text_and_the_total_is_still_exact() -> None:
    cells = xlsx_of([row("A", None, "9007199254740993.12"), row("B", None, "0.01")])

    assert [line[2].value for line in cells[1:]] == ["9007199254740993.12", 0.01, "9007199254740993.13"]
    assert (cells[1][2].data_type, cells[1][2].font.italic) == ("s", True)


def test_a_long_number_of_a_row_keeps_every_digit() -> None:
    cells = xlsx_of([[*row()[:-1], 1234567890123456789]])

    assert cells[1][5].value == "1234567890123456789"


def test_days_that_excel_counts_wrongly_are_text() -> None:
    cells = xlsx_of([["A", None, None, date(1000, 1, 1), datetime(1899, 12, 31, 1), 1]])

    assert (cells[1][3].value, cells[1][4].value) == ("1000-01-01", "1899-12-31 01:00:00")


def test_json_keeps_every_digit() -> None:
    stream = io.BytesIO()
    write_json(report([row("00123", "1.0000", "9007199254740993.12")]), stream)

    found = json.loads(stream.getvalue())

    assert found["rows"][0] == {
        "kode": "00123",
        "jumlah": "1.0000",
        "nilai": "9007199254740993.12",
        "hari": "2026-08-31",
        "saat": "2026-08-31T17:00:05+07:00",
        "baris": 2,
    }
    assert (found["row_count"], found["totals"]) == (1, {"nilai": "9007199254740993.12", "baris": 2})


def test_an_empty_report_is_a_whole_file_with_zero_totals() -> None:
    assert csv_of([])[1][1] == ["JUMLAH", "", "0,00", "", "", "0"]
    assert xlsx_of([])[1][2].value == 0
    stream = io.BytesIO()
    write_json(report([]), stream)
    assert json.loads(stream.getvalue())["rows"] == []


def test_a_report_with_more_rows_than_a_sheet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everest.reports.xlsx_file.MAX_ROWS", 2)

    with pytest.raises(ReportRefused, match="do not fit into a sheet"):
        xlsx_of([row()] * 3)


@given(st.text())
def test_a_guarded_text_comes_back_as_it_was_and_begins_no_formula(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize("hidden", [" ", "\u00a0", "\u3000", "\x0b", "\x00", "\ufeff", "\u200b", "\u202e", " \u2066 "])
def test_a_formula_behind_what_nobody_sees_is_disarmed_as_well(hidden: str) -> None:
    text = f"{hidden}=1+1"

    assert guarded(text) == "'" + text
    assert unguarded(guarded(text)) == text


def opened(line: str, delimiter: str) -> list[str]:
    """The cells of a file as a spreadsheet sees them that thinks another sign parts them."""
    return [cell for row in csv.reader(io.StringIO(line, newline=""), delimiter=delimiter) for cell in row]


@given(
    st.text(alphabet="=+-@',;\t\r\n \u200bx\"", max_size=12),
    st.sampled_from(["id", "en"]),
    st.sampled_from(",;\t"),
)
@settings(max_examples=500)
def test_no_piece_of_a_text_is_a_formula_whichever_sign_a_spreadsheet_takes_for_the_separator(
    text: str, locale: Any, delimiter: str
) -> None:
    columns = tuple(Column(name, name, name, Kind.TEXT) for name in ("one", "two", "three"))
    stream = io.BytesIO()
    write_csv(report([["A", text, text]], columns), stream, locale)

    _, _, data = stream.getvalue().decode("utf-8-sig").partition("\r\n")
    for found in opened(data, delimiter):
        assert found.strip("\u200b \t\r\n")[:1] not in tuple("=+-@"), f"{text!r} became the cell {found!r}"
    assert unguarded(guarded(text)) == text


def test_a_formula_in_the_middle_of_a_text_is_disarmed_for_the_other_separator() -> None:
    raw, _ = csv_of([row("x;=SUM(1+1);y")], "en")

    assert opened(raw.decode("utf-8-sig").splitlines()[1], ";")[:2] == ["x", "'=SUM(1+1)"]
    for text in ("rusak, basah", "A-1", "a=b", "1,5", "x, y; z", "it's", "5'", "a'=b"):
        assert guarded(text) == text, "nothing a spreadsheet could take for a formula"


def test_codes_of_a_workbook_of_ours_come_back_as_they_were_apostrophes_and_all(tmp_path: Path) -> None:
    names = ("kode_barang", "qty_sistem", "qty_fisik", "harga_pokok", "alasan")
    kinds = (Kind.CODE, Kind.QUANTITY, Kind.QUANTITY, Kind.COST, Kind.TEXT)
    columns = tuple(Column(name, name, name, kind) for name, kind in zip(names, kinds, strict=True))
    codes = ["=A", "'=A", "''=A", "'-5", "-5", "a;'=b", "'kutip"]
    path = tmp_path / "laporan.xlsx"
    write_xlsx(report([[code, D(1), D(1), D(1), code] for code in codes], columns), path)

    header = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}
    for _ in range(2):
        lines = read_file(path, Reading(header)).submission.lines
        assert [(line.kode_barang, line.alasan) for line in lines] == [(code, code) for code in codes]
        openpyxl.load_workbook(path).save(path)  # opened and saved by another program


@given(st.decimals(min_value=D("-1e20"), max_value=D("1e20"), places=6))
@settings(max_examples=500)
def test_a_number_written_to_a_workbook_is_that_number_again(value: Decimal) -> None:
    double = exact_double(value)

    if double is None:
        assert len(str(value.normalize()).replace("-", "").replace(".", "")) > 15 or "E" in str(value.normalize())
    else:
        assert decimal_of(float(f"{double:.16G}")) == value


@given(st.lists(st.decimals(min_value=D("-1e12"), max_value=D("1e12"), places=2), max_size=20))
@settings(max_examples=30, deadline=None)
def test_the_total_of_a_workbook_is_the_sum_of_its_cells_to_the_cent(values: list[Decimal]) -> None:
    cells = xlsx_of([["A", None, value, None, None, None] for value in values])

    amounts = [D(str(line[2].value)) if line[2].value is not None else D(0) for line in cells[1:]]
    assert sum(amounts[:-1]) == amounts[-1] == sum(values)


# ----------------------------------------------------------------------------------------------------------- files


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "laporan.csv"

    with pytest.raises(ZeroDivisionError), new_file(target) as stream:
        stream.write(b"halves")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []

    with new_file(target) as stream:
        stream.write(b"whole")
    assert target.read_bytes() == b"whole" and list(tmp_path.iterdir()) == [target]


def test_a_file_that_is_there_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    target = tmp_path / "laporan.csv"
    target.write_text("old")

    with pytest.raises(ReportRefused, match="--force"), new_file(target):
        pass
    assert target.read_text() == "old"
    with new_file(target, overwrite=True) as stream:
        stream.write(b"new")
    assert target.read_text() == "new"


def test_a_file_that_appears_while_one_is_written_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "laporan.csv"

    with pytest.raises(ReportRefused), new_file(target) as stream:
        stream.write(b"mine")
        target.write_text("theirs")

    assert target.read_text() == "theirs" and list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReportRefused, match="cannot be written"), new_file(tmp_path / "none" / "laporan.csv"):
        pass
