"""So many at a time: what costs a request much memory or work waits its turn, and not for long.

The pages share one process with Airflow's own, and its threads: whoever waits holds one. So the waiting has an end, and
whoever is turned away is told to come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore


class Crowd(Exception):
    """Nobody got ready in time; nothing was done."""


class Turns:
    """at_once: how many are at work. wait_s: until whoever waits is turned away."""

    def __init__(self, at_once: int, wait_s: float) -> None:
        self.wait_s = wait_s
        self._free = BoundedSemaphore(at_once)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Raises Crowd when nobody else gets ready."""
        if not self._free.acquire(timeout=self.wait_s):
            raise Crowd
        try:
            yield
        finally:
            self._free.release()
