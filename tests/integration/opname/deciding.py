"""Documents that surprise, and the people who decide about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from everest import approvals
from tests import builders
from tests.builders import Document
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB


MORNING_WIB = datetime(2026, 3, 10, 8, 0)


AFTERWARDS = NOON + timedelta(hours=1)


def late(connection: Any, nota: str = "BELI-7", masuk: str = "1", kode: str = "BRG-A") -> int:
    """A receipt that is entered after the snapshot and dated before it."""
    return builders.movement(
        connection, kode, masuk=masuk, nomer_nota=nota, sumber="BELI", tanggal_wib=MORNING_WIB, created_at=AFTERWARDS
    )


def surprising(connection: Any, **header: Any) -> Document:
    """The example of the posting rules, frozen at noon, with one late movement."""
    builders.warehouse(connection)
    late(connection)
    return builders.document(connection, diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON, **header)


def approve(walker: Walker, nota: str, who: str = "tono", reason: str = "cocok", **named: Any) -> None:
    with walker.database.transaction() as tx:
        approvals.approve(tx, nota, who, reason, **named)


def reject(walker: Walker, nota: str, who: str = "tono", reason: str = "hitung ulang", **named: Any) -> None:
    with walker.database.transaction() as tx:
        approvals.reject(tx, nota, who, reason, **named)


def pending(walker: Walker) -> list[approvals.Pending]:
    with walker.database.transaction() as tx:
        return approvals.pending(tx)


def rerun(walker: Walker, document: Document) -> str:
    with walker.database.transaction() as tx:
        tx.runs.rerun(document.shadow_id, "rina", None)
    return walker.post(document.shadow_id)


def run_of(connection: Any, document: Document) -> dict[str, Any]:
    (row,) = builders.rows(
        connection,
        "SELECT r.* FROM workflow_runs r JOIN rabbit_publish_shadow s ON s.workflow_id = r.id WHERE s.id = %s",
        document.shadow_id,
    )
    return row
