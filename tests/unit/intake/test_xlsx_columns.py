"""A plain sheet taken by columns is the sheet that the reading cell by cell finds, and any other is left to that."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pytest
import xlsxwriter
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everest.intake import xlsx_columns, xlsx_file
from everest.intake.cells import FileProblem
from everest.intake.csv_file import COLUMN_NAMES
from everest.intake.header import HeaderReader
from everest.intake.xlsx_file import XlsxReader
from everest.opname.amounts import DecimalLocale
from everest.spreadsheets import DIGITS_OF_A_DOUBLE, SIGNIFICANT_DIGITS, significant_digits, typed_number

TITLES = ["kode_barang", "lot", "gudang_kode", "qty_sistem", "qty_fisik", "harga_pokok", "alasan", "nomer_nota"]
NUMBERS = ["0", "-0", "7", "-3", "13.75", "13.699999999999999", "0.10000000000000001", "1E-3", "1e2", ".5", "5.", "007"]
NUMBERS += [
    "9007199254740993",
    "0.12345678901234567",
    "1e999",
    "nan",
    "1_0",
    "1,234",
    "99999999999999",
    "999999999999999",
    " 4",
]
TEXTS = [
    "",
    "A-1",
    "a b",
    " A",
    "'=A1",
    "''=A",
    "NA",
    "00123",
    "é",
    "a\u200bb",
    "a\nb",
    "a & <b>",
    "_x0041_",
    "1.250",
    "1\n2",
]
Change = Callable[[str], str]
DATE_STYLE = 2
"""Of `BOOK`: the format that only a date has."""


def book() -> dict[str, bytes]:
    """The parts of a workbook with three styles and the titles."""
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as made:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, TITLES)
        sheet.write(1, 0, 1, made.add_format({"num_format": "0.00"}))
        sheet.write(2, 0, 1, made.add_format({"num_format": "yyyy-mm-dd"}))
    with zipfile.ZipFile(stream) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


BOOK = book()
SHEET, SHARED = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"


def cell(letter: str, row: int, kind: str, content: str, style: int | None = None) -> str:
    start = f'<c r="{letter}{row}"' + (f' s="{style}"' if style is not None else "")
    if kind == "inline":
        return f'{start} t="inlineStr"><is><t xml:space="preserve">{escape(content)}</t></is></c>'
    if kind == "number":
        return f"{start}><v>{content}</v></c>"
    if kind == "shared":
        return f'{start} t="s"><v>{len(TITLES) + TEXTS.index(content)}</v></c>'
    return {"empty": f"{start}/>", "formula": f"{start}><f>1+1</f><v>2</v></c>"}.get(
        kind, f'{start} t="b"><v>1</v></c>'
    )


def sheet(rows: Sequence[Sequence[str]], attributes: str = "", change: Change = lambda xml: xml) -> bytes:
    """A workbook with these rows of written cells, its sheet changed."""
    written = "".join(f'<row r="{number}"{attributes}>{"".join(row)}</row>' for number, row in enumerate(rows, start=2))
    old = BOOK[SHEET].decode()
    title = old[: old.index("</row>") + len("</row>")]
    texts = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in TEXTS)
    parts = BOOK | {
        SHEET: change(f"{title}{written}{old[old.index('</sheetData>') :]}").encode(),
        SHARED: BOOK[SHARED].replace(b"</sst>", f"{texts}</sst>".encode()),
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def read(content: bytes, decimal: DecimalLocale | None = "id") -> tuple[Any, ...]:
    problems: list[FileProblem] = []
    header = HeaderReader(problems, COLUMN_NAMES)
    reader = XlsxReader(problems, header, decimal, None)
    reader.read(io.BytesIO(content), lambda done: None)
    exact = [tuple(map(str, line)) for line in reader.lines]
    return exact, reader.file_lines, [str(problem) for problem in problems], header._values


def cell_by_cell(content: bytes, decimal: DecimalLocale | None = "id") -> tuple[Any, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xlsx_file, "plain_table", lambda *given: None)
        patch.setattr("everest.intake.xlsx_columns.shared_texts", lambda *given: None)
        return read(content, decimal)


def goes_by_columns(content: bytes) -> bool:
    found: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        original: Callable[..., Any] = xlsx_file.plain_table
        patch.setattr(xlsx_file, "plain_table", lambda *given: found.append(bool(made := original(*given))) or made)
        read(content)
    return found == [True]


texts = st.tuples(st.sampled_from(["shared", "inline"]), st.sampled_from(TEXTS))
doubles = st.floats(0, 1e9).map(lambda one: f"{one:.17G}")
numbers = st.tuples(st.just("number"), st.one_of(st.sampled_from(NUMBERS), doubles, st.integers(0, 9999).map(str)))
odd = st.sampled_from([("formula", ""), ("boolean", ""), ("empty", ""), ("number", "41000.5")])
plain_number = st.tuples(st.just("number"), st.integers(0, 9999).map(str))
plain_row = st.tuples(
    st.tuples(st.sampled_from(["shared", "inline"]), st.sampled_from(["A-1", "00123"])),
    *[st.just(("shared", "NA"))] * 2,
    *[plain_number] * 3,
    st.just(("empty", "")),
    st.just(("inline", "NA")),
)
any_row = st.tuples(*[st.one_of(texts, odd)] * 3, *[st.one_of(numbers, texts, odd)] * 3, st.one_of(texts, odd), texts)


@settings(max_examples=120, deadline=None)
@given(
    rows=st.lists(st.one_of(plain_row, plain_row, any_row), max_size=4),
    styles=st.lists(st.sampled_from([None, 0, 1, DATE_STYLE]), min_size=8, max_size=8),
    hidden=st.sets(st.integers(0, 40), max_size=3),
    decimal=st.sampled_from(["id", "en", None]),
)
@example(
    [(("shared", "A-1"), *[("shared", "NA")] * 2, *[("number", "13.699999999999999")] * 3)], [None] * 8, set(), "id"
)
@example([(("shared", "A-1"), *[("shared", "NA")] * 2, *[("inline", "1\n2")] * 3)], [None] * 8, set(), "id")
@example(
    [(("shared", "A-1"), *[("shared", "NA")] * 2, *[("number", "0")] * 3, ("shared", ""), ("shared", " A"))],
    [None] * 8,
    set(),
    "id",
)
def test_both_ways_read_the_same_lines_and_find_the_same_problems(
    rows: list[tuple[tuple[str, str], ...]],
    styles: list[int | None],
    hidden: set[int],
    decimal: DecimalLocale | None,
) -> None:
    letters = "ABCDEFGH"
    written = [
        [
            cell(letters[at], 2 + number, kind, content, styles[at])
            for at, (kind, content) in enumerate(row)
            if number * len(letters) + at not in hidden
        ]
        for number, row in enumerate(rows)
    ]

    content = sheet(written)

    assert read(content, decimal) == cell_by_cell(content, decimal)


ONE = [cell("A", 2, "shared", "A-1"), *(cell(letter, 2, "number", "1") for letter in "DEF")]


def test_sheets_as_programs_write_them_go_by_columns() -> None:
    assert goes_by_columns(sheet([ONE]))
    assert goes_by_columns(sheet([ONE], attributes=' spans="1:6" ht="15" x14ac:dyDescent="0.25"')), "Excel"
    behind = [cell(letter, 2, "empty", "", 1) for letter in ("J", "AA")]
    formatted = "".join(f'<row r="{number}" s="1" customFormat="1"/>' for number in range(4, 5_000))
    assert goes_by_columns(
        sheet([[*ONE, *behind], []], change=lambda xml: xml.replace("</sheetData>", f"{formatted}</sheetData>"))
    ), "cells and rows that have a format and nothing else"
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"constant_memory": True}) as made:
        page = made.add_worksheet()
        page.write_row(0, 0, TITLES)
        page.write_row(1, 0, ["A & B", "", "GD-A", 1, 2.5, "1.250,5", None, "SO-1"])
    assert goes_by_columns(stream.getvalue())
    other = openpyxl.Workbook()
    assert other.active is not None
    other.active.append(TITLES)
    other.active.append(["A-1", "L1", None, 13.7, 0.1, 1500.25, "rusak di rak 3", "SO-1"])
    stream = io.BytesIO()
    other.save(stream)
    assert goes_by_columns(stream.getvalue())


@pytest.mark.parametrize(
    "change",
    [
        lambda xml: xml.replace('<row r="2">', '<!-- 1 --><row r="2">'),
        lambda xml: xml.replace('<row r="2">', "\n<row>"),
        lambda xml: xml.replace('<row r="2">', '<row r="1">'),
        lambda xml: xml.replace('<row r="2">', '<row r="2000000">').replace('2"', '2000000"'),
        lambda xml: xml.replace('r="D2"', 'r="D3"'),
        lambda xml: xml.replace('r="D2"', 'r="E2"', 1),
        lambda xml: xml.replace('r="F2"', 'r="Z2"'),
        lambda xml: xml.replace("</sheetData>", '<row r="2"/></sheetData>'),
        lambda xml: xml.replace("</sheetData>", '<row r="9" ht="1"/></sheetData>'),
        lambda xml: xml.replace("</sheetData>", '<row r="3"/><row r="3"/></sheetData>'),
        lambda xml: xml.replace("</row></sheetData>", '<row r="3"/></row></sheetData>'),
        lambda xml: xml.replace('<row r="2">', '<row r="02">'),
        lambda xml: xml.replace('<row r="2">', f'<row r="{"9" * 5000}">'),
        lambda xml: xml.replace('<row r="2">', '<row r="1"/><row r="2">'),
        lambda xml: xml.replace("</row></sheetData>", '<c r="J2" s="1"/><c r="AA2"/></row></sheetData>'),
        lambda xml: xml.replace("</row></sheetData>", '<c r="AA2"/><c r="J2"/></row></sheetData>'),
        lambda xml: xml.replace("</row></sheetData>", '<c r="J2"/><c r="J2"/></row></sheetData>'),
        lambda xml: xml.replace("</row></sheetData>", '<c r="J3"/></row></sheetData>'),
        lambda xml: xml.replace("</row></sheetData>", '<c r="G2"/><c r="E2"/></row></sheetData>'),
        lambda xml: xml.replace("</row></sheetData>", '<c r="J2"><v>1</v></c></row></sheetData>'),
        lambda xml: xml.replace("<v>9</v>", f"<v>{'9' * 5000}</v>"),
        lambda xml: xml.replace("<v>1</v>", "<v>&#49;</v>"),
        lambda xml: xml.replace("<v>1</v>", "<v><![CDATA[1]]></v>"),
        lambda xml: xml.replace("<sheetData>", '<sheetData xmlns="urn:x">'),
        lambda xml: xml.replace("<sheetData>", "<sheetData >"),
        lambda xml: xml.replace('encoding="UTF-8"', 'encoding="iso-8859-1"'),
        lambda xml: xml.replace("</worksheet>", "<broken></worksheet>"),
        lambda xml: xml.replace("</worksheet>", ""),
    ],
)
def test_a_sheet_whose_xml_is_not_plain_is_read_or_refused_as_before(change: Change) -> None:
    content = sheet([ONE], change=change)

    assert read(content) == cell_by_cell(content)


def test_rows_of_thousands_of_empty_cells_that_end_in_a_formula_cost_one_look_each() -> None:
    """Were what was taken given back, cell by cell and column by column, these rows would take minutes."""
    row = f'<row r="1">{cell("X", 1, "empty", "") * 4_500}{cell("Y", 1, "formula", "")}</row>'

    assert xlsx_columns._taken_apart(row * 250, len(COLUMN_NAMES)) is None


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(lambda one: f"{one:.17G}"),
        doubles,
        st.sampled_from(NUMBERS),
    )
)
def test_a_typed_number_is_the_double_in_at_most_fifteen_digits(stored: str) -> None:
    typed = typed_number(stored)

    if typed is not None:
        assert float(typed) == float(stored)
        assert significant_digits(Decimal(typed)) <= SIGNIFICANT_DIGITS and "e" not in typed.lower()
    elif (
        stored not in ("nan", "1_0", "1,234", " 4", "1e999")
        and significant_digits(Decimal(stored)) <= DIGITS_OF_A_DOUBLE
    ):
        assert significant_digits(Decimal(repr(float(stored)))) > SIGNIFICANT_DIGITS, "what was typed is not stored"
