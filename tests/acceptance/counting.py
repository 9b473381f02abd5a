"""Counts as the acceptance tests send them, and what must stand in the books of each afterwards."""

from __future__ import annotations

import secrets
import time
from typing import Any

from tests.acceptance.live import Live
from tests.builders import Document, Line

QUEUE, DEAD_LETTER_QUEUE = "everest.jobs.q", "everest.jobs.failed.dlq"


def item() -> str:
    """An item nobody counted before: a test must not meet the movements of another."""
    return f"ITM-{time.time_ns()}"


def count(cost: str | None = "1500") -> list[Line]:
    return [Line(item(), "10", "12", cost), Line(item(), "7", "5", "2500.50"), Line(item(), "3", "3", "1")]


def refused(live: Live) -> Document:
    """It will fail: a line was not counted."""
    item = secrets.token_hex(5)
    document = live.document([Line(f"A-{item}", "10", "12", "1500"), Line(f"B-{item}", "4", None, "250")])
    live.publish(document.message)
    return document


def assert_posted_once(live: Live, document: Document) -> dict[str, Any]:
    (posting,) = live.postings(document.nomer_nota)
    row = live.shadow(document.shadow_id)
    assert row["worker_status"] == "COMPLETED"
    assert row["response"]["posting_id"] == posting["id"]
    assert live.books_agree([document.nomer_nota])
    return posting


def queue_is_empty(live: Live) -> bool:
    with live.channel() as channel:
        return bool(channel.queue_declare(QUEUE, passive=True).method.message_count == 0)


def open_ones(live: Live, documents: list[Document]) -> dict[str, int]:
    """How many of these are in which status, COMPLETED left out."""
    rows = live.rows(
        "SELECT worker_status, COUNT(*) AS n FROM rabbit_publish_shadow WHERE id IN %s GROUP BY worker_status",
        tuple(document.shadow_id for document in documents),
    )
    return {row["worker_status"]: row["n"] for row in rows if row["worker_status"] != "COMPLETED"}


def acts(live: Live, transaksi_id: int) -> list[tuple[str, str, str | None]]:
    """What people did to it: who, what and why."""
    rows = live.rows("SELECT actor, action, reason FROM audit_log WHERE transaksi_id = %s ORDER BY id", transaksi_id)
    return [(row["actor"], row["action"], row["reason"]) for row in rows]
