"""The clock of a run that must complete within a time: it starts with the run, and anew when a failed one goes on.

A person who mends a run after its deadline has the whole time again, else it would fail at once. How long that is
stands in the run: whoever runs it again may not know its definition. A pause stops the clock (`control.resume`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from everest.workflow.records import Run

_NAME = "clock_us"
"""Among the run's counters: microseconds. The consumer's rerun reads it there, too (queries.sql, rerun_run)."""


def start(run: Run, limit: timedelta | None, now: datetime) -> None:
    if limit is not None:
        run.deadline_at = now + limit
        run.counters[_NAME] = limit // timedelta(microseconds=1)


def start_anew(run: Run, now: datetime) -> None:
    """The caller saves the run. Of a run of before this was kept: as long as it had at first, its pauses included."""
    if run.deadline_at is None:
        return
    kept = run.counters.get(_NAME)
    if kept is not None:
        run.deadline_at = now + timedelta(microseconds=int(kept))
    elif run.created_at is not None:
        run.deadline_at = now + (run.deadline_at - run.created_at)
