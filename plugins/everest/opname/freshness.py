"""Whether the count still holds: what happened to the counted stock after its book quantities were frozen.

The caller reads the stock-card rows of the document's items that were *entered* after `snapshot_at`. Another opname
among them means the variance would be posted twice: the count is stale. Another module's movement dated at or before
the snapshot is late: the frozen quantity did not know it, so a person has to look. One dated later is daily business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from everest.errors import Problem
from everest.opname.document import Header, wib
from everest.opname.lines import columns
from everest.words import Said, say

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_NAMED = 5
"""Movements named in one sentence; the rest are counted."""

CLOCKS_DIFFER = timedelta(minutes=1)
"""What the sender's clock may be ahead of the database's."""


class LateMovement(NamedTuple):
    """A movement that the frozen quantity did not know: its stock-card row, and the line it concerns. tanggal_wib is
    naive WIB, created_at (when it was entered) as the row has it."""

    baris: int
    id: int
    kode_barang: str
    lot: str
    gudang_kode: str
    nomer_nota: str | None
    sumber: str | None
    tanggal_wib: datetime | None
    created_at: datetime
    masuk: Decimal
    keluar: Decimal

    def canonical(self) -> list[Any]:
        """What of it a person decides about; when exactly it was entered is not."""
        dated = None if self.tanggal_wib is None else self.tanggal_wib.isoformat()
        amounts = (str(self.masuk), str(self.keluar))
        return [self.id, self.kode_barang, self.lot, self.gudang_kode, self.nomer_nota, dated, *amounts]


class Known(NamedTuple):
    """What the books remember of a document. announced_at: when it was sent, by the latest of the instants that stand
    beside it (aware); None once somebody was told what is wrong with it, because what it says now may be newer. told:
    the first problems of every attempt, as sentences."""

    announced_at: datetime | None
    told: tuple[str, ...] = ()


class _Movement(NamedTuple):
    id: int
    nota: str | None
    is_opname: bool
    tanggal_wib: datetime | None


def future_problems(header: Header, now: datetime, known: Known) -> list[Problem]:
    """Instants of the header that had not come yet when the document said so first; most likely the sender's clock or
    zone is wrong. After a snapshot in the future no movement can have been entered, so nothing would ever look stale;
    an authorisation in the future posts in another month.

    Waiting makes neither true: an instant that was refused once is refused however late the document is run again, and
    one that lies behind the announcement is refused however late it is run first. now: aware, the database's clock.
    """
    announced = known.announced_at or now
    return [
        *_future_problem("snapshot_at", "future.snapshot_at", header.snapshot_at, now, announced, known),
        # A document may be announced before it is authorised.
        *_future_problem("diotorisasi_at", "future.diotorisasi_at", header.diotorisasi_at, now, now, known),
    ]


def _future_problem(
    kolom: str, key: str, given: datetime | None, now: datetime, announced: datetime, known: Known
) -> Iterator[Problem]:
    if given is None:
        return

    def claim() -> Said:
        """How an attempt remembers which instant it refused: these words begin its sentence, in every release."""
        return say("id", key, at=f"{wib(given):%Y-%m-%d %H:%M:%S}")

    if given > now + CLOCKS_DIFFER:
        sentence = say("id", "future.now", claim=claim())
    elif known.told and _begins_one(claim(), known.told):
        sentence = say("id", "future.when_looked_at", claim=claim())
    elif given > announced + CLOCKS_DIFFER:
        sentence = say("id", "future.when_sent", claim=claim(), sent=f"{wib(announced):%Y-%m-%d %H:%M:%S}")
    else:
        return
    yield Problem(None, kolom, sentence)


def _begins_one(claim: str, sentences: tuple[str, ...]) -> bool:
    return any(sentence.startswith(claim) for sentence in sentences)


def stale_problems(header: Header, lines: DataFrame, movements: DataFrame) -> list[Problem]:
    """Lines whose stock another opname (or its reversal) has posted since the snapshot. `lines` with effective
    warehouses; rows of the document's own nota do not count."""
    return _problems(
        lines,
        movements,
        _is_of_another_count(header),
        "count.stale_line",
    )


def late_movement_problems(header: Header, lines: DataFrame, movements: DataFrame) -> list[Problem]:
    """Lines for which another module entered, after the snapshot, a movement dated (WIB) at or before it."""
    return _problems(
        lines,
        movements,
        _is_late(header),
        "count.late_line",
    )


def late_movements(header: Header, lines: DataFrame, movements: DataFrame) -> list[LateMovement]:
    """The movements that `late_movement_problems` names, all of them, by id."""
    snapshot = wib(header.snapshot_at)
    if not any(_is_late(header)(movement) for _, movement in _each(movements)):
        return []  # as nearly always: no line has to be looked at
    numbers: dict[tuple[str, str, str], int] = {}
    for baris, *codes in zip(*columns(lines, "baris", "kode_barang", "lot", "gudang_kode"), strict=True):
        numbers.setdefault(_key(*codes), int(baris))
    found = []
    names = ("id", "kode_barang", "lot", "gudang_kode", "nomer_nota", "sumber", "tanggal_wib", "created_at")
    for is_opname, *values in zip(*columns(movements, "is_opname", *names, "masuk", "keluar"), strict=True):
        number, kode, lot, gudang, nota, sumber, tanggal, entered, masuk, keluar = values
        baris = numbers.get(_key(kode, lot, gudang))
        if baris is not None and not is_opname and _is_dated_by(tanggal, snapshot):
            found.append(
                LateMovement(
                    baris,
                    int(number),
                    kode,
                    lot,
                    gudang,
                    nota,
                    sumber,
                    tanggal,
                    entered,
                    Decimal(masuk or 0),
                    Decimal(keluar or 0),
                )
            )
    return sorted(found, key=lambda movement: movement.id)


def are_daily_business(header: Header, movements: DataFrame) -> bool:
    """Whether none of the movements would matter, whichever items were counted: neither function above names a line."""
    matters = (_is_of_another_count(header), _is_late(header))
    return not any(is_so(movement) for _, movement in _each(movements) for is_so in matters)


def _is_of_another_count(header: Header) -> Callable[[_Movement], bool]:
    # As MySQL compares them: an older worker may have written the nota with blanks behind it.
    own = header.nomer_nota.rstrip(" ")
    return lambda movement: movement.is_opname and (movement.nota or "").rstrip(" ") != own


def _is_late(header: Header) -> Callable[[_Movement], bool]:
    snapshot = wib(header.snapshot_at)
    return lambda movement: not movement.is_opname and _is_dated_by(movement.tanggal_wib, snapshot)


def _is_dated_by(tanggal_wib: datetime | None, snapshot: datetime) -> bool:
    """A zero date, which an application with an empty sql_mode writes and which is read as none, lies before every
    snapshot, as in the report of late movements: nobody knows better, so a person has to look."""
    return tanggal_wib is None or tanggal_wib <= snapshot


def _each(movements: DataFrame) -> Iterator[tuple[tuple[str, str, str], _Movement]]:
    """The key and the movement of every row."""
    names = ("kode_barang", "lot", "gudang_kode", "id", "nomer_nota", "is_opname", "tanggal_wib")
    for kode, lot, gudang, number, nota, is_opname, tanggal in zip(*columns(movements, *names), strict=True):
        yield _key(kode, lot, gudang), _Movement(int(number), nota, bool(is_opname), tanggal)


def _problems(
    lines: DataFrame, movements: DataFrame, matters: Callable[[_Movement], bool], sentence: str
) -> list[Problem]:
    by_key: dict[tuple[str, str, str], list[_Movement]] = defaultdict(list)
    for key, movement in _each(movements):
        if matters(movement):
            by_key[key].append(movement)
    if not by_key:
        return []
    keys = zip(*columns(lines, "baris", "kode_barang", "lot", "gudang_kode"), strict=True)
    return [
        Problem(int(baris), "qty_sistem", say("id", sentence, movements=_named(by_key[key])))
        for baris, *codes in keys
        if (key := _key(*codes)) in by_key
    ]


def _key(kode: str | None, lot: str | None, gudang: str | None) -> tuple[str, str, str]:
    """As the stock card sees it: its collation pads with spaces, so another module's 'A1 ' moves the stock of 'A1'."""
    return (kode or "").rstrip(" "), (lot or "").rstrip(" "), (gudang or "").rstrip(" ")


def _named(movements: list[_Movement]) -> list[Said] | Said:
    movements = sorted(movements, key=lambda movement: movement.id)
    named = [_name(movement) for movement in movements[:MAX_NAMED]]
    more = len(movements) - len(named)
    return say("id", "several.more_movements", names=named, n=more) if more else named


def _name(movement: _Movement) -> Said:
    about: dict[str, Any] = {"number": movement.id, **({"nota": movement.nota} if movement.nota else {})}
    if movement.tanggal_wib is None:
        return say("id", "count.movement_undated" if movement.nota else "count.movement_of_none_undated", **about)
    at = f"{movement.tanggal_wib:%Y-%m-%d %H:%M:%S}"
    return say("id", "count.movement" if movement.nota else "count.movement_of_none", at=at, **about)
