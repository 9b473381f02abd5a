"""What becomes of processes in a chaos run: killed, frozen, stopped and started, from servers down to single tasks."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from stack import processes
from stack.processes import Process
from stack.roster import programs
from stack.shape import Shape
from tests.chaos.happening import Happening, Lasting, span
from tests.chaos.world import NotNow, World

KILLABLE = tuple(program.name for program in programs(Shape()) if program.name != "epmd")
SERVERS = ("mariadb", "rabbitmq", "postgresql")
AIRFLOW = ("airflow-scheduler", "airflow-dag-processor", "airflow-api-server")


@dataclass(frozen=True)
class Kill(Happening):
    """kill -9; the manager starts it again."""

    name: ClassVar[str] = "kill"
    weight: ClassVar[int] = 8
    program: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(rng.choice(KILLABLE))

    @property
    def target(self) -> str:
        return f"process {self.program}"

    def begin(self, world: World) -> str:
        pid = world.pid(self.program)
        os.kill(pid, signal.SIGKILL)
        return f"pid {pid}"


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
        process = _below_the_scheduler(world, self.place, self.is_worker)
        process.send(signal.SIGKILL)
        return f"pid {process.pid}"


@dataclass(frozen=True)
class Freeze(Lasting):
    """A process that stands still, as under a debugger or on a machine that swaps, and goes on as if nothing was."""

    name: ClassVar[str] = "freeze"
    weight: ClassVar[int] = 3
    program: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 2, 25), rng.choice(KILLABLE))

    @property
    def target(self) -> str:
        return f"process {self.program}"

    def begin(self, world: World) -> str:
        world.pid(self.program)
        frozen = processes.find(world.layout, [self.program])
        world.kept[self.target] = frozen
        for process in frozen:
            process.send(signal.SIGSTOP)
        return f"{len(frozen)} processes"

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
        process = _below_the_scheduler(world, self.place, is_worker=False)
        world.kept[self.target] = process
        process.send(signal.SIGSTOP)
        return f"pid {process.pid}"

    def end(self, world: World) -> None:
        if (process := world.kept.pop(self.target, None)) is not None:
            process.send(signal.SIGCONT)


def _below_the_scheduler(world: World, place: float, is_worker: bool) -> Process:
    """Airflow's worker is a child of the scheduler while it works; the task is the worker's child."""
    found = processes.find(world.layout, ["airflow-scheduler"])
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
