"""How long to wait before the next try, and how often to say why. Both bounded, so an outage is neither a storm
of calls nor a flood of log lines."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import timedelta

from ingest_consumer.vitals import Vitals

COMPLAIN_EVERY_S = 60.0
FORGOTTEN_AFTER_S = 600.0
"""Trouble that was not said again for so long is over, without a word: there is one kind for each job in trouble, and a
process lives for months."""


class Backoff:
    """0.5 s, 1 s, 2 s ... up to `longest`, each with jitter; `reset` after a success."""

    def __init__(self, longest: timedelta, first_s: float = 0.5) -> None:
        self._longest_s = longest.total_seconds()
        self._first_s = first_s
        self._pause_s = first_s

    def next_s(self) -> float:
        pause_s = min(self._pause_s, self._longest_s)
        self._pause_s = 2 * pause_s
        return pause_s + random.uniform(0, self._first_s)

    def reset(self) -> None:
        self._pause_s = self._first_s


class Complaints:
    """Says the same kind of trouble once a minute, and once more when it is over; `vitals` hears of it each time."""

    def __init__(
        self,
        log: logging.Logger,
        who: str,
        vitals: Vitals | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._log = log
        self._who = who
        self._vitals = vitals
        self._said: dict[str, float] = {}

    def say(self, kind: str, text: str, level: int = logging.WARNING) -> None:
        if self._vitals is not None:
            self._vitals.trouble(self._who, kind, text)
        now = self._clock()
        if now - self._said.get(kind, -COMPLAIN_EVERY_S) >= COMPLAIN_EVERY_S:
            self._said = {one: at for one, at in self._said.items() if now - at < FORGOTTEN_AFTER_S}
            self._said[kind] = now
            self._log.log(level, "%s: %s", self._who, text)

    def over(self, kind: str) -> None:
        if self._vitals is not None:
            self._vitals.well(self._who, kind)
        if self._said.pop(kind, None) is not None:
            self._log.info("%s: %s is well again", self._who, kind)
