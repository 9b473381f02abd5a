"""Takes away ended workflows that nothing needs any more, in small transactions of their own.

Never a document's: a run with a shadow row or a payload that names a transaksi_id stays with its books for ever, and so
do the shadow rows of documents. Also kept: what has something left to undo, children of a run that is still at work,
and runs that an open wait names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from everest.store.unit_of_work import UnitOfWork
from everest.store.workflow_views import QUERIES
from ingest_consumer import shadow as jobs

RUNS_PER_TRANSACTION = 25
"""A for_each of 5,000 items has 5,000 rows: a transaction stays short."""

MIN_AGE = timedelta(days=1)
"""Younger ones may still be on their way: a message not taken out of the queue yet, a dead letter not settled yet."""


def purge(
    open_transaction: Callable[[], AbstractContextManager[UnitOfWork]],
    older_than: timedelta,
    with_cancelled: bool,
    actor: str,
    dry_run: bool = False,
) -> int:
    """Deletes runs that completed (or were cancelled) longer ago than that, with everything about them, their jobs and
    their idempotency keys. Returns how many. Each transaction leaves a line in the audit log.

    Raises ValueError below MIN_AGE. `dry_run` only counts.
    """
    if older_than < MIN_AGE:
        raise ValueError(f"runs stay for at least {MIN_AGE.days} day")
    purged, after = 0, 0
    while True:
        with open_transaction() as tx:
            found = _some(tx, tx.now - older_than, with_cancelled, after)
            if not found:
                return purged
            after = found[-1]
            purged += len(found) if dry_run else _delete(tx, found, actor)


def _some(tx: UnitOfWork, before: datetime, with_cancelled: bool, after: int) -> list[int]:
    rows = QUERIES.purgeable(
        tx.conn,
        finished_before=before.replace(tzinfo=None),
        with_cancelled=with_cancelled,
        after_id=after,
        size=RUNS_PER_TRANSACTION,
    )
    return [row["id"] for row in rows]


def _delete(tx: UnitOfWork, found: list[int], actor: str) -> int:
    conn = tx.conn
    ids = [row["id"] for row in QUERIES.claim_purgeable(conn, run_ids=found)]
    if not ids:
        return 0
    for delete in (
        QUERIES.purge_steps,
        QUERIES.purge_items,
        QUERIES.purge_signals,
        QUERIES.purge_chunks,
        QUERIES.purge_compensations,
        QUERIES.purge_events,
    ):
        delete(conn, run_ids=ids)
    QUERIES.purge_runs(conn, run_ids=ids)
    QUERIES.purge_jobs(conn, run_ids=ids)
    QUERIES.purge_outbox(conn, run_ids=ids)
    jobs.audit(conn, actor, "purge", None, None, {"workflow_ids": ids})
    return len(ids)
