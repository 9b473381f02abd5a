"""What runs of other modules wait for, as a person has to see it before they answer: what is asked, of whom, and why.

A wait says its kind, its names and its time; a step that asks by itself adds reasons, evidence and whom it bars. Beside
them stands what the run knows: its payload and its state are the evidence of a plain approval.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everest import bootstrap, people
from everest.pages.dead_letters import QUERIES
from everest.store.unit_of_work import UnitOfWork
from everest.store.workflow_views import decoded
from everest.workflow import questions, state
from everest.workflow.definition import WaitForSignals
from everest.workflow.fields import Field

OF_PEOPLE = ("approval", "decision", "input")


@dataclass(frozen=True)
class Question:
    """names: what the answer is called, which is mostly who is to give it. asked_at, until: aware UTC. reasons: as
    `Problem.as_json`. not_by: who may not answer. fields: what an input asks for, where its definition says so."""

    id: int
    workflow: str
    idempotency_key: str | None
    step: str | None
    kind: str
    sequence: int
    names: list[str]
    asked_at: datetime
    until: datetime | None
    message: str | None
    reasons: list[dict[str, Any]]
    details: dict[str, Any]
    not_by: list[str]
    payload: dict[str, Any]
    state: dict[str, Any]
    fields: tuple[Field, ...] = ()

    def bars(self, who: str) -> bool:
        """Whether this person may not answer."""
        return people.is_among(who, self.not_by)

    @property
    def known(self) -> dict[str, Any]:
        """What the run has found out, without what it was started with."""
        return {name: value for name, value in self.state.items() if self.payload.get(name) != value}


def page_of_questions(tx: UnitOfWork, size: int, after_id: int = 0) -> tuple[list[Question], int | None]:
    """A page of what waits for somebody, the oldest first, and where the next one begins (None: this is the last)."""
    rows = list(QUERIES.waiting_workflows(tx.conn, after_id=after_id, size=size + 1))
    return [_question(row) for row in rows[:size]], rows[size - 1]["id"] if len(rows) > size else None


def of_run(tx: UnitOfWork, run_id: int) -> Question | None:
    """What one of them waits for, None where it waits for nobody, or carries a document (`everest.approvals`)."""
    row = QUERIES.waiting_workflow(tx.conn, run_id=run_id)
    found = None if row is None else _question(row)
    return found if found is not None and found.kind in OF_PEOPLE else None


def _question(row: dict[str, Any]) -> Question:
    run = decoded(row)
    waiting = run["waiting"] or {}
    return Question(
        id=run["id"],
        workflow=run["workflow"],
        idempotency_key=run["idempotency_key"],
        step=run["current_step"],
        kind=str(waiting.get("kind")),
        sequence=waiting.get("sequence", 0),
        names=waiting.get("names", []),
        asked_at=waiting.get("asked_at") or run["updated_at"].replace(tzinfo=UTC),
        until=waiting.get("until"),
        message=questions.message_of(waiting) if "message" in waiting else None,
        reasons=waiting.get("reasons", []),
        details=waiting.get("details", {}),
        not_by=waiting.get("not_by", []),
        payload=run["payload"] or {},
        state=state.public_part(run["state"] or {}),
        fields=_fields(run),
    )


def _fields(run: dict[str, Any]) -> tuple[Field, ...]:
    """As the definition says now: they are how a question is drawn, and no part of what the run has stored."""
    known = bootstrap.deployed(run["workflow"], run["version"], run["definition_hash"])
    steps = () if known is None else known.steps
    return next(
        (one.fields for one in steps if isinstance(one, WaitForSignals) and one.name == run["current_step"]), ()
    )
