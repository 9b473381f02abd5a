"""One counted line of a file: every cell judged, every flaw kept, whatever the format of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everest.intake import cells
from everest.intake.cells import FileProblem, said_by
from everest.intake.submission import Line
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS
from everest.words import say

LINE_FIELDS = Line._fields
REQUIRED_COLUMNS = ("kode_barang", "qty_sistem", "qty_fisik", "harga_pokok")
"""Columns a file must have; their cells may be blank where posting allows it, and the rules of posting say so."""

_CODES = frozenset({"kode_barang", "lot", "gudang_kode"})


def read_line(
    given: Mapping[str, Any],
    baris: int,
    file_line: int | None,
    decimal: DecimalLocale | None,
    problems: list[FileProblem],
) -> Line | None:
    """None when a cell is not what its column holds; the problems say which."""
    values: dict[str, Any] = {}
    for name in LINE_FIELDS:
        raw = given.get(name)
        try:
            if name in DECIMAL_COLUMNS:
                values[name] = cells.number(raw, name, decimal)
            elif name == "lot":
                values[name] = "" if raw is None or raw == "" else cells.code(raw, name)
            elif name in _CODES:
                values[name] = cells.code(raw, name)
            else:
                values[name] = cells.text(raw, name)
        except ValueError as flaw:
            problems.append(FileProblem(baris, name, said_by(flaw), file_line))
    if "kode_barang" in values and values["kode_barang"] is None:
        problems.append(FileProblem(baris, "kode_barang", say("id", "file.empty"), file_line))
        return None
    return Line(**values) if len(values) == len(LINE_FIELDS) else None
