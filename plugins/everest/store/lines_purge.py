"""Takes away the counted lines of documents that were posted long ago, in small transactions of their own.

The header stays, with the moment its lines went; so do the computed lines, journal, stock card and every attempt. Only
a document with a posting of its own is touched, never one that a person may still run, correct or decide about.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from ingest_consumer import shadow as jobs

QUERIES = load_queries("purge")

LINES_PER_TRANSACTION = 5_000
"""A document of 100,000 lines goes in pieces; a posting of the same moment waits for one piece at most."""

LINES_MIN_AGE = timedelta(days=31)
"""Younger documents are still asked about: a reversal, a question of the auditors, a message delivered again."""


def purge_lines(
    open_transaction: Callable[[], AbstractContextManager[UnitOfWork]],
    older_than: timedelta,
    actor: str,
    dry_run: bool = False,
) -> tuple[int, int]:
    """Deletes the lines of documents posted longer ago than that. Returns how many documents and lines. Each document
    leaves a line in the audit log. Raises ValueError below LINES_MIN_AGE. `dry_run` only counts."""
    if older_than < LINES_MIN_AGE:
        raise ValueError(f"lines stay for at least {LINES_MIN_AGE.days} days")
    documents, lines, after = 0, 0, 0
    while True:
        with open_transaction() as tx:
            before = (tx.now - older_than).replace(tzinfo=None)
            found = QUERIES.next_posted_document(tx.conn, posted_before=before, after_id=after)
            if found is None:
                return documents, lines
            if dry_run:
                documents, lines, after = documents + 1, lines + found["jumlah_baris"], found["header_id"]
                continue
            deleted = int(QUERIES.delete_lines(tx.conn, header_id=found["header_id"], size=LINES_PER_TRANSACTION))
            lines += deleted
            if deleted == LINES_PER_TRANSACTION and deleted < found["jumlah_baris"]:
                QUERIES.mark_lines_purged(tx.conn, header_id=found["header_id"])
                continue  # the same document again
            QUERIES.mark_lines_purged(tx.conn, header_id=found["header_id"])
            documents, after = documents + 1, found["header_id"]
            jobs.queries.audit(
                tx.conn,
                actor=actor[:100],
                action="purge",
                transaksi_id=found["transaksi_id"],
                nomer_nota=found["nomer_nota"],
                shadow_id=None,
                workflow_id=None,
                reason=None,
                before_value=None,
                after_value=json.dumps({"lines": "purged", "posting_id": found["posting_id"]}),
            )
