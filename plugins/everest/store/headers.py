"""A header row as the domain reads it: naive instants of the row's zone become aware UTC.

Whatever stands in the row, a header comes out of it: what cannot be read becomes a flaw that `validate` names. Raising
here would end a document without a recorded reason, because recording it reads the header again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from everest.errors import Problem
from everest.opname.document import Header
from everest.words import say

# What MySQL promises to hold, less a day on either side: the same instant has to be written in every zone.
EARLIEST = datetime(1000, 1, 2)
LATEST = datetime(9999, 12, 30)

_DATES = ("tanggal_opname", "tanggal_posting")


def header_of(row: Mapping[str, Any], foreign_zone: tzinfo) -> Header:
    """`foreign_zone`: of rows that name none, because another program wrote them."""
    flaws: list[Problem] = []
    zone = _zone(row["zona_waktu"], foreign_zone, flaws)

    def instant(name: str) -> datetime | None:
        value = row[name]
        if value is None:
            return None
        if not EARLIEST <= value <= LATEST:
            flaws.append(Problem(None, name, say("id", "header.no_time", value=f"{value:%Y-%m-%d %H:%M:%S}")))
        return _aware(value, zone)

    for name in _DATES:
        value: date | None = row[name]
        if value is not None and not EARLIEST.date() <= value <= LATEST.date():
            flaws.append(Problem(None, name, say("id", "header.no_date", value=str(value))))
    snapshot = instant("snapshot_at") or instant("created_at")
    if snapshot is None:
        # An application with an empty sql_mode can leave '0000-00-00', which is read as none.
        flaws.append(Problem(None, "created_at", say("id", "header.no_snapshot")))
        snapshot = EARLIEST.replace(tzinfo=UTC)
    if row["tanggal_opname"] is None:
        flaws.append(Problem(None, "tanggal_opname", say("id", "header.no_day")))
    purged_at = row.get("baris_dihapus_at")
    return Header(
        header_id=row["id"],
        transaksi_id=row["transaksi_id"],
        nomer_nota=row["nomer_nota"],
        gudang_kode=row["gudang_kode"],
        tanggal_opname=row["tanggal_opname"],
        tanggal_posting=row["tanggal_posting"],
        snapshot_at=snapshot,
        otorisasi_level=row["otorisasi_level"],
        diotorisasi_oleh=row["diotorisasi_oleh"],
        diotorisasi_at=instant("diotorisasi_at"),
        dibuat_oleh=row["dibuat_oleh"],
        flaws=tuple(flaws),
        lines_purged_at=None if purged_at is None else purged_at.replace(tzinfo=UTC),
    )


def snapshot_of(written: str | None, zona_waktu: str | None, foreign_zone: tzinfo) -> datetime:
    """`snapshot_at` of a header (naive UTC), of what the database writes for it: for whoever looks at very many."""
    try:
        frozen = datetime.fromisoformat(written or "")
    except ValueError:
        return EARLIEST
    if zona_waktu == "UTC" and EARLIEST <= frozen <= LATEST:
        return frozen
    return _aware(frozen, _zone(zona_waktu, foreign_zone, [])).replace(tzinfo=None)


def _aware(value: datetime, zone: tzinfo) -> datetime:
    if not EARLIEST <= value <= LATEST:
        value = min(max(value, EARLIEST), LATEST)
    return value.replace(tzinfo=zone).astimezone(UTC)


def _zone(name: str | None, foreign_zone: tzinfo, flaws: list[Problem]) -> tzinfo:
    if name is None:
        return foreign_zone
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        flaws.append(Problem(None, "zona_waktu", say("id", "header.no_zone", name=repr(name))))
        return foreign_zone
