"""Rows of the driver as the frames that the domain takes. pandas is imported inside: nothing that is imported at parse
time needs it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from everest.opname.lines import DECIMAL_COLUMNS, LINE_COLUMNS

if TYPE_CHECKING:
    from pandas import DataFrame


def frame_of(rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> DataFrame:
    """Objects as the driver gave them: pandas would make a float of a decimal column and NaN of None."""
    from pandas import DataFrame as Frame

    return Frame(rows, columns=list(columns), dtype=object)


def stored_lines(rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> DataFrame:
    """Counted lines out of the database, which writes decimals as text. A column of them becomes `FixedPoint`; one that
    holds anything else than its DECIMAL would becomes one of objects, and the rules say what is wrong."""
    from pandas import DataFrame as Frame
    from pandas import Series

    from everest.opname.fixed import FixedPoint

    found: dict[str, Any] = {}
    for place, name in enumerate(columns):
        values = list(map(itemgetter(place), rows))  # zip(*rows) makes 20,000 iterators first
        if name not in DECIMAL_COLUMNS:
            found[name] = Series(values, dtype=object)
            continue
        fixed = FixedPoint.read(values, *DECIMAL_COLUMNS[name])
        exact = (None if text is None else Decimal(text) for text in values)
        found[name] = Series(list(exact), dtype=object) if fixed is None else fixed
    return Frame(found)


def line_frame(rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Counted lines that are not stored yet: LINE_COLUMNS, decimals as objects."""
    return frame_of(rows, LINE_COLUMNS)
