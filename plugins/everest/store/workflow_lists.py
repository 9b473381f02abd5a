"""Many workflows, and the history of one: page after page, for people and pages. SELECTs only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everest.store.database import Connection
from everest.store.workflow_views import QUERIES, decoded

PAGE = 50
_THE_END = 2**63 - 1


@dataclass(frozen=True)
class ListedRun:
    """A line of the list. waits_for: names or ids that are missing. error: without its problems where there are very
    many."""

    id: int
    workflow: str
    version: str
    idempotency_key: str | None
    nomer_nota: str | None
    status: str
    current_step: str | None
    waits_for: list[Any]
    wakes_at: datetime | None
    parent_id: int | None
    n: int
    error: dict[str, Any] | None
    compensation: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class Event:
    """A line of a run's history."""

    id: int
    at: datetime
    event: str
    step: str | None
    visit: int | None
    branch: str | None
    attempt: int | None
    n: int | None
    detail: dict[str, Any] | None


def page_of_runs(
    conn: Connection,
    status: str | None = None,
    workflow: str | None = None,
    created_before: datetime | None = None,
    created_since: datetime | None = None,
    before_id: int | None = None,
    size: int = PAGE,
    parent_id: int | None = None,
) -> list[ListedRun]:
    """Runs, newest first; parent_id: only those that this run began.

    `before_id`: the last id of the page before. Instants are aware."""
    chosen: dict[str, Any] = {
        "workflow": workflow,
        "parent_id": parent_id,
        "created_before": _naive(created_before),
        "created_since": _naive(created_since),
        "before_id": _THE_END if before_id is None else before_id,
        "size": size,
    }
    rows = (
        QUERIES.page_of_runs(conn, **chosen)
        if status is None
        else QUERIES.page_of_runs_in(conn, status=status, **chosen)
    )
    return [_listed(decoded(row) or {}) for row in rows]


def _listed(row: dict[str, Any]) -> ListedRun:
    waiting = row.pop("waiting") or {}
    row.pop("error_code")
    is_over = row["status"] in ("completed", "failed", "cancelled")
    return ListedRun(waits_for=[] if is_over else waiting.get("remaining", []), **row)


def timeline(conn: Connection, run_id: int, after_id: int = 0, size: int = PAGE) -> list[Event] | None:
    """A run's history, oldest first. `after_id`: the last id of the page before. None if there is no such run."""
    if QUERIES.run(conn, run_id=run_id) is None:
        return None
    rows = QUERIES.page_of_events(conn, run_id=run_id, after_id=after_id, size=size)
    return [Event(at=row.pop("created_at"), **row) for row in map(decoded, rows) if row is not None]


def _naive(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC).replace(tzinfo=None)
