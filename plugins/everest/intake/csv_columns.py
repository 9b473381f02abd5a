"""A CSV in which nothing is out of the ordinary, taken column by column (`plain_columns`).

Whatever `csv_file` might object to, or read differently, ends this and is its business.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import compress, count

from everest.intake import plain_columns
from everest.intake.plain_columns import Column, PlainTable
from everest.intake.submission import Line
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS

MAX_LINE_CHARS = 64 * 1024
"""Of one line of a file; all cells of a row at their longest take 1,000."""


def plain_table(
    content: bytes, delimiter: str, names: Sequence[str | None], decimal: DecimalLocale | None
) -> PlainTable | None:
    """The whole file, None if a cell of it has to be looked at by itself. names: the field of each column."""
    try:
        texts = list(io.StringIO(content.decode("utf-8-sig"), newline=""))
        if max(map(len, texts), default=0) > MAX_LINE_CHARS:
            return None
        reader = csv.reader(texts, delimiter=delimiter, strict=True)
        rows = list(reader)[1:]
    except (UnicodeDecodeError, csv.Error):
        return None
    if reader.line_num != len(rows) + 1:
        return None  # a cell goes over several lines
    is_filled = list(map(any, rows))
    file_lines, rows = list(compress(count(2), is_filled)), list(compress(rows, is_filled))
    if set(map(len, rows)) != {len(names)}:
        return None
    columns: dict[str, Column] = {}
    header: dict[str, tuple[int, str]] = {}
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        if name is None:
            return None
        if name not in Line._fields:
            value = plain_columns.one_value(cells)
            if value is None:
                return None
            if value[0]:
                header[name] = value
            continue
        if name in DECIMAL_COLUMNS:
            column = plain_columns.numbers(name, cells, decimal)
        else:
            column = plain_columns.codes_or_texts(name, cells)
        if column is None:
            return None
        columns[name] = column
    lines = plain_columns.lines_of(columns, len(rows))
    return None if lines is None else PlainTable(lines, file_lines, header)
