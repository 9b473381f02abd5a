"""The steps of one run with what became of each, and the signals that came to it. SELECTs only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from everest.store.database import Connection
from everest.store.workflow_trace import standing
from everest.store.workflow_views import QUERIES, decoded
from everest.workflow.definition import Definition

MAX_VISITS = 2_000
"""Of all steps of a run, the newest; a loop that went round more often shows no older ones anyway."""


@dataclass(frozen=True)
class StepLine:
    """One step. type: as its definition says, None where that is not known here. status: of its newest visit (running,
    completed, failed, waiting, skipped; what a run that ended left open: closed, cancelled), None while the run has not
    come to it. Instants are aware UTC."""

    name: str
    type: str | None
    status: str | None = None
    visit: int | None = None
    attempt: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class SignalLine:
    """A signal or an answer, as it came. consumed_step: the wait that used it, None while none has."""

    name: str
    correlation: str | None
    payload: Any
    sent_by: str | None
    created_at: datetime
    consumed_step: str | None


def steps(conn: Connection, run_id: int, definition: Definition | None) -> list[StepLine]:
    """In the order of the definition; those that it does not have (any more) behind them, in the order of the rows."""
    newest: dict[str, dict[str, Any]] = {}
    for row in map(decoded, QUERIES.steps(conn, run_id=run_id, size=MAX_VISITS)):
        newest.setdefault(row["step"], row | {"status": standing(row["status"], row["run_status"])})
    types = {} if definition is None else {step.name: step.type for step in definition.steps}
    names = [*types, *(name for name in reversed(newest) if name not in types)]
    kept = ("status", "visit", "attempt", "started_at", "finished_at", "error")
    return [
        StepLine(name, types.get(name), **{key: newest[name][key] for key in kept if name in newest}) for name in names
    ]


def signals(conn: Connection, run_id: int, size: int) -> list[SignalLine]:
    """The newest first."""
    return [SignalLine(**decoded(row)) for row in QUERIES.signals(conn, run_id=run_id, size=size)]
