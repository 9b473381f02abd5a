"""A report as CSV. Numbers are written exactly; text that a spreadsheet would take for a formula is disarmed.

`id` is what Excel with Indonesian settings opens by a double click: semicolons, decimal commas, a byte order mark. `en`
is for everything else: commas, decimal points. Neither groups thousands, so no number can be read as two. What CSV
can't promise is that Excel leaves 00123 alone when it opens the file: for that there is XLSX.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, BinaryIO

from everest import words
from everest.reports.shape import Column, Kind, Report
from everest.spreadsheets import guarded
from everest.words import Language

CsvLocale = Language
DELIMITERS: dict[str, str] = {"id": ";", "en": ","}


def write_csv(report: Report, stream: BinaryIO, locale: CsvLocale = "id") -> None:
    """The whole report: headings, rows, totals. UTF-8 with byte order mark, CRLF."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="", write_through=False)
    try:
        writer = csv.writer(text, delimiter=DELIMITERS[locale])
        columns = report.columns
        writer.writerow([column.headed(locale) for column in columns])
        for row in report.rows():
            writer.writerow(_cells(columns, row, locale))
        if report.totals:
            totals = _cells(columns, report.totals_row(), locale)
            writer.writerow([words.text(locale, "report.total"), *totals[1:]] if not totals[0] else totals)
        text.flush()
    finally:
        text.detach()


def _cells(columns: tuple[Column, ...], row: Iterable[Any], locale: CsvLocale) -> list[str]:
    return [cell(column.kind, value, locale) for column, value in zip(columns, row, strict=True)]


def cell(kind: Kind, value: Any, locale: CsvLocale) -> str:
    """One value as text. None is an empty cell."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        plain = f"{value:f}"
        return plain.replace(".", ",") if locale == "id" else plain
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, date):
        return value.isoformat()
    if kind is Kind.INTEGER:
        return str(int(value))
    return guarded(str(value))
