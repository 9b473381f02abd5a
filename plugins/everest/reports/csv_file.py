"""A report as CSV. Numbers are written exactly; text that a spreadsheet would take for a formula is disarmed.

`id` is what Excel with Indonesian settings opens by a double click: semicolons, decimal commas, a byte order mark. `en`
is for everything else: commas, decimal points. Neither groups thousands, so no number can be read as two. What CSV
can't promise is that Excel leaves 00123 alone when it opens the file: for that there is XLSX.

Rows are written some at a time, column by column: a call for each cell is most of what a large file costs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, BinaryIO

from everest import words
from everest.reports.shape import Column, Kind, Report
from everest.spreadsheets import guarded
from everest.words import Language

CsvLocale = Language
DELIMITERS: dict[str, str] = {"id": ";", "en": ","}
ROWS_AT_ONCE = 1_000
_NUMBERS = frozenset({Decimal, type(None)})
_WORDS = frozenset({str, date, datetime, type(None)})
"""Types of which equal values are written alike. Of numbers they are not: 1.0 is 1.00."""


def write_csv(report: Report, stream: BinaryIO, locale: CsvLocale = "id") -> None:
    """The whole report: headings, rows, totals. UTF-8 with byte order mark, CRLF."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="", write_through=False)
    try:
        writer = csv.writer(text, delimiter=DELIMITERS[locale])
        columns = report.columns
        writer.writerow([column.headed(locale) for column in columns])
        rows = report.rows(locale)
        while some := list(islice(rows, ROWS_AT_ONCE)):
            writer.writerows(_written(columns, some, locale))
        if report.totals:
            totals = _cells(columns, report.totals_row(), locale)
            writer.writerow([words.text(locale, "report.total"), *totals[1:]] if not totals[0] else totals)
        text.flush()
    finally:
        text.detach()


def _cells(columns: tuple[Column, ...], row: Iterable[Any], locale: CsvLocale) -> list[str]:
    return [cell(column.kind, value, locale) for column, value in zip(columns, row, strict=True)]


def _written(columns: tuple[Column, ...], rows: Sequence[Sequence[Any]], locale: CsvLocale) -> Iterator[Sequence[str]]:
    """The same of several rows."""
    by_column = zip(*rows, strict=True)
    return zip(
        *(_column(column.kind, values, locale) for column, values in zip(columns, by_column, strict=True)), strict=True
    )


def _column(kind: Kind, values: Sequence[Any], locale: CsvLocale) -> Sequence[str]:
    """`cell` of each value."""
    types = set(map(type, values))
    if types <= _NUMBERS:
        plain = "\n".join(["" if value is None else str(value) for value in values])
        if "E" in plain:
            return [cell(kind, value, locale) for value in values]
        return (plain.replace(".", ",") if locale == "id" else plain).split("\n")
    if types <= _WORDS:
        texts = {value: cell(kind, value, locale) for value in set(values)}
        return [texts[value] for value in values]
    return [cell(kind, value, locale) for value in values]


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
