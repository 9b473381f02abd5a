"""Movements of other modules that were entered after a count was posted and are dated before it (H13).

No lock of ours can stop them. What counts as one is the report's definition (`everest.reports.late`), so that the audit
and the report never disagree; the report is also where finance looks at them in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everest.audit.finding import QUERIES, Auditor, Finding, finding


def entered_late(auditor: Auditor) -> Iterator[Finding]:
    """Against postings that stand and were posted within the lookback, whenever they are dated. One that was entered
    between snapshot and posting is left out where a person approved the document knowing it."""
    from everest.reports import late
    from everest.reports.shape import Filters, Source

    names = [column.name for column in late.COLUMNS]
    with auditor.open() as tx:
        since = auditor.since or tx.now - auditor.settings.lookback
        for values in late.rows(Source(tx.conn, tx.settings, tx.now), Filters(), since):
            row: dict[str, Any] = dict(zip(names, values, strict=True))
            if row["dicatat_setelah"] == "posting" or not QUERIES.was_approved(tx.conn, posting_id=row["posting_id"]):
                yield finding("entered_late", row, ("posting_id", "kartu_stok_id"))
