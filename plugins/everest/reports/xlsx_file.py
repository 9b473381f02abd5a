"""A report as an XLSX workbook, written row by row in bounded memory.

Text is written as text, always: no code becomes a number and nothing becomes a formula. Numbers are real numbers with a
format, as long as a spreadsheet can hold exactly this number (15 significant digits); one that it can't is written as
text, in italics, so that what stands there is right and adds up nowhere by mistake. The totals are values that were
computed exactly, not formulas over doubles. Sheet 1 is a plain table (headings, rows, totals); sheet 2 says what it is.

XlsxWriter makes the workbook with an example of each format; the rows (`xlsx_rows`) take their place.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from everest import words
from everest.reports.shape import NUMBERS, Kind, Report, ReportRefused
from everest.reports.xlsx_rows import Rows, Style
from everest.spreadsheets import TEXT_AS_IT_IS
from everest.words import Language

MAX_ROWS = 1_048_576 - 2
"""Of an Excel sheet, less headings and totals."""

TABLE, ABOUT = "xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"
LEVEL = 1
"""Of compression: twice as quick as the usual one, for a file that is a fifth larger."""

ROWS_PER_PIECE = 1_000
_STYLE = re.compile(' s="([0-9]+)"')
_DIMENSION = re.compile('<dimension ref="[^"]*"/>')

FORMATS: dict[Kind, str] = {
    Kind.TEXT: "@",
    Kind.CODE: "@",
    Kind.QUANTITY: "#,##0.00##",
    Kind.MONEY: "#,##0.00",
    Kind.COST: "#,##0.00####",
    Kind.DATE: "yyyy-mm-dd",
    Kind.INSTANT: "yyyy-mm-dd hh:mm:ss",
    Kind.INTEGER: "0",
    Kind.PERCENT: "0.00",
}
WIDTHS = {Kind.TEXT: 30, Kind.CODE: 20, Kind.DATE: 12, Kind.INSTANT: 20, Kind.INTEGER: 10}
WIDTH_OF_NUMBERS = 18


def write_xlsx(report: Report, target: Path | BinaryIO, language: Language = "id") -> None:
    """The whole report. Raises ReportRefused when it has more rows than a sheet."""
    with zipfile.ZipFile(_book(report, language)) as book:
        before, example, behind = _table(book.read(TABLE).decode())
        others = {part: book.read(part) for part in book.infolist() if part.filename not in (TABLE, ABOUT)}
    usual, bold, inexact = (list(map(int, _STYLE.findall(row))) for row in example.split("</row>")[1:4])
    rows = Rows(list(map(Style, usual, inexact)))
    totals = Rows(list(map(Style, bold, inexact)))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for part, content in others.items():
            archive.writestr(part, content)
        with archive.open(TABLE, "w", force_zip64=True) as sheet:
            sheet.write(f"{before}{example.partition('</row>')[0]}</row>".encode())
            for piece in _written(report, rows, totals, language):
                sheet.write(piece)
            sheet.write(behind.encode())
        # How many rows there were is known now.
        with zipfile.ZipFile(_book(report, language)) as book:
            archive.writestr(ABOUT, book.read(ABOUT))


def _written(report: Report, rows: Rows, totals: Rows, language: Language) -> Iterator[bytes]:
    number = 2
    stream = report.rows(language)
    while piece := list(islice(stream, ROWS_PER_PIECE)):
        if number - 2 + len(piece) > MAX_ROWS:
            raise ReportRefused(f"more than {MAX_ROWS:,} rows do not fit into a sheet; narrow it down, or use CSV")
        yield rows.rows(number, piece).encode()
        number += len(piece)
    if report.totals:
        values: list[Any] = list(report.totals_row())
        if report.columns[0].name not in report.totals:
            values[0] = words.text(language, "report.total")
        yield totals.rows(number, [values]).encode()


def _table(xml: str) -> tuple[str, str, str]:
    """Of the XML of sheet 1: what stands before its rows, the rows, and what stands behind them."""
    before, opening, rest = xml.partition("<sheetData>")
    rows, closing, behind = rest.partition("</sheetData>")
    # How far the rows go is not known before they are written, and may be left out.
    return _DIMENSION.sub("", before) + opening, rows, closing + behind


def _book(report: Report, language: Language) -> BinaryIO:
    """The workbook with an example of each format instead of its rows."""
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"constant_memory": True}) as book:
        _Writer(book, report, language).write()
    return stream


class _Writer:
    def __init__(self, book: Workbook, report: Report, language: Language) -> None:
        self._book = book
        book.set_custom_property(TEXT_AS_IT_IS, "1")
        self._report = report
        self._language = language
        self._heading = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
        self._plain = self._formats({})
        self._bold = self._formats({"bold": True, "top": 1})
        self._inexact = self._formats({"italic": True, "align": "right", "num_format": "@"})

    def _formats(self, properties: dict[str, Any]) -> list[Format]:
        return [
            self._book.add_format({"num_format": FORMATS[column.kind]} | properties) for column in self._report.columns
        ]

    def _text(self, key: str) -> str:
        return words.text(self._language, f"report.{key}")

    def write(self) -> None:
        report = self._report
        sheet = self._book.add_worksheet(self._text("sheet"))
        for place, column in enumerate(report.columns):
            width = WIDTH_OF_NUMBERS if column.kind in NUMBERS - {Kind.INTEGER} else WIDTHS[column.kind]
            sheet.set_column(place, place, width)
        sheet.freeze_panes(1, 0)
        for place, column in enumerate(report.columns):
            sheet.write_string(0, place, column.headed(self._language), self._heading)
        for row, formats in enumerate((self._plain, self._bold, self._inexact), start=1):
            for place, one in enumerate(formats):
                sheet.write_blank(row, place, None, one)
        self._explain(self._book.add_worksheet(self._text("about_sheet")))

    def _explain(self, sheet: Worksheet) -> None:
        report = self._report
        sheet.set_column(0, 0, 24)
        sheet.set_column(1, 1, 100)
        wrap = self._book.add_format({"text_wrap": True, "valign": "top"})
        lines = [
            (self._text("sheet"), report.definition.title(self._language)),
            *report.described_filters(self._language),
            (self._text("rows"), str(report.row_count)),
            *((self._text("rule"), note) for note in report.definition.notes_in(self._language)),
            (self._text("numbers"), self._text("exact_as_text")),
        ]
        for number, (label, text) in enumerate(lines):
            sheet.write_string(number, 0, label, self._heading)
            sheet.write_string(number, 1, text, wrap)
