"""Reads the rows of all runs that the workers wait for, together and often, and wakes the worker whose run is over.

The end of a run should be noticed within milliseconds, and a read per worker at that pace would cost more than it
finds. One reader for all is one short statement, however many workers there are. It is only a hint: what became of the
run the worker reads itself, and it looks once a second anyway, so a watch whose database is away delays an ack, no
more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from ingest_consumer.database import Database, passes
from ingest_consumer.shadow import queries

log = logging.getLogger(__name__)

SHARE_OF_AGE = 0.01
"""A run that has taken long is looked at less often: what its end is noticed late stays a hundredth of what it took."""
LONGEST_S = 1.0
"""Between two looks; and the pause after an error."""


@dataclass(eq=False)
class Watched:
    """A run somebody waits for: `wake` is called once, from the watch's thread, when the row has left it."""

    shadow_id: int
    dag_run_id: str
    wake: Callable[[], None]
    since: float


class Watch:
    """`begin` and `end` are for any thread; `run` has one of its own. `poll`: the shortest pause between two looks."""

    def __init__(self, database: Database, poll: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._poll_s = poll.total_seconds()
        self._clock = clock
        self._watched: set[Watched] = set()
        self._lock = threading.Lock()
        self._begun = threading.Event()

    def begin(self, shadow_id: int, dag_run_id: str, wake: Callable[[], None]) -> Watched:
        one = Watched(shadow_id, dag_run_id, wake, self._clock())
        with self._lock:
            self._watched.add(one)
        self._begun.set()
        return one

    def end(self, one: Watched) -> None:
        """Nobody waits for it any more; also after it was woken."""
        with self._lock:
            self._watched.discard(one)

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._begun.wait(self.pause_s())
            self._begun.clear()
            try:
                self.look()
            except Exception as error:  # the workers' own looks go on whatever it is
                if not passes(error):
                    log.exception("watch: OUR BUG; the workers look for themselves")
                self._database.close()
                stop.wait(LONGEST_S)
        self._database.close()

    def pause_s(self) -> float:
        """Until the next look: by the youngest run, so that a long one beside it costs nothing more."""
        with self._lock:
            youngest = max((one.since for one in self._watched), default=None)
        if youngest is None:
            return LONGEST_S
        return min(LONGEST_S, max(self._poll_s, SHARE_OF_AGE * (self._clock() - youngest)))

    def look(self) -> None:
        """Wakes everybody whose run is over. Raises what the database raises."""
        with self._lock:
            watched = list(self._watched)
        if not watched:
            return
        ids = tuple({one.shadow_id for one in watched})
        with self._database.transaction() as conn:
            at_work = {(shadow_id, run_id) for shadow_id, run_id in queries.runs_at_work(conn, shadow_ids=ids)}
        for one in watched:
            if (one.shadow_id, one.dag_run_id) not in at_work:
                self.end(one)
                one.wake()
