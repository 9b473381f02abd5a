"""Smell hints: what in a count looks like a mistake of counting, told to people and never acted upon.

A variance is a fact; a hint is a guess at why: a dozen taken for a piece, a zero too many, two labels exchanged. A hint
refuses nothing and changes no amount. All limits are exact (whole ten-thousandths, no float) and generous to silence:
a report in which every line smells is not read. One pass per kind over the lines, so 100,000 lines are no trouble.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from everest.opname.amounts import MONEY_CONTEXT, QTY, ZERO_MONEY, format_number
from everest.words import Said, say, together

FACTORS = (10, 12, 24, 100, 1000)
"""Shifted decimals, and pieces to a dozen or a carton of two."""

NEAR_PERCENT = 2
"""What a ratio may be off its factor: a count in the wrong unit has a true variance of its own."""

_WHOLE = 10 ** QTY[1]

FEWEST_MIRRORED = 2 * _WHOLE
"""Two units, in ten-thousandths; that two different items are one off each way is daily business."""

FEWEST_VALUED_LINES = 3
"""Below that, one line is most of the value of every document."""

FEWEST_FAR_OFF = 2 * _WHOLE
"""Two units, in ten-thousandths; 1 instead of 2 is half, and means nothing."""

MAX_NAMED = 5
"""Places named in one sentence."""


class HintKind(StrEnum):
    """UNIT: physical and system quantity differ by a factor of FACTORS. SWAPPED_PLACE: one item, as much too much at
    one lot or warehouse as too little at another. SWAPPED_LABEL: the same with two items. NEGATIVE_STOCK: the books
    held less than nothing (H29). DOMINANT: one line is more than half of the document's value. FAR_OFF: one item is
    counted off by half or more in several warehouses."""

    UNIT = "unit"
    SWAPPED_PLACE = "swapped_place"
    SWAPPED_LABEL = "swapped_label"
    NEGATIVE_STOCK = "negative_stock"
    DOMINANT = "dominant"
    FAR_OFF = "far_off"


class CountedLine(NamedTuple):
    """A line that was counted. nilai: its value, signed, in rupiah; None while it has none."""

    baris: int
    kode_barang: str
    lot: str
    gudang_kode: str
    qty_sistem: Decimal
    qty_fisik: Decimal
    nilai: Decimal | None

    @property
    def selisih(self) -> Decimal:
        return MONEY_CONTEXT.subtract(self.qty_fisik, self.qty_sistem)


class _Steps(NamedTuple):
    """A line with its quantities as whole ten-thousandths: what is compared with what, a hundred thousand times."""

    line: CountedLine
    sistem: int
    fisik: int
    selisih: int


class Elsewhere(NamedTuple):
    """An item that another document counted far off."""

    kode_barang: str
    gudang_kode: str
    nomer_nota: str


@dataclass(frozen=True)
class Hint:
    """baris: the lines it is about. pesan: a sentence for people (Indonesian, by its key in any language)."""

    kind: HintKind
    baris: tuple[int, ...]
    pesan: Said


def hints(lines: Iterable[CountedLine], elsewhere: Iterable[Elsewhere] = ()) -> list[Hint]:
    """Every hint about the counted lines of one document, by line. Lines without variance may be left out: none is
    about them, unless their system quantity is negative. elsewhere: what `is_far_off` in other recent documents."""
    counted = [_steps(line) for line in sorted(lines, key=lambda line: line.baris)]
    found = [
        *_negative(counted),
        *_units(counted),
        *_swapped(counted),
        *_dominant(counted),
        *_far_off(counted, elsewhere),
    ]
    return sorted(found, key=lambda hint: (hint.baris, hint.kind))


def by_line(found: Iterable[Hint]) -> dict[int, str]:
    """The sentences of each line, joined."""
    texts: dict[int, list[Said]] = defaultdict(list)
    for hint in found:
        for baris in hint.baris:
            texts[baris].append(hint.pesan)
    return {baris: together(sentences) for baris, sentences in texts.items()}


def factor_between(qty_sistem: Decimal, qty_fisik: Decimal) -> int | None:
    """The factor of FACTORS by which two quantities differ, either way, within NEAR_PERCENT; None if there is none."""
    return _factor(_ten_thousandths(qty_sistem), _ten_thousandths(qty_fisik))


def _factor(sistem: int, fisik: int) -> int | None:
    smaller, larger = (sistem, fisik) if sistem < fisik else (fisik, sistem)
    if smaller <= 0 or larger * 100 < (100 - NEAR_PERCENT) * FACTORS[0] * smaller:
        return None
    for factor in FACTORS:
        if abs(larger - factor * smaller) * 100 <= NEAR_PERCENT * factor * smaller:
            return factor
    return None


def is_far_off(qty_sistem: Decimal, qty_fisik: Decimal) -> bool:
    """Whether the variance is at least half of the larger quantity, and not just a unit."""
    return _is_far(_ten_thousandths(qty_sistem), _ten_thousandths(qty_fisik))


def _is_far(sistem: int, fisik: int) -> bool:
    selisih = abs(fisik - sistem)
    return selisih >= FEWEST_FAR_OFF and 2 * selisih >= max(abs(sistem), abs(fisik))


def _ten_thousandths(quantity: Decimal) -> int:
    return int(quantity.scaleb(QTY[1], MONEY_CONTEXT))


def _steps(line: CountedLine) -> _Steps:
    sistem, fisik = _ten_thousandths(line.qty_sistem), _ten_thousandths(line.qty_fisik)
    return _Steps(line, sistem, fisik, fisik - sistem)


def _negative(lines: Sequence[_Steps]) -> Iterator[Hint]:
    for line, sistem, _, _ in lines:
        if sistem < 0:
            sentence = say("id", "hint.negative_stock", quantity=format_number(line.qty_sistem))
            yield Hint(HintKind.NEGATIVE_STOCK, (line.baris,), sentence)


def _units(lines: Sequence[_Steps]) -> Iterator[Hint]:
    for line, sistem, fisik, selisih in lines:
        factor = _factor(sistem, fisik)
        if factor is None:
            continue
        guess = say("id", "hint.other_unit" if factor in (12, 24) else "hint.decimals_or_unit")
        times = format_number(Decimal(factor))
        key = "hint.books_are_times" if selisih < 0 else "hint.count_is_times"
        yield Hint(HintKind.UNIT, (line.baris,), say("id", key, times=times, guess=guess))


def _swapped(lines: Sequence[_Steps]) -> Iterator[Hint]:
    """Pairs of the same variance with opposite signs, where there is exactly one of either: first within an item, then
    among all lines that this did not explain."""
    explained: set[int] = set()
    for plus, minus in _pairs(lines, lambda one: (one.line.kode_barang, abs(one.selisih))):
        explained |= {plus.baris, minus.baris}
        about = {"item": plus.kode_barang, "there": _place(plus), "here": _place(minus)}
        yield _pair("hint.swapped_place", HintKind.SWAPPED_PLACE, plus, minus, about)
    rest = [one for one in lines if one.line.baris not in explained and abs(one.selisih) >= FEWEST_MIRRORED]
    for plus, minus in _pairs(rest, lambda one: abs(one.selisih)):
        if plus.kode_barang == minus.kode_barang:
            continue
        about = {"item": plus.kode_barang, "other": minus.kode_barang}
        yield _pair("hint.swapped_label", HintKind.SWAPPED_LABEL, plus, minus, about)


def _pairs(lines: Iterable[_Steps], key: Callable[[_Steps], object]) -> Iterator[tuple[CountedLine, CountedLine]]:
    """Surplus and shortage of each group that is exactly these two."""
    groups: dict[object, list[_Steps]] = defaultdict(list)
    for one in lines:
        if one.selisih:
            groups[key(one)].append(one)
    for group in groups.values():
        if len(group) == 2 and (group[0].selisih > 0) != (group[1].selisih > 0):
            first, second = group
            yield (first.line, second.line) if first.selisih > 0 else (second.line, first.line)


def _pair(key: str, kind: HintKind, plus: CountedLine, minus: CountedLine, about: dict[str, str]) -> Hint:
    first, second = sorted((plus.baris, minus.baris))
    numbers = {"surplus": plus.baris, "shortage": minus.baris}
    return Hint(kind, (first, second), say("id", key, quantity=format_number(plus.selisih), **about, **numbers))


def _place(line: CountedLine) -> Said:
    if line.lot:
        return say("id", "hint.warehouse_and_lot", code=line.gudang_kode, lot=line.lot)
    return say("id", "hint.warehouse", code=line.gudang_kode)


def _dominant(lines: Sequence[_Steps]) -> Iterator[Hint]:
    valued = [(line.nilai.copy_abs(), line.baris) for line, _, _, _ in lines if line.nilai]
    if len(valued) < FEWEST_VALUED_LINES:
        return
    total = ZERO_MONEY
    for amount, _ in valued:
        total = MONEY_CONTEXT.add(total, amount)
    amount, baris = max(valued)
    if 2 * amount > total:
        yield Hint(HintKind.DOMINANT, (baris,), say("id", "hint.dominant", n=len(valued)))


def _far_off(lines: Sequence[_Steps], elsewhere: Iterable[Elsewhere]) -> Iterator[Hint]:
    here: dict[str, list[CountedLine]] = defaultdict(list)
    for line, sistem, fisik, _ in lines:
        if _is_far(sistem, fisik):
            here[line.kode_barang].append(line)
    others: dict[str, list[Elsewhere]] = defaultdict(list)
    for other in elsewhere:
        if other.kode_barang in here:
            others[other.kode_barang].append(other)
    for kode, group in here.items():
        warehouses = sorted({line.gudang_kode for line in group})
        if len(warehouses) > 1:
            sentence = say("id", "hint.far_off_here", item=kode, warehouses=_named(warehouses))
            yield Hint(HintKind.FAR_OFF, tuple(line.baris for line in group), sentence)
        places = sorted(
            {
                say("id", "hint.warehouse_in_document", code=other.gudang_kode, nota=other.nomer_nota)
                for other in others[kode]
                if other.gudang_kode not in warehouses
            }
        )
        if places:
            sentence = say("id", "hint.far_off_elsewhere", item=kode, places=_named(places))
            yield Hint(HintKind.FAR_OFF, tuple(line.baris for line in group), sentence)


def _named(names: Sequence[str]) -> list[str] | Said:
    more, named = len(names) - MAX_NAMED, list(names[:MAX_NAMED])
    return say("id", "several.more_places", names=named, n=more) if more > 0 else named


def far_off_items(lines: Iterable[CountedLine]) -> list[str]:
    """The items that are far off, in line order: what to look for in other documents."""
    return list(dict.fromkeys(line.kode_barang for line in lines if is_far_off(line.qty_sistem, line.qty_fisik)))
