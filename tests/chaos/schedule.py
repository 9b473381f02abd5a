"""What happens in a chaos run, and when: drawn from the seed alone, so the same seed is the same schedule.

What the machine makes of it differs from run to run (who is where when the kill comes), which is why a run that found
something prints its seed and its log. Nothing here touches a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.chaos.deeds import DEEDS, FIRST
from tests.chaos.errands import ERRANDS
from tests.chaos.faults import FAULTS
from tests.chaos.happening import Happening

DEED_SECONDS = 1.0
"""Between two things that people and other programs do, on average. Two cores post about one document a second."""
ERRAND_SECONDS = 4.0
"""Between two things that happen to the runs of the waiting workflow; each is three DAG runs."""
FAULT_SECONDS = 3.0
HEAD_START_SECONDS = 2.0
"""Documents are on their way before the first fault."""


@dataclass(frozen=True)
class Entry:
    """at: seconds after the start of the run."""

    at: float
    happening: Happening

    @property
    def over_at(self) -> float:
        return self.at + self.happening.seconds

    def __str__(self) -> str:
        return f"{self.at:6.1f} s  {self.happening}"


@dataclass(frozen=True)
class Schedule:
    """Entries in order of time; none begins at `seconds` or later."""

    seed: int
    seconds: float
    entries: tuple[Entry, ...]
    only: tuple[str, ...] = ()
    """Names of the faults that it is limited to; none: all."""

    def names(self) -> Counter[str]:
        return Counter(entry.happening.name for entry in self.entries)

    def without(self, unreachable: Sequence[str]) -> Schedule:
        """Without what needs something that this run does not have, such as a proxy in front of Airflow's database."""
        kept = tuple(one for one in self.entries if not set(one.happening.needs) & set(unreachable))
        return replace(self, entries=kept)


def draw(seed: int, seconds: float, only: Sequence[str] = ()) -> Schedule:
    """only: names of faults; none = all. Deeds, errands and faults are drawn apart, so that the documents of a seed are
    the same whichever faults it is limited to."""
    unknown = set(only) - {one.name for one in FAULTS}
    if unknown:
        raise ValueError(f"no fault is called {', '.join(sorted(unknown))}")
    entries = _deeds(Random(f"deeds {seed}"), seconds, DEEDS, FIRST, DEED_SECONDS)
    entries += _deeds(Random(f"errands {seed}"), seconds, ERRANDS, ERRANDS[:1], ERRAND_SECONDS)
    entries += _faults(Random(f"faults {seed}"), seconds, only)
    return Schedule(seed, seconds, tuple(sorted(entries, key=lambda entry: entry.at)), tuple(only))


def _deeds(
    rng: Random, seconds: float, kinds: Sequence[type[Happening]], first: Sequence[type[Happening]], apart: float
) -> list[Entry]:
    weights = [one.weight for one in kinds]
    entries = [Entry(0.0, kind.draw(rng)) for kind in first]
    at = rng.expovariate(1 / apart)
    while at < seconds:
        (kind,) = rng.choices(kinds, weights)
        entries.append(Entry(round(at, 2), kind.draw(rng)))
        at += rng.expovariate(1 / apart)
    return entries


def _faults(rng: Random, seconds: float, only: Sequence[str]) -> list[Entry]:
    """One that is not over is not begun again: it would end with the first."""
    kinds = [one for one in FAULTS if not only or one.name in only]
    entries: list[Entry] = []
    busy: dict[str, float] = {}
    at = HEAD_START_SECONDS + rng.expovariate(1 / FAULT_SECONDS)
    while at < seconds:
        (kind,) = rng.choices(kinds, [one.weight for one in kinds])
        fault = kind.draw(rng)
        if busy.get(fault.target, 0.0) <= at:
            entry = Entry(round(at, 2), fault)
            busy[fault.target] = entry.over_at
            entries.append(entry)
        at += rng.expovariate(1 / FAULT_SECONDS)
    return entries
