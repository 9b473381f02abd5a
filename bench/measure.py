"""What a measurement is: runs of ours and of its floor, side by side, and the ratio of their medians."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """One measurement of ours and the one of the floor beside it, in the unit of the result."""

    value: float
    floor: float | None = None

    def as_json(self) -> dict[str, float]:
        return {name: round(number, 6) for name, number in asdict(self).items() if number is not None}


@dataclass(frozen=True)
class Result:
    """One line of the table and of the JSON.

    value, floor: medians in `unit`. ratio: what `must` and `aim` bound; value / floor, or the absolute value where
    there is no floor. larger_is_better: the bounds are lower ones. note: what a reader has to know to read the figure
    right. must and aim are None where a figure is only reported.
    """

    id: str
    what: str
    unit: str
    floor_what: str
    value: float
    floor: float | None
    ratio: float
    must: float | None
    aim: float | None
    larger_is_better: bool = False
    runs: Sequence[Run] = field(default_factory=tuple)
    note: str = ""

    @property
    def must_met(self) -> bool | None:
        return self._met(self.must)

    @property
    def aim_met(self) -> bool | None:
        return self._met(self.aim)

    def _met(self, bound: float | None) -> bool | None:
        if bound is None:
            return None
        return self.ratio >= bound if self.larger_is_better else self.ratio <= bound

    @property
    def bounds(self) -> str:
        if self.must is None:
            return "reported"
        sign = ">=" if self.larger_is_better else "<="
        return f"{sign} {self.must:g}" + (f" ({sign} {self.aim:g})" if self.aim is not None else "")

    def as_json(self, machine: dict[str, Any]) -> dict[str, Any]:
        return asdict(self) | {
            "value": round(self.value, 6),
            "floor": None if self.floor is None else round(self.floor, 6),
            "ratio": round(self.ratio, 4),
            "runs": [run.as_json() for run in self.runs],
            "must_met": self.must_met,
            "aim_met": self.aim_met,
            "machine": machine,
        }


def against_floor(id: str, what: str, unit: str, floor_what: str, runs: Sequence[Run], **bounds: Any) -> Result:
    """The result of runs that each have their floor: medians, and the ratio of the medians."""
    value = statistics.median(run.value for run in runs)
    floor = statistics.median(run.floor for run in runs if run.floor is not None)
    return Result(id, what, unit, floor_what, value, floor, value / floor, runs=tuple(runs), **bounds)


def side_by_side(count: int, ours: Callable[[int], T], floor: Callable[[int], T]) -> list[tuple[T, T]]:
    """Pairs (ours, floor). Each side is first in turn, so that neither always has the warm caches."""
    pairs = []
    for index in range(count):
        if index % 2 == 0:
            value = ours(index)
            pairs.append((value, floor(index)))
        else:
            bottom = floor(index)
            pairs.append((ours(index), bottom))
    return pairs


def spread(numbers: Sequence[float]) -> str:
    """Smallest to largest."""
    return f"{show(min(numbers))}-{show(max(numbers))}"


def show(number: float) -> str:
    """Three significant digits, without an exponent."""
    digits = 2 if number == 0 else max(0, 2 - math.floor(math.log10(abs(number))))
    return f"{number:.{min(digits, 4)}f}"


def percentile(numbers: Sequence[float], share: float) -> float:
    """The smallest measured number that at least `share` of them do not exceed; nothing is interpolated."""
    ordered = sorted(numbers)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """How time grows with size: the slope in log-log, by least squares. 1 is linear."""
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(s) for s in seconds]).slope


def machine() -> dict[str, Any]:
    """Where it was measured, and how busy the machine was when it began."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "load_1min_before": round(os.getloadavg()[0], 2),
    }
