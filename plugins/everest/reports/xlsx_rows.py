"""The rows of a sheet as XML, many times as quick as a cell of XlsxWriter.

XlsxWriter makes the workbook: styles, titles, properties, all that is there once. Rows are there by the thousand, and
each cell of one costs it a call through several checks. Here a row is one string of cells, each written by the type of
its value; texts and days that stand in row after row are written once. What a cell holds is what XlsxWriter would
write: text in the cell itself (never a formula), and numbers that a spreadsheet holds exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from everest.spreadsheets import SIGNIFICANT_DIGITS, exact_double

FIRST_EXCEL_DAY = date(1900, 3, 1)
"""Excel takes 1900 for a leap year, so days before this one are off by one; they are written as text."""

MAX_TEXT = 32_767
"""UTF-16 units of a cell; Excel refuses a file with more."""

MAX_KEPT = 1_000
"""Written texts of one column that are kept for the rows to come."""

_DAY_ZERO = date(1899, 12, 30)
_SECONDS_OF_A_DAY = 86_400
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]")
_LOOKS_ESCAPED = re.compile("_(?=x[0-9a-fA-F]{4}_)")


class Style(NamedTuple):
    """Numbers of the formats of a column: for what it usually holds, and for a number that no double is."""

    usual: int
    inexact: int


class Rows:
    """Writes rows of these columns, one after another."""

    def __init__(self, styles: Sequence[Style]) -> None:
        self._columns = [_column(place, style) for place, style in enumerate(styles)]
        self._last = _letters(len(styles) - 1)

    def row(self, number: int, values: Sequence[Any]) -> str:
        """number: from 1."""
        cells = "".join([
            write(value, number) for write, value in zip(self._columns, values, strict=True) if value is not None
        ])  # fmt: skip
        if values[-1] is None:
            # Where no dimension says how wide the table is, every row shows it.
            cells += f'<c r="{self._last}{number}"/>'
        return f'<row r="{number}">{cells}</row>'


def _column(place: int, style: Style) -> Callable[[Any, int], str]:
    letters = _letters(place)
    kept: dict[str, str] = {}
    days: dict[date, str] = {}

    def write(value: Any, number: int) -> str:
        if isinstance(value, str):
            body = kept.get(value)
            if body is None:
                body = _text(value, style.usual)
                if len(kept) < MAX_KEPT:
                    kept[value] = body
        elif isinstance(value, (Decimal, int)):
            body = _number(value, style)
        elif isinstance(value, date):
            body = days.get(value) or ""
            if not body:
                body = _day(value, style.usual)
                if len(days) < MAX_KEPT:
                    days[value] = body
        else:
            body = _text(str(value), style.usual)
        return f'<c r="{letters}{number}" {body}'

    return write


def _number(value: Decimal | int, style: Style) -> str:
    text = str(value)
    # So few digits come back from their double by themselves.
    if len(text) > SIGNIFICANT_DIGITS or "E" in text:
        exact = Decimal(value)
        double = exact_double(exact)
        if double is None:
            # An int formatted as `f` would pass through a double itself.
            return _text(f"{exact:f}", style.inexact)
        text = f"{double:.16G}"
    return f's="{style.usual}"><v>{text}</v></c>'


def _day(value: date, style: int) -> str:
    day = value.date() if isinstance(value, datetime) else value
    if day < FIRST_EXCEL_DAY:
        return _text(str(value), style)
    serial = (day - _DAY_ZERO).days
    if not isinstance(value, datetime):
        return f's="{style}"><v>{serial}</v></c>'
    seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1_000_000
    return f's="{style}"><v>{serial + seconds / _SECONDS_OF_A_DAY:.16G}</v></c>'


def _text(text: str, style: int) -> str:
    if len(text) > MAX_TEXT // 2:
        text = text.encode("utf-16-le", "surrogatepass")[: 2 * MAX_TEXT].decode("utf-16-le", "ignore")
    # Excel writes a character that XML has no place for by its number, and what only looks like that with one more.
    if "_x" in text:
        text = _LOOKS_ESCAPED.sub("_x005F_", text)
    text = _NOT_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
    if "&" in text or "<" in text or ">" in text:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    space = ' xml:space="preserve"' if text[:1].isspace() or text[-1:].isspace() or "\n" in text else ""
    return f's="{style}" t="inlineStr"><is><t{space}>{text}</t></is></c>'


def _letters(place: int) -> str:
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
