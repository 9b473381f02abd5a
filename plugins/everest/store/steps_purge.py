"""Takes away the steps and the history of documents that ended long ago, in small transactions of their own.

The run itself stays, so that a message delivered again finds it done; so do the job, every attempt, the audit log and
the books. What goes is how Airflow got there: which try of which step began and ended when.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from ingest_consumer import shadow as jobs

QUERIES = load_queries("purge")
RUNS_PER_TRANSACTION = 200
STEPS_MIN_AGE = timedelta(days=31)
"""Of younger documents somebody still asks why they took so long."""


def purge_steps(
    open_transaction: Callable[[], AbstractContextManager[UnitOfWork]],
    older_than: timedelta,
    actor: str,
    dry_run: bool = False,
) -> int:
    """Deletes the steps and events of runs of documents that ended longer ago than that. Returns of how many runs. Each
    transaction leaves a line in the audit log. Raises ValueError below STEPS_MIN_AGE. `dry_run` only counts."""
    if older_than < STEPS_MIN_AGE:
        raise ValueError(f"steps stay for at least {STEPS_MIN_AGE.days} days")
    purged, after = 0, 0
    while True:
        with open_transaction() as tx:
            before = (tx.now - older_than).replace(tzinfo=None)
            found = QUERIES.runs_with_history(
                tx.conn, finished_before=before, after_id=after, size=RUNS_PER_TRANSACTION
            )
            ids = [row["id"] for row in found]
            if not ids:
                return purged
            after, purged = ids[-1], purged + len(ids)
            if not dry_run:
                QUERIES.delete_steps(tx.conn, run_ids=ids)
                QUERIES.delete_events(tx.conn, run_ids=ids)
                jobs.audit(tx.conn, actor, "purge", None, None, {"steps of workflow_ids": ids})
