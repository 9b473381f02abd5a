"""The counts that a chaos run submits, drawn from its seed: mostly good ones, and of each kind that must be refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Literal

from tests.integration.books.ledger import Count

Kind = Literal["good", "uncounted", "free", "over limit", "rival", "late"]
KINDS: dict[Kind, int] = {"good": 60, "uncounted": 8, "free": 6, "over limit": 8, "rival": 12, "late": 6}
"""Weights. uncounted: a line was not counted, free: it cost nothing; both are refused. over limit: a person decides.
rival: counts an item that others count too; whoever posts second is stale. late: a movement was entered afterwards
that is dated before the snapshot; a person decides."""

WAREHOUSES = ("GD-CHAOS-A", "GD-CHAOS-B")
LIMIT = Decimal(1_000_000_000)
"""Rupiah, of a document in these warehouses; no other line comes near it."""
MOST_LINES = 300
RIVALRIES = 4


@dataclass(frozen=True)
class Draft:
    """A document before it has a name: item codes are completed by the run, so that runs never meet."""

    number: int
    kind: Kind
    gudang: str
    lines: tuple[Count, ...]

    @property
    def is_refused(self) -> bool:
        return self.kind in ("uncounted", "free")

    @property
    def needs_a_person(self) -> bool:
        return self.kind in ("over limit", "late")


def draw(rng: Random, number: int) -> Draft:
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    gudang = rng.choice(WAREHOUSES)
    longest = rng.choices((5, 40, MOST_LINES), (6, 3, 1))[0]
    lines = [_line(rng, f"{number}-{place}", gudang) for place in range(rng.randint(1, longest))]
    place = rng.randrange(len(lines))
    code = lines[place].kode_barang
    match kind:
        case "uncounted":
            lines[place] = Count(code, gudang, Decimal(5), None, Decimal(100))
        case "free":
            lines[place] = Count(code, gudang, Decimal(5), Decimal(7), Decimal(0))
        case "over limit":
            lines[place] = Count(code, gudang, Decimal(0), Decimal(1_000), 2 * LIMIT / 1_000)
        case "rival":
            where = WAREHOUSES[0]
            lines[place] = Count(f"R{rng.randrange(RIVALRIES)}", where, Decimal(9), Decimal(4), Decimal("12.5"))
        case "late":
            lines[place] = Count(code, gudang, Decimal(8), Decimal(6), Decimal(250))
        case "good":
            pass
    return Draft(number, kind, gudang, tuple(lines))


def late_line(lines: Sequence[Count]) -> Count:
    """Of a late document, the line whose item moved."""
    return next(line for line in lines if (line.sistem, line.fisik) == (Decimal(8), Decimal(6)))


def _line(rng: Random, code: str, gudang: str) -> Count:
    sistem = Decimal(rng.randint(-20, 2_000)).scaleb(-rng.choice((0, 0, 2, 4)))
    fisik = (
        max(sistem, Decimal(0))
        if rng.random() < 0.3
        else Decimal(rng.randint(0, 2_000)).scaleb(-rng.choice((0, 0, 2, 4)))
    )
    cost = Decimal(rng.randint(1, 1_000)).scaleb(-rng.choice((0, 2, 6)))
    return Count(code, gudang, sistem, fisik, cost)
