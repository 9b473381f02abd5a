"""Closed months: nothing of ours was entered in a month while it was closed (also one that was opened again since).

When a month was closed and opened stands in the audit log. Of a month that another program closed by an UPDATE nobody
knows since when; the audit says so, and judges what it knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import filterfalse
from typing import Any

from everest import periods
from everest.audit.finding import POSTINGS, QUERIES, Auditor, Finding, finding, walked_rows
from everest.words import say

CLOSE = "period_close"


def entered_while_closed(auditor: Auditor) -> Iterator[Finding]:
    with auditor.open() as tx:
        history = list(QUERIES.closings(tx.conn))
        closed = {row["periode"] for row in QUERIES.closed_months(tx.conn)}
    times = _times(history)
    if no_months := sorted(filterfalse(periods.is_month, closed)):
        auditor.notes.append(say("en", "audit_note.no_month", months=", ".join(map(repr, no_months))))
    unknown = sorted(closed.difference(no_months) - {periode for periode, _, until in times if until is None})
    if unknown:
        auditor.notes.append(say("en", "audit_note.closed_elsewhere", months=", ".join(unknown)))
    if not times:
        return
    given = json.dumps(
        [[int(periode.replace("-", "")), str(since), until and str(until)] for periode, since, until in times]
    )
    for row in walked_rows(auditor, "entered_while_closed", POSTINGS, closings=given):
        yield finding("entered_while_closed", row, ("tabel", "posting_id", "ditutup_at"))


def _times(history: list[dict[str, Any]]) -> list[tuple[str, datetime, datetime | None]]:
    """(month, closed at, opened again at): None = closed since."""
    since: dict[str, datetime] = {}
    times: list[tuple[str, datetime, datetime | None]] = []
    for row in history:
        if row["action"] == CLOSE:
            since.setdefault(row["periode"], row["created_at"])
        elif row["periode"] in since:
            times.append((row["periode"], since.pop(row["periode"]), row["created_at"]))
    return times + [(periode, closed_at, None) for periode, closed_at in since.items()]
