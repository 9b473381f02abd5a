"""A CSV in which nothing is out of the ordinary, taken column by column: twenty times as quick as cell by cell.

Nearly every file is one, and a person waits for the answer. Nothing is decided here that `csv_file` would decide
otherwise: whatever it might object to, or read differently, ends this and is its business.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
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

MAX_LINE_CHARS = 64 * 1024
"""Of one line of a file; all cells of a row at their longest take 1,000."""

_Column = Sequence[Any]


@dataclass(frozen=True)
class PlainTable:
    """lines, and the line of the file of each. header: by column, baris and text of the one value that stands there."""

    lines: list[Line]
    file_lines: list[int]
    header: dict[str, tuple[int, str]]


def plain_table(
    content: bytes, delimiter: str, names: Sequence[str | None], decimal: DecimalLocale | None
) -> PlainTable | None:
    """The whole file, None if a cell of it has to be looked at by itself. names: the field of each column."""
    try:
        lines = list(io.StringIO(content.decode("utf-8-sig"), newline=""))
        if max(map(len, lines), default=0) > MAX_LINE_CHARS:
            return None
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        rows = list(reader)[1:]
    except (UnicodeDecodeError, csv.Error):
        return None
    if reader.line_num != len(rows) + 1:
        return None  # a cell goes over several lines
    file_lines = [number for number, row in enumerate(rows, start=2) if any(row)]
    rows = [row for row in rows if any(row)]
    if set(map(len, rows)) != {len(names)}:
        return None
    found: dict[str, _Column] = {}
    header: dict[str, tuple[int, str]] = {}
    for name, texts in zip(names, zip(*rows, strict=True), strict=True):
        if name is None:
            return None
        if name not in Line._fields:
            values = set(texts) - {""}
            if len(values) > 1 or any("'" in value for value in values):
                return None
            header.update((name, (texts.index(value) + 1, value)) for value in values)
            continue
        column = _numbers(name, texts, decimal) if name in DECIMAL_COLUMNS else _texts(name, texts)
        if column is None:
            return None
        found[name] = column
    if "kode_barang" not in found:
        return None
    columns = [found.get(name) or [Line._field_defaults[name]] * len(rows) for name in Line._fields]
    return PlainTable(list(map(Line, *columns)), file_lines, header)


def _numbers(name: str, texts: Sequence[str], decimal: DecimalLocale | None) -> _Column | None:
    precision, scale = DECIMAL_COLUMNS[name]
    return parse_decimals(texts, decimal=decimal, precision=precision, scale=scale)


def _texts(name: str, texts: Sequence[str]) -> _Column | None:
    """Codes are mostly all different and plain; what is not is judged once per distinct text."""
    is_code = name not in ("satuan", "alasan")
    longest = max(map(len, texts), default=0)
    is_short = longest <= cells.MAX_CHARS[name] and not any(map(contains, texts, repeat("'")))
    if is_code and is_short and are_plain(list(texts), may_be_empty=name == "lot"):
        return texts
    if name == "kode_barang" and "" in texts:
        return None
    judge: Callable[[str], str | None] = partial(cells.code if is_code else cells.text, column=name)
    try:
        judged = {text: judge(unguarded(text)) for text in set(texts) if text}
    except ValueError:
        return None
    nothing = Line._field_defaults.get(name)
    return [judged.get(text, nothing) for text in texts]
