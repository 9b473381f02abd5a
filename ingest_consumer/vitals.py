"""What a process knows of itself: does its work come round, what holds it up. And the heartbeat that tells others.

Consumer, relay and reconciler have one `Vitals` each. Their loops say `turn`, their complaints say what is in the way;
`Pulse` writes it every few seconds into the process's row of `process_heartbeats`, where pages read it, and the health
endpoints answer from it. It only tells: no work waits for it, and no trouble of its own stops the process.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ingest_consumer import metrics, tls
from ingest_consumer.errors import Reason
from ingest_consumer.shadow import queries

BEAT_EVERY_S = 10.0
LOOK_S = 1.0
"""A change of state is told so soon: whoever started it waits for the word, and a standby that took over is news. So
often it beats while it starts."""
LATE_S = 120.0
"""A loop without a turn for this long is not ready: longer than any pause or timeout that a loop may have."""
STUCK_S = 900.0
"""And for this long it is not alive: only a new start will help."""
STALE_S = 120.0
"""Trouble that nobody has said again for this long counts as over: it is said at each try."""
KEEP_DAYS = 1
"""Rows of instances that died longer ago go when the next one of that name starts."""

STARTING, ACTIVE, STANDBY = "starting", "active", "standby"

HOLDS_UP = frozenset({"database", "broker", "topology", "blocked", "Airflow"})
"""Kinds of trouble with which a process cannot do its work; others are told in the log alone."""
TEXT_MAX = 300


class Vitals:
    """One process. Safe to use from all its threads. `patience_s`: the longest pause a loop makes on purpose."""

    def __init__(self, name: str, patience_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.instance = f"{socket.gethostname()}:{os.getpid()}"
        self._patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[str, float] = {}
        self._troubles: dict[tuple[str, str], tuple[float, str]] = {}
        self._facts: dict[str, Any] = {"state": STARTING}
        self.meter = metrics.Meter()

    @property
    def state(self) -> str:
        return str(self._facts["state"])

    @property
    def is_starting(self) -> bool:
        return self.state == STARTING

    @property
    def is_active(self) -> bool:
        return self.state == ACTIVE

    def turn(self, who: str = "main loop") -> None:
        """The loop of this name has come round."""
        self._turns[who] = self._clock()

    def know(self, **facts: Any) -> None:
        """Facts for whoever looks, such as state='active'; the newest of a name counts."""
        with self._lock:
            self._facts.update(facts)

    def trouble(self, who: str, kind: str, words: str) -> None:
        if kind in HOLDS_UP:
            self.meter.count(metrics.RETRIES, cause=kind.lower())
            with self._lock:
                self._troubles[who, kind] = (self._clock(), words[:TEXT_MAX])

    def well(self, who: str, kind: str) -> None:
        if (who, kind) in self._troubles:
            with self._lock:
                self._troubles.pop((who, kind), None)

    def reasons(self) -> list[Reason]:
        """Why it is not ready; empty = ready."""
        now = self._clock()
        with self._lock:
            for key in [key for key, (at, _) in self._troubles.items() if now - at > STALE_S + self._patience_s]:
                del self._troubles[key]
            troubles = [
                Reason.of(f"vitals.{kind.lower()}", f"{who}: {words}", who=who, why={"message": words, "lang": "en"})
                for (who, kind), (_, words) in sorted(self._troubles.items())
            ]
            new = [Reason.of("vitals.new", "has not begun yet")] if self.is_starting else []
        return [*new, *self._late(now, LATE_S + self._patience_s), *troubles]

    def stuck(self) -> list[Reason]:
        """Why it is not alive; empty = alive."""
        return self._late(self._clock(), STUCK_S + self._patience_s)

    def _late(self, now: float, limit_s: float) -> list[Reason]:
        turns = sorted(dict(self._turns).items())
        return [
            Reason.of("vitals.late", f"{who}: no turn for {now - at:.0f} s", who=who, seconds=round(now - at))
            for who, at in turns
            if now - at > limit_s
        ]

    def detail(self) -> dict[str, Any]:
        """The facts, and whether it is ready."""
        reasons = self.reasons()
        with self._lock:
            told = [one.kept() for one in reasons]
            return {**self._facts, "ready": not reasons, "reasons": reasons, **({"told": told} if told else {})}


class Pulse:
    """Writes the heartbeat. `transaction` opens one on a connection of its own (`Database.transaction`)."""

    def __init__(self, vitals: Vitals, transaction: Callable[[], AbstractContextManager[Any]]) -> None:
        self._vitals = vitals
        self._transaction = transaction
        self._has_begun = False

    def beat(self) -> bool:
        """Whether it could be written. A database that is away is told as trouble; the next beat tries again."""
        vitals = self._vitals
        try:
            with self._transaction() as conn:
                if not self._has_begun:
                    queries.forget_heartbeats(conn, name=vitals.name, days=KEEP_DAYS)
                detail = json.dumps(vitals.detail(), ensure_ascii=False)
                queries.beat(conn, name=vitals.name, instance=vitals.instance, detail=detail)
        except Exception as error:  # whatever it is, it is no reason to stop the work beside it
            vitals.trouble("heartbeat", "database", f"no heartbeat: {tls.said(error, 'EVEREST_MYSQL_URL')}")
            return False
        self._has_begun = True
        vitals.well("heartbeat", "database")
        return True

    def run(self, stop: threading.Event, every_s: float = BEAT_EVERY_S) -> None:
        """Beats until `stop`, and once more to say that it was stopped and did not die."""
        look_s = min(every_s, LOOK_S)
        while not stop.is_set():
            state = self._vitals.state
            self.beat()
            over = time.monotonic() + (look_s if self._vitals.is_starting else every_s)
            while not stop.wait(look_s) and self._vitals.state == state and time.monotonic() < over:
                pass
        self._vitals.know(state="stopped")
        self.beat()
