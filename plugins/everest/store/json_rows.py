"""Thousands of rows on their way to the database: JSON arrays, each small enough for one statement.

A statement has to fit the server's max_allowed_packet, 16 MiB by default, and in it every quote and backslash of the
JSON stands escaped, so the text may be twice as long there. Rows are counted, and weighed: 20,000 lines of a count have
about 2.5 MB, but nine times as much when each tells a long reason in another script.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

MOST_ROWS = 20_000
MOST_BYTES = 4 * 1024 * 1024

Row = TypeVar("Row")


def pieces(rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], str]]:
    """The rows in order, some at a time, with their JSON; decimals as text. One row alone may weigh more."""
    for start in range(0, len(rows), MOST_ROWS):
        yield from _light(rows[start : start + MOST_ROWS])


def arrays(rows: Sequence[Any]) -> Iterator[str]:
    """Their JSON alone."""
    for _, text in pieces(rows):
        yield text


def _light(rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], str]]:
    text = json.dumps(rows, ensure_ascii=False, default=str)
    if len(rows) == 1 or len(text.encode(errors="replace")) <= MOST_BYTES:
        yield rows, text
        return
    middle = len(rows) // 2
    for some in (rows[:middle], rows[middle:]):
        yield from _light(some)
