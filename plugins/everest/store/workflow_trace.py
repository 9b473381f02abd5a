"""What each step of a run was given, returned and left behind: for whoever asks why a run took the way it took.

SELECTs only. Public state: keys that begin with `_` are left out. How often a step failed and why: `workflow_lists`
(`timeline`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everest.store.database import Connection, load_queries
from everest.workflow import codec, state

QUERIES = load_queries("workflow_trace")

PAGE = 50


@dataclass(frozen=True)
class TracedStep:
    """A step, or a branch of one, in one visit. status: as its record says, or what became of one that was left open
    (`standing`). attempt: the newest try, which began in DAG run n at `started_at`.
    output and state_after: None unless it is completed; error: None unless it failed. Instants are aware UTC."""

    id: int
    step: str
    visit: int
    branch: str
    status: str
    attempt: int
    n: int
    state_before: dict[str, Any]
    output: dict[str, Any] | None
    state_after: dict[str, Any] | None
    error: dict[str, Any] | None
    started_at: datetime
    finished_at: datetime | None


def standing(status: str, run_status: str, group_status: str | None = None) -> str:
    """What a record of a step (a branch, a slot) is for people. Its row may say `running` or `waiting` for ever: nobody
    writes to what was overtaken. `cancelled`: with its run. `closed`: its group, or its run, has ended without it.

    group_status: of the step as a whole, for a branch or slot of it.
    """
    if status not in ("running", "waiting"):
        return status
    if run_status == "cancelled":
        return "cancelled"
    if run_status in ("completed", "failed") or group_status in ("completed", "skipped"):
        return "closed"
    return status


def trace(conn: Connection, run_id: int, after_id: int = 0, size: int = PAGE) -> list[TracedStep] | None:
    """Steps in the order in which they first began. `after_id`: the last id of the page before. None if there is no
    such run."""
    payload = QUERIES.payload(conn, run_id=run_id)
    if payload is None:
        return None
    rows = QUERIES.traced_steps(conn, run_id=run_id, after_id=after_id, size=size)
    return [_traced(row, payload) for row in rows]


def state_at(conn: Connection, run_id: int, step: str, visit: int | None = None) -> dict[str, Any] | None:
    """The state after a step, of its last visit unless told otherwise. None if it did not complete there."""
    return _state(QUERIES.state_after(conn, run_id=run_id, step=step, visit=visit))


def _traced(row: dict[str, Any], payload: str) -> TracedStep:
    read = {
        "status": standing(row["status"], row.pop("run_status"), row.pop("group_status")),
        "state_before": _state(row["state_before"] or payload),
        "state_after": _state(row["state_after"]),
        "output": codec.loads(row["output"]),
        "error": codec.loads(row["error"]),
        "started_at": row["started_at"].replace(tzinfo=UTC),
        "finished_at": None if row["finished_at"] is None else row["finished_at"].replace(tzinfo=UTC),
    }
    return TracedStep(**{**row, **read})


def _state(text: str | None) -> dict[str, Any] | None:
    return None if text is None else state.public_part(codec.loads(text))
