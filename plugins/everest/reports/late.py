"""Late movements after posting (H13): what other modules entered when a count was frozen already, dated before it.

The posted journal does not change by it, and the balance of the card shows it; but the frozen quantity did not know the
movement, so the variance that was posted is off by it. Late rows are rare: the candidates of the warehouses of some
documents are looked for first, and only then whether one of them counted their items.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from everest.opname.document import wib
from everest.reports import columns as c
from everest.reports.shape import Column, Filters, Kind, Row, Source
from everest.reports.stream import streamed, wib_entered
from everest.store.database import load_queries
from everest.store.headers import header_of

_QUERIES = load_queries("reports")
_STREAMS = load_queries("reports", streaming=True)
_MOVEMENT = (
    "id", "kode_barang", "lot", "gudang_kode", "nomer_nota", "sumber", "tanggal_wib", "created_at", "masuk", "keluar",
    "nilai",
)  # fmt: skip
"""What `late_candidates` gives, in its order."""

COLUMNS = (
    c.NOTA,
    c.POSTING,
    c.POSTED_AT,
    Column.named("snapshot_wib", Kind.INSTANT),
    c.LINE,
    c.ITEM,
    c.LOT,
    c.WAREHOUSE,
    Column.named("nota_mutasi", Kind.CODE),
    c.SOURCE_NAME,
    Column.named("tanggal_mutasi", Kind.INSTANT),
    c.ENTERED_AT,
    Column.named("dicatat_setelah", Kind.TEXT),
    c.MOVED_IN,
    c.MOVED_OUT,
    c.VALUE,
    Column.named("kartu_stok_id", Kind.INTEGER),
)
ITEMS_PER_QUERY = 1_000
POSTINGS_PER_PAGE = 5_000
CLOCK_CHANGE = timedelta(hours=2)
"""How far the zone of other programs may once go back: its times are in order but for that."""
_Key = tuple[str, str, str]


class _Frozen(NamedTuple):
    """A posted count and its snapshot, in the two zones that movements are written in."""

    posting: Mapping[str, Any]
    foreign: datetime
    wib: datetime


def rows(source: Source, filters: Filters, posted_since: datetime | None = None) -> Iterator[Row]:
    """By nota, then by date of the movement. posted_since: only against what was posted since then (aware), whenever it
    is dated."""
    wanted = filters.as_parameters("since", "until", "nomer_nota")
    posted = None if posted_since is None else posted_since.astimezone(UTC).replace(tzinfo=None)
    postings = list(_QUERIES.standing_postings(source.conn, posted_since=posted, **wanted))
    for start in range(0, len(postings), POSTINGS_PER_PAGE):
        yield from _late(source, filters, postings[start : start + POSTINGS_PER_PAGE])


def _late(source: Source, filters: Filters, postings: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Of neighbours in time: the movements of their days are read once for all of them."""
    zone = source.settings.foreign_zone
    counts: dict[int, _Frozen] = {}
    for posting in postings:
        at = header_of(posting, zone).snapshot_at
        counts[posting["transaksi_id"]] = _Frozen(posting, at.astimezone(zone).replace(tzinfo=None), wib(at))
    candidates = _candidates(source, filters, counts)
    lines = _lines_of(source, candidates)
    for number, (posting, _, snapshot_wib) in counts.items():
        posted_at = posting["posted_at"].replace(tzinfo=UTC)
        for row in candidates.get(number, ()):
            baris = lines.get((number, _key(row)))
            if baris is None:
                continue
            after = "posting" if row["created_at"].replace(tzinfo=zone) > posted_at else "snapshot"
            yield [
                posting["nota"],
                posting["posting_id"],
                posting["tanggal_wib"],
                snapshot_wib.replace(microsecond=0),
                baris,
                row["kode_barang"],
                row["lot"],
                row["gudang_kode"],
                row["nomer_nota"],
                row["sumber"],
                row["tanggal_wib"],
                wib_entered(row["created_at"], False, source.settings),
                after,
                row["masuk"],
                row["keluar"],
                row["nilai"],
                row["id"],
            ]


def _candidates(source: Source, filters: Filters, counts: Mapping[int, _Frozen]) -> dict[int, list[dict[str, Any]]]:
    """By document, in the order of their dates: movements in its warehouses that its snapshot did not know."""
    places: dict[str, list[_Frozen]] = defaultdict(list)
    for row in _QUERIES.posted_warehouses(source.conn, transaksi_ids=list(counts), gudang_kode=filters.gudang_kode):
        places[row["gudang_kode"].rstrip(" ")].append(counts[row["transaksi_id"]])
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    if not places:
        return found
    for frozen in places.values():
        frozen.sort(key=_day_of)
    movements = _STREAMS.late_candidates_cursor(
        source.conn,
        codes=list(places),
        earliest=min(count.foreign for count in counts.values()).replace(microsecond=0),
        snapshot_wib=max(count.wib for count in counts.values()),
        **filters.as_parameters("kode_barang", "lot"),
    )
    for values in streamed(movements):
        row = dict(zip(_MOVEMENT, values, strict=True))
        frozen = places[row["gudang_kode"].rstrip(" ")]
        latest = row["created_at"] + CLOCK_CHANGE
        # From the first snapshot that the movement is dated before to the last one that it was entered after: few.
        for place in range(bisect_left(frozen, row["tanggal_wib"], key=_day_of), len(frozen)):
            if frozen[place].foreign > latest:
                break
            if _is_after(row["created_at"], frozen[place].foreign):
                found[frozen[place].posting["transaksi_id"]].append(row)
    return found


def _day_of(frozen: _Frozen) -> datetime:
    return frozen.wib


def _is_after(created_at: datetime, snapshot: datetime) -> bool:
    """As `movements_since` (books.sql) has it: a row without fractions was stamped by a clock of whole seconds,
    somewhere in its second."""
    return created_at > snapshot or created_at == snapshot.replace(microsecond=0) != snapshot


def _lines_of(source: Source, candidates: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[tuple[int, _Key], int]:
    """The line of each card that a document counted, among those of the items that moved."""
    found: dict[tuple[int, _Key], int] = {}
    items = sorted({row["kode_barang"] for rows in candidates.values() for row in rows})
    for start in range(0, len(items), ITEMS_PER_QUERY):
        some = items[start : start + ITEMS_PER_QUERY]
        for row in _QUERIES.counted_keys(source.conn, transaksi_ids=list(candidates), items=some):
            found[row["transaksi_id"], _key(row)] = row["baris"]
    return found


def _key(row: Mapping[str, Any]) -> _Key:
    """As the stock card sees it: its collation pads with spaces."""
    return row["kode_barang"].rstrip(" "), row["lot"].rstrip(" "), row["gudang_kode"].rstrip(" ")
