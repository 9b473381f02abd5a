"""What in a document deserves a second look: the count as a whole, and its lines. None of it stops a posting."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from everest import people
from everest.intake.submission import is_far_ahead
from everest.opname.document import WIB, wib
from everest.opname.hints import Hint
from everest.reports.smells import posted_hints, staged_hints
from everest.store.unit_of_work import UnitOfWork

SOME_LINES = 10
"""Of fewer, half of them says nothing."""
MANY_LINES = 50
"""Of a warehouse that was really counted, so many lines seldom agree all."""
OLD_SNAPSHOT = timedelta(days=3)


def smells(doc: dict[str, Any], sums: dict[str, Any]) -> list[str]:
    """About the count as a whole; each is a key of the catalogue."""
    found = []
    if sums["baris"] >= SOME_LINES and sums["baris_selisih"] * 2 > sums["baris"]:
        found.append("most_lines_differ")
    if sums["baris"] >= MANY_LINES and sums["baris_selisih"] == 0:
        found.append("nothing_differs")
    snapshot, sent = doc["snapshot_at"], doc["created_at"]
    if snapshot is not None and sent is not None and sent - snapshot > OLD_SNAPSHOT:
        found.append("old_snapshot")
    if sent is not None and is_far_ahead(doc["tanggal_posting"], wib(sent.replace(tzinfo=UTC)).date()):
        found.append("far_ahead")
    if doc["dibuat_oleh"] and people.is_same(doc["dibuat_oleh"], doc["diotorisasi_oleh"]):
        found.append("same_person")
    return found


def line_hints(tx: UnitOfWork, doc: dict[str, Any]) -> list[Hint]:
    """About its lines, posted or as they were sent. A reversal has none of its own."""
    if doc["posting_id"] is not None:
        if doc["posting_jenis"] != "POSTING" or doc["tanggal_wib"] is None:
            return []
        return posted_hints(tx.conn, doc["transaksi_id"], doc["tanggal_wib"], with_neighbours=True)
    if doc["header_id"] is None:
        return []
    now = tx.now.astimezone(WIB).replace(tzinfo=None)
    return staged_hints(tx.conn, doc["header_id"], doc["gudang_kode"], doc["transaksi_id"], now)
