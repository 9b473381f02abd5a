"""Clears: a person clears tasks of a DAG run in Airflow, and a failed workflow goes on with them.

Tasks also begin again by themselves: a sibling whose turn has come, a second try, a copy after a scheduler's restart.
None of them may undo a failure. Airflow counts the clears of each DAG run; the newest count that a task came with is
kept in the run, and a higher one is a clear that nobody has acted on yet. A task's own tries do not tell: one that was
never tried has as many left after a clear as before.
"""

from __future__ import annotations

from everest.workflow.records import Run

_NAME = "clears"


def known(run: Run) -> int:
    """The newest count of the run's present DAG run."""
    n, count = run.counters.get(_NAME, (0, 0))
    return int(count) if n == run.n else 0


def is_new(run: Run, count: int) -> bool:
    return count > known(run)


def note(run: Run, count: int) -> None:
    """The caller saves the run."""
    if is_new(run, count):
        run.counters[_NAME] = [run.n, count]
