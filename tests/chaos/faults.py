"""Every fault of a chaos run. What people and other programs do is in deeds.py."""

from __future__ import annotations

from tests.chaos.by_hand import ClearTasks, MarkRun, MarkTask, PauseDag
from tests.chaos.connections import BlackHole, Cut, Forgotten, Slow
from tests.chaos.happening import Happening
from tests.chaos.processes import Freeze, FreezeTask, Kill, KillTask, Restart
from tests.chaos.strains import Clock, Deadlock, HoldRows, MemoryAlarm

FAULTS: tuple[type[Happening], ...] = (
    Kill,
    KillTask,
    Freeze,
    FreezeTask,
    Restart,
    Cut,
    BlackHole,
    Forgotten,
    Slow,
    MemoryAlarm,
    HoldRows,
    Deadlock,
    Clock,
    PauseDag,
    ClearTasks,
    MarkRun,
    MarkTask,
)
