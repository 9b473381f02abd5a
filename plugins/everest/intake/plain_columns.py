"""Columns of cells in which nothing is out of the ordinary, taken whole: twenty times as quick as cell by cell.

Nearly every file is one, CSV or workbook, and a person waits for the answer. Nothing is decided here that the reading
cell by cell would decide otherwise: whatever it might object to, or read differently, ends this and is its business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import contains
from typing import Any

from everest.intake import cells
from everest.intake.submission import Line
from everest.opname.amounts import DecimalLocale, parse_decimals
from everest.opname.document import DECIMAL_COLUMNS
from everest.opname.lines import are_plain
from everest.spreadsheets import unguarded

Column = Sequence[Any]
"""Values as a line holds them, by row."""


@dataclass(frozen=True)
class PlainTable:
    """lines, and the line of the file of each. header: by column, baris and text of the one value that stands there."""

    lines: list[Line]
    file_lines: list[int]
    header: dict[str, tuple[int, str]]


def numbers(name: str, texts: Sequence[str], decimal: DecimalLocale | None) -> Column | None:
    """The quantities or costs of a column, '' is None. None: one of them has to be looked at by itself."""
    precision, scale = DECIMAL_COLUMNS[name]
    return parse_decimals(texts, decimal=decimal, precision=precision, scale=scale)


def codes_or_texts(name: str, texts: Sequence[str], *, may_be_guarded: bool = True) -> Column | None:
    """The same of any other column. Codes are mostly all different and plain; what is not is judged once per distinct
    text. may_be_guarded: an apostrophe in front may be what disarmed a formula."""
    is_code = name not in ("satuan", "alasan")
    longest = max(map(len, texts), default=0)
    is_short = longest <= cells.MAX_CHARS[name] and not any(map(contains, texts, repeat("'")))
    if is_code and is_short and are_plain(list(texts), may_be_empty=name == "lot"):
        return texts
    if name == "kode_barang" and "" in texts:
        return None
    judge: Callable[[str], str | None] = partial(cells.code if is_code else cells.text, column=name)
    try:
        judged = {text: judge(unguarded(text) if may_be_guarded else text) for text in set(texts) if text}
    except ValueError:
        return None
    nothing = Line._field_defaults.get(name)
    return [judged.get(text, nothing) for text in texts]


def one_value(texts: Sequence[str]) -> tuple[int, str] | None:
    """Of a column of the header: baris and text of the one value in it, (0, '') if it is empty. None: several, or one
    with an apostrophe, which may be no part of it."""
    values = set(texts) - {""}
    if not values:
        return 0, ""
    value = values.pop()
    return None if values or "'" in value else (texts.index(value) + 1, value)


def lines_of(columns: Mapping[str, Column], count: int) -> list[Line] | None:
    """The lines of columns by their field; those that are not there hold what a line holds by itself."""
    if "kode_barang" not in columns:
        return None
    whole = [columns.get(name) or [Line._field_defaults[name]] * count for name in Line._fields]
    return list(map(Line._make, zip(*whole, strict=True)))
