"""From a bar of a report's chart to its rows, and from a nota in a row to its document.

A bar leads to the report `variance` with the filters that the chart had and one more: those rows, no others, add up to
the bar, to the cent (tests/pages/test_reports.py).
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode

from everest.reports import Column, Filters
from everest.reports.shape import NO_GROUP, NO_REASON

CHARTED: Mapping[str, str | None] = {
    "month": None,
    "warehouse": "gudang_kode",
    "group": "kelompok",
    "item": "kode_barang",
    "reason": "alasan",
}
"""Reports whose first column names a bar, and the filter of `variance` that stands for it; a month is days."""

NAMELESS = frozenset({NO_GROUP, NO_REASON})
"""What groups are called whose rows have nothing in the column; their filter is the empty text."""

NOTAS = frozenset({"nomer_nota", "membalik", "dibalik_oleh"})


def rows_of_a_bar(base: str, key: str, label: str | None, filters: Filters) -> str:
    """The address of the lines behind the bar `label` of the report `key`."""
    query = {name: str(value) for name, value in filters.given.items()} | {"report": "variance"}
    name = CHARTED[key]
    if name is not None:
        query[name] = "" if label is None or label in NAMELESS else label
    elif label is not None:
        first, last = _days(label)
        query |= {"since": str(max(first, filters.since or first)), "until": str(min(last, filters.until or last))}
    query.setdefault("since", "")  # everything; without it the page would ask for the last months
    return f"{base}/reports?{urlencode(query)}"


def _days(month: str) -> tuple[date, date]:
    year, number = (int(part) for part in month.split("-"))
    return date(year, number, 1), date(year, number, monthrange(year, number)[1])


def documents_of_a_row(base: str, columns: Sequence[Column], row: Sequence[Any]) -> dict[int, str]:
    """The address of the document of each nota in a row, by the place of its cell. Movements of other modules carry
    numbers that are no documents of ours: they have no posting."""
    places = {column.name: place for place, column in enumerate(columns)}
    is_foreign = "kartu_stok_id" in places and "posting_id" in places and row[places["posting_id"]] is None
    return {
        place: f"{base}/reports/document?{urlencode({'nomer_nota': row[place]})}"
        for name, place in places.items()
        if name in NOTAS and row[place] and not is_foreign
    }
