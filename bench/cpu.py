"""CPU time of whole programs: a busy neighbour stretches seconds on the clock, but costs a program no CPU."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from stack import processes
from stack.layout import Layout

TICKS = os.sysconf("SC_CLK_TCK")


def of_process(pid: int, with_children: bool = False) -> float:
    """User and system time in seconds, if wanted with that of the children it has waited for; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11 : 15 if with_children else 13]) / TICKS


def by_program(layout: Layout) -> Counter[str]:
    """Seconds that each program of the stack has used, its task processes included once they have ended."""
    used: Counter[str] = Counter()
    for process in processes.find(layout):
        used[process.program] += of_process(process.pid, with_children=True)  # type: ignore[assignment]
    return used


def between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was used meanwhile, of programs that live on, largest first."""
    used = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    return dict(sorted(((n, s) for n, s in used.items() if s > 0), key=lambda one: -one[1]))
