"""Takes away messages that were sent long ago and whose job is done for good, in small transactions of their own.

Never one that is still to be sent, nor one of a job that a person may run again. The rows of the job itself stay.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.store.workflow_purge import MIN_AGE
from ingest_consumer import shadow as jobs

QUERIES = load_queries("purge")
MESSAGES_PER_TRANSACTION = 500


def purge_outbox(
    open_transaction: Callable[[], AbstractContextManager[UnitOfWork]],
    older_than: timedelta,
    actor: str,
    dry_run: bool = False,
) -> int:
    """Deletes messages published longer ago than that; returns how many. Each transaction leaves a line in the audit
    log. Raises ValueError below MIN_AGE. `dry_run` only counts."""
    if older_than < MIN_AGE:
        raise ValueError(f"messages stay for at least {MIN_AGE.days} day")
    purged, after = 0, 0
    while True:
        with open_transaction() as tx:
            before = (tx.now - older_than).replace(tzinfo=None)
            size = MESSAGES_PER_TRANSACTION
            rows = QUERIES.sent_messages(tx.conn, sent_before=before, after_id=after, size=size)
            ids = [row["id"] for row in rows]
            if not ids:
                return purged
            after = ids[-1]
            deleted = len(ids) if dry_run else int(QUERIES.delete_sent_messages(tx.conn, ids=ids))
            purged += deleted
            if deleted and not dry_run:
                told = {"outbox": deleted, "from_id": ids[0], "to_id": ids[-1]}
                jobs.audit(tx.conn, actor, "purge", None, None, told)
