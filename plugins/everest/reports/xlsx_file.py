"""A report as an XLSX workbook, written row by row in bounded memory.

Text is written as text, always: no code becomes a number and nothing becomes a formula. Numbers are real numbers with a
format, as long as a spreadsheet can hold exactly this number (15 significant digits); one that it can't is written as
text, in italics, so that what stands there is right and adds up nowhere by mistake. The totals are values that were
computed exactly, not formulas over doubles. Sheet 1 is a plain table (headings, rows, totals); sheet 2 says what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from everest import words
from everest.reports.shape import NUMBERS, Kind, Report, ReportRefused
from everest.spreadsheets import TEXT_AS_IT_IS, exact_double
from everest.words import Language

MAX_ROWS = 1_048_576 - 2
"""Of an Excel sheet, less headings and totals."""

MAX_TEXT = 32_767
"""Characters of a cell; Excel refuses a file with more."""

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
FIRST_EXCEL_DAY = date(1900, 3, 1)
"""Excel takes 1900 for a leap year, so days before this one are off by one; they are written as text."""


def write_xlsx(report: Report, target: Path | BinaryIO, language: Language = "id") -> None:
    """The whole report. Raises ReportRefused when it has more rows than a sheet."""
    with xlsxwriter.Workbook(str(target) if isinstance(target, Path) else target, {"constant_memory": True}) as book:
        _Writer(book, report, language).write()


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
        number = 0
        for number, row in enumerate(report.rows(), start=1):
            if number > MAX_ROWS:
                raise ReportRefused(f"more than {MAX_ROWS:,} rows do not fit into a sheet; narrow it down, or use CSV")
            self._row(sheet, number, row, self._plain)
        if report.totals:
            self._row(sheet, number + 1, report.totals_row(), self._bold)
            if report.columns[0].name not in report.totals:
                sheet.write_string(number + 1, 0, self._text("total"), self._bold[0])
        self._explain(self._book.add_worksheet(self._text("about_sheet")))

    def _row(self, sheet: Worksheet, number: int, row: Sequence[Any], formats: list[Format]) -> None:
        for place, value in enumerate(row):
            if value is None:
                continue
            if isinstance(value, (Decimal, int)):
                double = exact_double(Decimal(value))
                if double is None:
                    # An int formatted as `f` would pass through a double itself.
                    sheet.write_string(number, place, f"{Decimal(value):f}", self._inexact[place])
                else:
                    sheet.write_number(number, place, double, formats[place])
            elif isinstance(value, date):
                day = value.date() if isinstance(value, datetime) else value
                if day < FIRST_EXCEL_DAY:
                    sheet.write_string(number, place, str(value), formats[place])
                else:
                    whole = value if isinstance(value, datetime) else datetime.combine(value, time.min)
                    sheet.write_datetime(number, place, whole, formats[place])
            else:
                sheet.write_string(number, place, str(value)[:MAX_TEXT], formats[place])

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
