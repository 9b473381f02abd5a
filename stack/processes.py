"""Finding and ending processes of ours, and of nobody else.

Every process of the stack inherits EVEREST_STACK=<checkout> and EVEREST_STACK_PROGRAM=<name>, so they are found
whatever became of their parents: LocalExecutor's workers outlive a killed scheduler, everything outlives a killed
manager. Programs that overwrite their environment with a title are covered twice: SPT_NOENV keeps the Python ones
from doing it, and PostgreSQL's are known by the data folder they work in.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stack.layout import Layout

MARK = "EVEREST_STACK"
PROGRAM_MARK = "EVEREST_STACK_PROGRAM"

# What they hold is on disk or in a row, so a short time to end is enough; a database closes its files first.
SERVERS = frozenset({"epmd", "mariadb", "postgresql", "rabbitmq"})
PATIENCE_SECONDS = 5
SERVER_PATIENCE_SECONDS = 30
AGAIN_SECONDS = 0.05


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one with the same pid by its start time (clock ticks since boot)."""

    pid: int
    started: int
    program: str
    parent: int = field(default=0, compare=False)

    def is_alive(self) -> bool:
        state, _, started = _stat(self.pid)
        return started == self.started and state != "Z"

    def send(self, number: signal.Signals) -> None:
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def find(layout: Layout, programs: Iterable[str] | None = None) -> list[Process]:
    """Our live processes, of the named programs or all; never the caller or one of its ancestors."""
    wanted = set(programs) if programs is not None else None
    spared = _self_and_ancestors()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) in spared:
            continue
        pid = int(entry.name)
        program = _program_of(layout, entry)
        if program is None or (wanted is not None and program not in wanted):
            continue
        state, parent, started = _stat(pid)
        if state not in ("", "Z"):
            found.append(Process(pid, started, program, parent))
    return found


def end(search: Callable[[], list[Process]], patience_seconds: float) -> int:
    """Asks what `search` finds to end, then, after `patience_seconds`, makes it. Returns how many there were.

    A parent is asked, not its children: it knows in which order to end them. It searches again until nothing is left,
    twice: a process may have forked while it was being ended, and one that is just becoming a program has no mark yet.
    """

    def remaining() -> list[Process]:
        if found := search():
            return found
        time.sleep(AGAIN_SECONDS)
        return search()

    seen: set[Process] = set()
    asked: set[Process] = set()
    deadline = time.monotonic() + patience_seconds
    limit = deadline + 15
    while processes := remaining():
        forced = time.monotonic() >= deadline
        pids = {process.pid for process in processes}
        for process in processes:
            if forced:
                process.send(signal.SIGKILL)
            elif process not in asked and process.parent not in pids:
                process.send(signal.SIGTERM)
                asked.add(process)
        seen.update(processes)
        if time.monotonic() > limit:
            break
        time.sleep(AGAIN_SECONDS)
    return len(seen)


def end_all(layout: Layout) -> int:
    """Ends every process of ours that runs without its manager, the servers last. Returns how many there were."""
    if not find(layout):
        return 0

    def others() -> list[Process]:
        return [process for process in find(layout) if process.program not in SERVERS]

    return end(others, PATIENCE_SECONDS) + end(lambda: find(layout), SERVER_PATIENCE_SECONDS)


def manager(layout: Layout) -> Process | None:
    """The running process manager, by its mark; its children have it until they become a program. Its pid file would
    not do: it comes late, and an interrupted start leaves none."""
    found = find(layout, ["manager"])
    pids = {process.pid for process in found}
    return next((process for process in found if process.parent not in pids), None)


def _program_of(layout: Layout, entry: Path) -> str | None:
    try:
        variables = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    if f"{MARK}={layout.root}".encode() in variables:
        prefix = f"{PROGRAM_MARK}=".encode()
        return next((os.fsdecode(v[len(prefix) :]) for v in variables if v.startswith(prefix)), "")
    with contextlib.suppress(OSError):
        if (entry / "comm").read_text().strip() == "postgres" and os.readlink(entry / "cwd") == str(
            layout.data / "postgresql"
        ):
            return "postgresql"
    return None


def _stat(pid: int) -> tuple[str, int, int]:
    """State letter, parent and start time; ('', 0, 0) when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", 0, 0
    columns = text.rpartition(")")[2].split()
    return columns[0], int(columns[1]), int(columns[19])


def _self_and_ancestors() -> set[int]:
    pids, pid = set(), os.getpid()
    while pid > 0 and pid not in pids:
        pids.add(pid)
        pid = _stat(pid)[1]
    return pids
