"""What else a server has to bear in a chaos run: the memory alarm, sessions that hold locks, a clock that jumps."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

import MySQLdb

from tests.chaos.happening import Happening, Lasting, span
from tests.chaos.rig import CLOCKED
from tests.chaos.world import NotNow, World

WATERMARK = "vm_memory_monitor:get_vm_memory_high_watermark()."
LOCKED = {
    "warehouses": "SELECT gudang_kode FROM gudang FOR UPDATE",
    "jobs": "SELECT id FROM rabbit_publish_shadow WHERE worker_status IN ('PENDING', 'PROCESSING') FOR UPDATE",
    "runs": "SELECT id FROM workflow_runs WHERE status = 'running' FOR UPDATE",
    "headers": "SELECT id FROM so_headers_staging FOR UPDATE",
    "outbox": "SELECT id FROM outbox WHERE published_at IS NULL FOR UPDATE",
    "stock card": "SELECT id FROM kartu_stok FOR UPDATE",
}
"""What another session may hold, from the end of the lock order as well as from its beginning."""
DEADLOCK, LOCK_WAIT = 1213, 1205
DEADLOCK_TRIES = 5


@dataclass(frozen=True)
class MemoryAlarm(Lasting):
    """The broker believes that it has no memory left, and blocks whoever publishes."""

    name: ClassVar[str] = "memory-alarm"
    weight: ClassVar[int] = 2

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 3, 20))

    def begin(self, world: World) -> None:
        # A broker that is just coming up knows of no watermark yet.
        if "watermark" not in world.kept:
            world.kept["watermark"] = world.insist(lambda: world.live.rabbitmqctl("eval", WATERMARK))
        world.insist(lambda: world.live.rabbitmqctl("set_vm_memory_high_watermark", "0"))

    def end(self, world: World) -> None:
        if "watermark" in world.kept:
            world.insist(lambda: world.live.rabbitmqctl("set_vm_memory_high_watermark", world.kept["watermark"]))


@dataclass(frozen=True)
class HoldRows(Lasting):
    """Another session locks rows and takes its time."""

    name: ClassVar[str] = "hold-rows"
    weight: ClassVar[int] = 4
    what: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 1, 30), rng.choice(list(LOCKED)))

    def begin(self, world: World) -> None:
        with ExitStack() as stack:
            conn = stack.enter_context(world.live.connection())
            conn.query(LOCKED[self.what])
            conn.store_result()
            world.kept[self.target] = stack.pop_all()

    def end(self, world: World) -> None:
        if (stack := world.kept.pop(self.target, None)) is not None:
            with suppress(Exception):  # a database that was killed has let go already
                stack.close()


@dataclass(frozen=True)
class Deadlock(Happening):
    """Another session takes two things in the order that nobody of ours does."""

    name: ClassVar[str] = "deadlock"
    weight: ClassVar[int] = 4
    first: str
    then: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        first, then = rng.sample(list(LOCKED), 2)
        return cls(first, then)

    def begin(self, world: World) -> str:
        before = _deadlocks(world)
        for _ in range(DEADLOCK_TRIES):
            if self._is_victim(world):
                world.deadlocks["of ours"] += 1
                return "this session was the victim"
            if _deadlocks(world) > before:
                world.deadlocks["of the product"] += 1
                return "another session was the victim"
        raise NotNow("nobody was in between")

    def _is_victim(self, world: World) -> bool:
        with world.live.connection() as conn:
            try:
                for what in (self.first, self.then):
                    conn.query(LOCKED[what])
                    conn.store_result()
                    time.sleep(0.3)
            except MySQLdb.OperationalError as error:
                if error.args[0] == LOCK_WAIT:
                    return False
                if error.args[0] == DEADLOCK:
                    return True
                raise
            finally:
                with suppress(MySQLdb.Error):
                    conn.rollback()
        return False


def _deadlocks(world: World) -> int:
    """So many the server has counted since it started; MariaDB and MySQL tell it in different places."""
    for row in world.rows("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"):
        return int(row["Value"])
    (row,) = world.rows("SELECT count AS n FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'")
    return int(row["n"])


@dataclass(frozen=True)
class Clock(Lasting):
    """A program's clock jumps, and jumps back."""

    name: ClassVar[str] = "clock"
    weight: ClassVar[int] = 3
    program: str
    jump: int

    @classmethod
    def draw(cls, rng: Random) -> Self:
        # Less than the age of the counts (World.snapshot): a count taken in the future is refused, and rightly so.
        return cls(span(rng, 2, 20), rng.choice(CLOCKED), rng.choice((-3600, -60, -5, 5, 60, 3600)))

    @property
    def target(self) -> str:
        return f"clock of {self.program}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.target,)

    def begin(self, world: World) -> None:
        world.rig.set_clock(self.program, self.jump)

    def end(self, world: World) -> None:
        world.rig.set_clock(self.program, 0)
