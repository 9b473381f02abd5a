"""The clock of a run that must complete within a time: it starts with the run, and anew when a failed one goes on.

A person who mends a run after its deadline has the whole time again, else it would fail at once. How long that is
stands in the run: whoever runs it again may not know its definition. A pause stops the clock (`control.resume`).

All of it is told by the database's clock. One that was ahead, and goes back, leaves times behind that are too late by
so much; a time is as far from its beginning as somebody said, so a beginning that is still to come tells by how much.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from everest.workflow.records import Run

AHEAD = timedelta(minutes=1)
"""An instant that is so far ahead of now was written by a clock that has gone back since."""
_NAME = "clock_us"
"""Among the run's counters: microseconds. The consumer's rerun reads it there, too (queries.sql, rerun_run)."""


def start(run: Run, limit: timedelta | None, now: datetime) -> None:
    if limit is not None:
        run.deadline_at = now + limit
        run.counters[_NAME] = limit // timedelta(microseconds=1)


def set_right(run: Run, now: datetime) -> None:
    """What a run was told by a clock that was ahead counts from now on. The caller saves the run.

    It is then a little late, by as much as had passed when the clock went back; nobody can know that any more.
    """
    if run.paused_at is not None:
        run.paused_at = min(run.paused_at, now)
    limit = run.counters.get(_NAME)
    if run.deadline_at is not None and limit is not None:
        run.deadline_at = min(run.deadline_at, now + timedelta(microseconds=int(limit)))
    waiting = run.waiting
    if waiting is not None and waiting.get("asked_at") is not None:
        waiting["asked_at"] = min(waiting["asked_at"], now)
    if waiting is None or waiting["until"] is None:
        return
    since = waiting.get("since") or run.updated_at  # of a wait of before this was kept: when it was parked
    if since is not None and since > now:
        waiting |= {"until": now + (waiting["until"] - since), "since": now}
        if run.wakes_at is not None:
            run.wakes_at = waiting["until"]


def start_anew(run: Run, now: datetime) -> None:
    """The caller saves the run. Of a run of before this was kept: as long as it had at first, its pauses included."""
    if run.deadline_at is None:
        return
    kept = run.counters.get(_NAME)
    if kept is not None:
        run.deadline_at = now + timedelta(microseconds=int(kept))
    elif run.created_at is not None:
        run.deadline_at = now + (run.deadline_at - run.created_at)
