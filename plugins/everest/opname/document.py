"""The counted document: its header and lines, what is wrong with it, when it posts, and the hash of what it says.

First stop of every posting. `validate` names everything that is wrong at once, by line and column (the rules are in
`rules.py`), so that 20,000 lines are corrected in one go. A problem is a value, never an exception. Limits and the
freshness of the count are judged elsewhere: they change while the document stays the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from everest.errors import Problem
from everest.opname.fingerprint import lines_digest
from everest.opname.header import Header as Header
from everest.opname.header import References as References
from everest.opname.lines import DECIMAL_COLUMNS as DECIMAL_COLUMNS  # also for those who read and write documents
from everest.opname.lines import LINE_COLUMNS as LINE_COLUMNS
from everest.opname.lines import code_flaw as code_flaw
from everest.opname.lines import columns, numbers
from everest.opname.rules import BEYOND_THE_HASH, NO_LINES, RULES, CountedLines
from everest.words import say

if TYPE_CHECKING:
    from pandas import DataFrame

WIB = ZoneInfo("Asia/Jakarta")
END_OF_DAY = time(23, 59, 59)

_COLUMN_ORDER = {name: index for index, name in enumerate(LINE_COLUMNS)}


def with_header_warehouse(header: Header, lines: DataFrame) -> DataFrame:
    """The lines with their effective warehouse (NULL is the header's; '' stays and is refused) and lot (NULL is '')."""
    gudang, lot = columns(lines, "gudang_kode", "lot")
    if None not in gudang and None not in lot:
        return lines
    return lines.assign(
        gudang_kode=[header.gudang_kode if code is None else code for code in gudang],
        lot=["" if code is None else code for code in lot],
    )


def wib(instant: datetime) -> datetime:
    """An aware instant as naive WIB date-time, as the columns `*_wib` hold it. Raises ValueError for a naive one."""
    if instant.utcoffset() is None:
        raise ValueError(f"{instant} has no time zone")
    return instant.astimezone(WIB).replace(tzinfo=None)


def posting_instant(header: Header) -> datetime:
    """When the document posts: naive WIB, whole seconds (the columns hold no more, and MySQL would round up).

    The date-time of the authorisation, or the header's tanggal_posting: at the snapshot's time if that is the same
    WIB day, else at the end of the day. Raises ValueError if neither is given (`validate` says so to people).
    """
    snapshot = wib(header.snapshot_at)
    if header.tanggal_posting == snapshot.date():
        return snapshot.replace(microsecond=0)
    if header.tanggal_posting is not None:
        return datetime.combine(header.tanggal_posting, END_OF_DAY)
    if header.diotorisasi_at is None:
        raise ValueError("the document is not authorised and names no posting date")
    return wib(header.diotorisasi_at).replace(microsecond=0)


def has_instant(header: Header) -> bool:
    """Whether `posting_instant` can tell it."""
    return header.tanggal_posting is not None or header.diotorisasi_at is not None


def period_of(instant: datetime) -> str:
    """The accounting month 'YYYY-MM' of a WIB date-time."""
    return f"{instant.year:04d}-{instant.month:02d}"


def period_problems(header: Header, closed_periods: frozenset[str]) -> list[Problem]:
    """Whether the month of the posting instant is closed. Nothing to say about a document without an instant."""
    if not has_instant(header):
        return []
    instant = posting_instant(header)
    period = period_of(instant)
    if period not in closed_periods:
        return []
    sentence = say("id", "count.month_closed", month=period, at=f"{instant:%Y-%m-%d %H:%M:%S}")
    return [Problem(None, "tanggal_posting", sentence)]


def validate(
    header: Header, lines: DataFrame, references: References, *, is_known_valid: bool = False
) -> list[Problem]:
    """Every reason why the document can't be posted as it stands: header first, then by line and column.

    `lines` has the POSTED_COLUMNS; warehouses may be NULL still. Empty means valid. Values that a column can't hold
    once computed are named by `variance.compute_variance`, a closed month by `period_problems`.
    is_known_valid: a document with this input_hash was valid before; look only at what the hash does not cover.
    """
    effective = with_header_warehouse(header, lines)
    baris, kode, lot, gudang = columns(effective, "baris", "kode_barang", "lot", "gudang_kode")
    quantities = (numbers(effective, name) for name in DECIMAL_COLUMNS)
    given = CountedLines(list(map(int, baris)), kode, lot, gudang, *quantities)
    rules = BEYOND_THE_HASH if is_known_valid else RULES
    problems = [problem for rule in rules for problem in rule(header, given, references)]
    return sorted(problems, key=lambda problem: (problem.baris or 0, _COLUMN_ORDER.get(problem.kolom, -1)))


def still_valid(header: Header, references: References, warehouses: Iterable[str], has_free_variance: bool) -> bool:
    """`validate` with is_known_valid finds nothing, told without the lines: from their warehouses, and from whether one
    of them has a variance at no cost."""
    return (
        not any(problem for rule in BEYOND_THE_HASH for problem in rule(header, NO_LINES, references))
        and all(references.warehouses.get(code) for code in warehouses)
        and (references.allow_zero_cost or not has_free_variance)
    )


def input_hash(header: Header, lines: DataFrame, jenis: str) -> str:
    """SHA-256 (hex) over everything that decides what is posted; the same document always has the same hash.

    Header and `fingerprint.lines_digest`, which says how lines count. Raises ValueError for a decimal that its column
    can't hold.
    """
    return input_hash_of(header, lines_digest(lines, header.gudang_kode), jenis)


def input_hash_of(header: Header, digest: str, jenis: str) -> str:
    """The same from the digest of the lines. The text is JSON, so no value can be read as two."""
    snapshot_utc = header.snapshot_at.astimezone(UTC).isoformat(timespec="microseconds")
    canonical = [
        header.transaksi_id,
        header.nomer_nota,
        jenis,
        header.gudang_kode,
        posting_instant(header).isoformat() if has_instant(header) else None,
        snapshot_utc,
        digest,
    ]
    return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).hexdigest()
