"""Late movements after posting (H13): what other modules entered when a count was frozen already, dated before it.

The posted journal does not change by it, and the balance of the card shows it; but the frozen quantity did not know the
movement, so the variance that was posted is off by it. Late rows are rare: the candidates of the warehouses of some
documents are looked for first, and only then whether one of them counted their items.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple, TypeVar

from everest.opname.document import WIB, wib
from everest.reports import columns as c
from everest.reports.shape import Column, Filters, Kind, Row, Source
from everest.reports.stream import streamed, wib_entered
from everest.store.database import load_queries
from everest.store.headers import snapshot_of

_QUERIES = load_queries("reports")
_STREAMS = load_queries("reports", streaming=True)
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
DOCUMENTS_PER_QUERY = 5_000
CLOCK_CHANGE = timedelta(hours=2)
"""How far the zone of other programs may once go back: its times are in order but for that."""
_NOTHING = timedelta(0)
_UNDATED = datetime(1, 1, 2)
"""Before everything; a day more than the least, because it has to be said in UTC, too."""
_Key = tuple[str, str, str]
_Movement = Mapping[str, Any]
_T = TypeVar("_T")


_Frozen = tuple[datetime, datetime, int]
"""A posted count and its snapshot, naive: UTC, in the zone that other programs write in, and its transaksi_id. There
may be as many as there were counts: nothing else of them is held, and nothing that can wait is made of them."""


class _Suspect(NamedTuple):
    """A movement that some snapshot did not know: when it is dated, when it was entered, and which one it is."""

    dated: datetime
    entered: datetime
    id: int


class _Doubt(NamedTuple):
    """A count, and movements in its warehouses that its snapshot did not know; of its items or not."""

    frozen: _Frozen
    suspects: list[_Suspect]


def rows(source: Source, filters: Filters, posted_since: datetime | None = None) -> Iterator[Row]:
    """By nota, then by date of the movement. posted_since: only against what was posted since then (aware), whenever it
    is dated."""
    doubts = _doubts(source, filters, _places(source, filters, posted_since))
    postings = [
        posting
        for some in _parts(list(doubts), DOCUMENTS_PER_QUERY)
        for posting in _QUERIES.postings_in_doubt(source.conn, transaksi_ids=some)
    ]
    postings.sort(key=lambda posting: (posting["tanggal_wib"], posting["posting_id"]))
    for part in _parts(postings, DOCUMENTS_PER_QUERY):
        doubted = {posting["transaksi_id"]: doubts[posting["transaksi_id"]] for posting in part}
        movements = _movements_of(source, doubted)
        lines = _lines_of(source, list(doubted), movements)
        for posting in part:
            yield from _late(source, posting, doubts[posting["transaksi_id"]], movements, lines)


def _parts(many: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(many), size):
        yield many[start : start + size]


def _late(
    source: Source,
    posting: Mapping[str, Any],
    doubt: _Doubt,
    movements: Mapping[int, _Movement],
    lines: Mapping[tuple[int, _Key], int],
) -> Iterator[Row]:
    """What came too late for one posting, of what might have."""
    zone = source.settings.foreign_zone
    posted_at = posting["posted_at"].replace(tzinfo=UTC)
    for dated, entered, number in sorted(doubt.suspects, key=lambda suspect: (suspect.dated, suspect.id)):
        row = movements[number]
        baris = lines.get((posting["transaksi_id"], _key(row)))
        if baris is None:
            continue
        yield [
            posting["nota"],
            posting["posting_id"],
            posting["tanggal_wib"],
            _wib(doubt.frozen[0]).replace(microsecond=0),
            baris,
            row["kode_barang"],
            row["lot"],
            row["gudang_kode"],
            row["nomer_nota"],
            row["sumber"],
            None if dated == _UNDATED else dated,
            wib_entered(entered, False, source.settings),
            "posting" if entered.replace(tzinfo=zone) > posted_at else "snapshot",
            row["masuk"],
            row["keluar"],
            row["nilai"],
            number,
        ]


def _places(source: Source, filters: Filters, posted_since: datetime | None) -> dict[str, list[_Frozen]]:
    """By warehouse, the counts of it, in the order of their snapshots."""
    zone = source.settings.foreign_zone
    posted = None if posted_since is None else posted_since.astimezone(UTC).replace(tzinfo=None)
    wanted = filters.as_parameters("since", "until", "nomer_nota", "gudang_kode")
    places: dict[str, list[_Frozen]] = defaultdict(list)
    several: dict[int, _Frozen] = {}
    counts = _STREAMS.frozen_counts_cursor(source.conn, posted_since=posted, **wanted)
    is_utc = str(zone) == "UTC"
    for number, snapshot_at, written_in, first, last in streamed(counts):
        at = snapshot_of(snapshot_at, written_in, zone)
        frozen = (at, at if is_utc else _in_zone(at, zone), number)
        if first == last:
            places[first.rstrip(" ")].append(frozen)
        else:
            several[number] = frozen
    for some in _parts(list(several), DOCUMENTS_PER_QUERY):
        for row in _QUERIES.posted_warehouses(source.conn, transaksi_ids=some):
            places[row["gudang_kode"].rstrip(" ")].append(several[row["transaksi_id"]])
    for counted in places.values():
        counted.sort()
    return places


def _in_zone(utc: datetime, zone: tzinfo) -> datetime:
    """A naive UTC instant in another zone, naive. `replace` would take ten times as long over a zone."""
    there = datetime.combine(utc.date(), utc.time(), UTC).astimezone(zone)
    return datetime.combine(there.date(), there.time())


def _wib(utc: datetime) -> datetime:
    return wib(utc.replace(tzinfo=UTC))


def _doubts(source: Source, filters: Filters, places: Mapping[str, list[_Frozen]]) -> dict[int, _Doubt]:
    """By document. Of all movements only place and times are looked at, and held are those that some snapshot did not
    know: few."""
    found: dict[int, _Doubt] = {}
    if not places:
        return found
    by_instant = {code: [utc for utc, _, _ in counted] for code, counted in places.items()}
    movements = _STREAMS.late_candidates_cursor(
        source.conn,
        codes=list(places),
        earliest=min(foreign for counted in places.values() for _, foreign, _ in counted).replace(microsecond=0),
        snapshot_wib=_wib(max(instants[-1] for instants in by_instant.values())),
        **filters.as_parameters("kode_barang", "lot"),
    )
    instant, offset = datetime.fromisoformat, WIB.utcoffset
    for number, code, written, entered_as in streamed(movements):
        try:
            dated = instant(written)
        except ValueError:  # a zero date, which an application without a strict sql_mode writes
            dated = _UNDATED
        entered = instant(entered_as)
        latest = entered + CLOCK_CHANGE
        place = code.rstrip(" ")
        counted = places[place]
        # From the first snapshot that the movement is dated before to the last one that it was entered after: few.
        for nth in range(bisect_left(by_instant[place], dated - (offset(dated) or _NOTHING)), len(counted)):
            frozen = counted[nth]
            _, foreign, transaksi_id = frozen
            if foreign > latest:
                break
            if _is_after(entered, foreign):
                doubt = found.setdefault(transaksi_id, _Doubt(frozen, []))
                doubt.suspects.append(_Suspect(dated, entered, number))
    return found


def _is_after(created_at: datetime, snapshot: datetime) -> bool:
    """As `movements_since` (books.sql) has it: a row without fractions was stamped by a clock of whole seconds,
    somewhere in its second."""
    return created_at > snapshot or created_at == snapshot.replace(microsecond=0) != snapshot


def _movements_of(source: Source, doubts: Mapping[int, _Doubt]) -> dict[int, _Movement]:
    """The movements that these counts did not know, whole."""
    ids = sorted({suspect.id for doubt in doubts.values() for suspect in doubt.suspects})
    return {
        row["id"]: row for some in _parts(ids, ITEMS_PER_QUERY) for row in _QUERIES.movements(source.conn, ids=some)
    }


def _lines_of(source: Source, documents: list[int], movements: Mapping[int, _Movement]) -> dict[tuple[int, _Key], int]:
    """The line of each card that a document counted, among those of the items that moved."""
    found: dict[tuple[int, _Key], int] = {}
    items = sorted({row["kode_barang"] for row in movements.values()})
    for some in _parts(items, ITEMS_PER_QUERY):
        for row in _QUERIES.counted_keys(source.conn, transaksi_ids=documents, items=some):
            found[row["transaksi_id"], _key(row)] = row["baris"]
    return found


def _key(row: Mapping[str, Any]) -> _Key:
    """As the stock card sees it: its collation pads with spaces."""
    return row["kode_barang"].rstrip(" "), row["lot"].rstrip(" "), row["gudang_kode"].rstrip(" ")
