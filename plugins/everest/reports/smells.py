"""The smell hints of a stored document: its lines, and what other recent documents counted of the same items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from everest.opname.hints import CountedLine, Elsewhere, Hint, far_off_items, hints, is_far_off
from everest.reports.arithmetic import computed
from everest.store.book_reader import every_row
from everest.store.database import Connection, load_queries

_QUERIES = load_queries("reports")
_ROWS = load_queries("reports", as_tuples=True)

NEIGHBOUR_DAYS = 31
"""How far from a posting another one is recent: a month, because everything is counted once a month at least."""

MAX_NEIGHBOURS = 200
"""Documents that are looked through; each is one pass over its lines."""

MAX_ITEMS = 1_000
"""Items that are looked for in them."""


def posted_hints(conn: Connection, transaksi_id: int, instant: datetime, with_neighbours: bool) -> list[Hint]:
    """Of a posting. with_neighbours: also whether others, a month around `instant` (WIB), missed the same items."""
    lines = _counted(conn, [transaksi_id])[transaksi_id]
    elsewhere = _elsewhere(conn, transaksi_id, instant, lines) if with_neighbours else ()
    return hints(lines, elsewhere)


def hints_of_postings(conn: Connection, transaksi_ids: Sequence[int]) -> dict[int, list[Hint]]:
    """Of each of several postings, without looking around. All their lines that differ are in memory at once."""
    return {number: hints(lines) for number, lines in _counted(conn, transaksi_ids).items()}


def _counted(conn: Connection, transaksi_ids: Sequence[int]) -> dict[int, list[CountedLine]]:
    found: dict[int, list[CountedLine]] = {number: [] for number in transaksi_ids}
    if found:
        for number, *line in every_row(_ROWS.hint_lines_cursor(conn, transaksi_ids=transaksi_ids)):
            found[number].append(CountedLine(*line))
    return found


def staged_hints(conn: Connection, header_id: int, header_gudang: str, transaksi_id: int, now: datetime) -> list[Hint]:
    """Of a document that is not posted, as its lines stand. now: naive WIB."""
    rows = every_row(_ROWS.staged_hint_lines_cursor(conn, header_id=header_id, header_gudang=header_gudang))
    lines = [
        CountedLine(baris, kode, lot, gudang, sistem, fisik, computed(sistem, fisik, harga).bersih)
        for baris, kode, lot, gudang, sistem, fisik, harga in rows
    ]
    return hints(lines, _elsewhere(conn, transaksi_id, now, lines))


def _elsewhere(
    conn: Connection, transaksi_id: int, instant: datetime, lines: Sequence[CountedLine]
) -> Iterator[Elsewhere]:
    items = far_off_items(lines)[:MAX_ITEMS]
    if not items:
        return
    span = timedelta(days=NEIGHBOUR_DAYS)
    neighbours: dict[int, str] = {
        row["transaksi_id"]: row["nomer_nota"]
        for row in _QUERIES.neighbours(
            conn, transaksi_id=transaksi_id, since=instant - span, until=instant + span, newest=MAX_NEIGHBOURS
        )
    }
    if not neighbours:
        return
    found: Any = _ROWS.variances_of_items(conn, transaksi_ids=list(neighbours), items=items)
    for number, kode, gudang, sistem, fisik in found:
        if is_far_off(sistem, fisik):
            yield Elsewhere(kode, gudang, neighbours[number])
