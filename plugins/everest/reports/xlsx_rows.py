"""The rows of a sheet as XML, many times as quick as a cell of XlsxWriter.

XlsxWriter makes the workbook: styles, titles, properties, all that is there once. Rows are there by the thousand, and
each cell of one costs it a call through several checks. Here a row is one string of cells, each written by the type of
its value; equal texts and days of neighbouring rows are written once. What a cell holds is what XlsxWriter would
write: text in the cell itself (never a formula), and numbers that a spreadsheet holds exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from everest.spreadsheets import SIGNIFICANT_DIGITS, exact_double

FIRST_EXCEL_DAY = date(1900, 3, 1)
"""Excel takes 1900 for a leap year, so days before this one are off by one; they are written as text."""

MAX_TEXT = 32_767
"""UTF-16 units of a cell; Excel refuses a file with more."""

_NUMBERS = frozenset({Decimal, int, type(None)})
_WORDS = frozenset({str, date, datetime, type(None)})
"""Types of which equal values are written alike. Of numbers they are not: 1.0 is 1.00."""

_DAY_ZERO = date(1899, 12, 30)
_SECONDS_OF_A_DAY = 86_400
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]")
_LOOKS_ESCAPED = re.compile("_(?=x[0-9a-fA-F]{4}_)")


class Style(NamedTuple):
    """Numbers of the formats of a column: for what it usually holds, and for a number that no double is."""

    usual: int
    inexact: int


class Rows:
    """Writes rows of these columns, some at a time: a call for each cell is most of what a large sheet costs."""

    def __init__(self, styles: Sequence[Style]) -> None:
        self._styles = styles
        self._starts = [f'<c r="{_letters(place)}' for place in range(len(styles))]

    def rows(self, first: int, rows: Sequence[Sequence[Any]]) -> str:
        """first: the number of the first of them, from 1."""
        if not rows:
            return ""
        numbers = range(first, first + len(rows))
        columns: list[list[str]] = []
        for start, style, values in zip(self._starts, self._styles, zip(*rows, strict=True), strict=True):
            bodies = _bodies(values, style)
            columns.append([
                f'{start}{number}" {body}' if body else "" for number, body in zip(numbers, bodies, strict=True)
            ])  # fmt: skip
        # Where no dimension says how wide the table is, every row shows it.
        columns[-1] = [
            cell or f'{self._starts[-1]}{number}"/>' for number, cell in zip(numbers, columns[-1], strict=True)
        ]
        whole = map("".join, zip(*columns, strict=True))
        return "".join([f'<row r="{number}">{cells}</row>' for number, cells in zip(numbers, whole, strict=True)])


def _bodies(values: Sequence[Any], style: Style) -> list[str]:
    """What each cell of a column holds, behind its place; '' is nothing."""
    types = set(map(type, values))
    if types <= _NUMBERS:
        texts = ["" if value is None else str(value) for value in values]
        if max(map(len, texts)) > SIGNIFICANT_DIGITS or "E" in "".join(texts):
            return ["" if value is None else _number(value, style) for value in values]
        return [text and f's="{style.usual}"><v>{text}</v></c>' for text in texts]
    if types <= _WORDS:
        known = {value: _body(value, style) for value in set(values)}
        return [known[value] for value in values]
    return [_body(value, style) for value in values]


def _body(value: Any, style: Style) -> str:
    if value is None:
        return ""
    if isinstance(value, (Decimal, int)):
        return _number(value, style)
    if isinstance(value, date):
        return _day(value, style.usual)
    return _text(str(value), style.usual)


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
