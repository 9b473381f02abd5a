"""Late movements after posting (H13): what other modules entered when a count was frozen already, dated before it.

The posted journal does not change by it, and the balance of the card shows it; but the frozen quantity did not know the
movement, so the variance that was posted is off by it. Late rows are rare: the candidates of a document's warehouses
are looked for first, and only then whether it counted their items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from everest.opname.document import wib
from everest.reports import columns as c
from everest.reports.shape import Column, Filters, Kind, Row, Source
from everest.reports.stream import wib_entered
from everest.store.database import load_queries
from everest.store.headers import header_of

_QUERIES = load_queries("reports")

COLUMNS = (
    c.NOTA,
    c.POSTING,
    c.POSTED_AT,
    Column("snapshot_wib", "Snapshot (WIB)", "Snapshot (WIB)", Kind.INSTANT),
    c.LINE,
    c.ITEM,
    c.LOT,
    c.WAREHOUSE,
    Column("nota_mutasi", "Nota mutasi", "Movement's number", Kind.CODE),
    c.SOURCE_NAME,
    Column("tanggal_mutasi", "Tanggal mutasi (WIB)", "Movement's date (WIB)", Kind.INSTANT),
    c.ENTERED_AT,
    Column("dicatat_setelah", "Dicatat setelah", "Entered after", Kind.TEXT),
    c.MOVED_IN,
    c.MOVED_OUT,
    c.VALUE,
    Column("kartu_stok_id", "Baris kartu", "Card row", Kind.INTEGER),
)
ITEMS_PER_QUERY = 1_000


def rows(source: Source, filters: Filters, posted_since: datetime | None = None) -> Iterator[Row]:
    """By nota, then by date of the movement. posted_since: only against what was posted since then (aware), whenever it
    is dated."""
    wanted = filters.as_parameters("since", "until", "nomer_nota")
    posted = None if posted_since is None else posted_since.astimezone(UTC).replace(tzinfo=None)
    for posting in list(_QUERIES.standing_postings(source.conn, posted_since=posted, **wanted)):
        yield from _late(source, filters, posting)


def _late(source: Source, filters: Filters, posting: Mapping[str, Any]) -> Iterator[Row]:
    zone = source.settings.foreign_zone
    snapshot_at = header_of(posting, zone).snapshot_at
    snapshot_wib = wib(snapshot_at)
    transaksi_id = posting["transaksi_id"]
    warehouses = [
        row["gudang_kode"]
        for row in _QUERIES.posted_warehouses(source.conn, transaksi_id=transaksi_id, gudang_kode=filters.gudang_kode)
    ]
    if not warehouses:
        return
    snapshot_foreign = snapshot_at.astimezone(zone).replace(tzinfo=None)
    candidates = list(
        _QUERIES.late_candidates(
            source.conn,
            codes=warehouses,
            snapshot_foreign=snapshot_foreign,
            foreign_second=snapshot_foreign.replace(microsecond=0),
            snapshot_wib=snapshot_wib,
            **filters.as_parameters("kode_barang", "lot"),
        )
    )
    lines = _lines_of(source, transaksi_id, sorted({row["kode_barang"] for row in candidates}))
    posted_at = posting["posted_at"].replace(tzinfo=UTC)
    for row in candidates:
        baris = lines.get(_key(row))
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


def _lines_of(source: Source, transaksi_id: int, items: list[str]) -> dict[tuple[str, str, str], int]:
    """The line of each card that the document counted, among those of these items."""
    found: dict[tuple[str, str, str], int] = {}
    for start in range(0, len(items), ITEMS_PER_QUERY):
        some = items[start : start + ITEMS_PER_QUERY]
        for row in _QUERIES.counted_keys(source.conn, transaksi_id=transaksi_id, items=some):
            found[_key(row)] = row["baris"]
    return found


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """As the stock card sees it: its collation pads with spaces."""
    return row["kode_barang"].rstrip(" "), row["lot"].rstrip(" "), row["gudang_kode"].rstrip(" ")
