"""What becomes of processes in a chaos run: killed, frozen, stopped and started, from servers down to single tasks."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from stack import processes
from stack.processes import Process
from stack.programs import Stack
from stack.roster import programs
from stack.shape import CELERY, Shape
from tests.chaos.happening import Happening, Lasting, span
from tests.chaos.world import NotNow, World

KILLABLE = tuple(program.role for program in programs(Shape(CELERY, workers=1)) if program.name != "epmd")
"""What each is; there may be several of it, or, of Celery's workers, none."""
SERVERS = ("mariadb", "rabbitmq", "postgresql")
AIRFLOW = ("airflow-scheduler", "airflow-dag-processor", "airflow-api-server")


@dataclass(frozen=True)
class Kill(Happening):
    """kill -9; the manager starts it again."""

    name: ClassVar[str] = "kill"
    weight: ClassVar[int] = 8
    program: str
    place: float = 0.0

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(rng.choice(KILLABLE), round(rng.random(), 3))

    @property
    def target(self) -> str:
        return f"process {self.program}"

    def begin(self, world: World) -> str:
        chosen = _one_of(world, self.program, self.place)
        pid = world.pid(chosen)
        os.kill(pid, signal.SIGKILL)
        return f"{chosen}, pid {pid}"


@dataclass(frozen=True)
class KillTask(Happening):
    """kill -9 of a process below the scheduler: one that runs a task, or the worker that watches over it."""

    name: ClassVar[str] = "kill-task"
    weight: ClassVar[int] = 4
    place: float
    is_worker: bool

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.random() < 0.4)

    def begin(self, world: World) -> str:
        process = _at_a_task(world, self.place, self.is_worker)
        process.send(signal.SIGKILL)
        return f"pid {process.pid}"


@dataclass(frozen=True)
class Freeze(Lasting):
    """A process that stands still, as under a debugger or on a machine that swaps, and goes on as if nothing was."""

    name: ClassVar[str] = "freeze"
    weight: ClassVar[int] = 3
    program: str
    place: float = 0.0

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 2, 25), rng.choice(KILLABLE), round(rng.random(), 3))

    @property
    def target(self) -> str:
        return f"process {self.program}"

    def begin(self, world: World) -> str:
        chosen = _one_of(world, self.program, self.place)
        world.pid(chosen)
        frozen = processes.find(world.layout, [chosen])
        world.kept[self.target] = frozen
        for process in frozen:
            process.send(signal.SIGSTOP)
        return f"{chosen}, {len(frozen)} processes"

    def end(self, world: World) -> None:
        for process in world.kept.pop(self.target, []):
            process.send(signal.SIGCONT)


@dataclass(frozen=True)
class FreezeTask(Lasting):
    """A task that stands still in the middle and goes on after others gave it up."""

    name: ClassVar[str] = "freeze-task"
    weight: ClassVar[int] = 3
    place: float

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 2, 90), round(rng.random(), 3))

    def begin(self, world: World) -> str:
        process = _at_a_task(world, self.place, is_worker=False)
        world.kept[self.target] = process
        process.send(signal.SIGSTOP)
        return f"pid {process.pid}"

    def end(self, world: World) -> None:
        if (process := world.kept.pop(self.target, None)) is not None:
            process.send(signal.SIGCONT)


def _one_of(world: World, role: str, place: float) -> str:
    """The name of one of the programs that are this, by its place from 0 to 1: the first consumer, or the standby."""
    names = [program.name for program in Stack.open(world.layout).programs if program.role == role]
    if not names:
        raise NotNow(f"this stack has no {role}")
    return names[int(place * len(names))]


def _at_a_task(world: World, place: float, is_worker: bool) -> Process:
    """Airflow's worker is a child of the scheduler, or of a Celery worker, while it works; the task is the worker's
    child."""
    hosts = [
        one.name for one in Stack.open(world.layout).programs if one.role in ("airflow-scheduler", "airflow-worker")
    ]
    found = processes.find(world.layout, hosts)
    parents = {process.parent for process in found}
    pids = {process.pid: process for process in found}
    tasks = [one for one in found if one.pid not in parents and one.parent in pids and pids[one.parent].parent in pids]
    chosen = [pids[one.parent] for one in tasks] if is_worker else tasks
    if not chosen:
        raise NotNow("no task runs")
    return chosen[int(place * len(chosen))]


@dataclass(frozen=True)
class Restart(Lasting):
    """Stopped as one should, away for a while, and started again."""

    name: ClassVar[str] = "restart"
    weight: ClassVar[int] = 4
    programs: tuple[str, ...]

    @classmethod
    def draw(cls, rng: Random) -> Self:
        some = [(one,) for one in (*SERVERS, "consumer", "relay", "reconciler")]
        return cls(span(rng, 0, 10), rng.choice([*some, AIRFLOW]))

    @property
    def target(self) -> str:
        return f"process {self.programs[0]}"

    def begin(self, world: World) -> None:
        for program in self.programs:
            world.stop(program)

    def end(self, world: World) -> None:
        for program in reversed(self.programs):
            world.start(program)
