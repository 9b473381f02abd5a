"""`down`: the manager stops everything in reverse order; whatever is left then is ended by its mark. Needs no .venv."""

from __future__ import annotations

import shutil
import signal
import time
from functools import partial

from stack import processes
from stack.layout import Layout, StackError
from stack.turns import alone

MANAGER_SECONDS = 120


def down(layout: Layout) -> None:
    """Raises StackError when a process of ours could not be ended."""
    with alone(layout):
        _end(layout)


def clean(layout: Layout) -> None:
    """Ends everything and removes the data, logs and passwords."""
    with alone(layout):
        _end(layout)
        if layout.local.exists():
            shutil.rmtree(layout.local)
            print(f"Removed {layout.local}.")


def _end(layout: Layout) -> None:
    began = time.monotonic()
    find = partial(processes.find, layout)
    before = len(find())
    manager = processes.manager(layout)
    if manager is not None:
        print("stopping", end="", flush=True)
        manager.send(signal.SIGTERM)
        deadline = time.monotonic() + MANAGER_SECONDS
        while manager.is_alive() and time.monotonic() < deadline:
            time.sleep(0.2)
            print("." if int((time.monotonic() - began) * 5) % 5 == 0 else "", end="", flush=True)
        print()
    processes.end_all(layout)
    if layout.socket_dir != layout.run:
        shutil.rmtree(layout.socket_dir, ignore_errors=True)
    left = find()
    if left:
        raise StackError(f"these processes could not be ended: {', '.join(str(process.pid) for process in left)}")
    if before:
        print(f"The stack is down after {time.monotonic() - began:.0f} s; no process is left.")
    else:
        print("The stack was not running.")
