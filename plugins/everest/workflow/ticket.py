"""Who is at a step, what it may do, and what came of it: the words that engine, runner and Airflow share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from everest.errors import DocumentRefused, EverestError
from everest.words import say
from everest.workflow.records import Run


@dataclass(frozen=True)
class Ticket:
    """Who a task says it is: its DAG run and the ids of the message that started it. clears: how often a person had
    cleared tasks of this DAG run when this one began."""

    dag_run_id: str
    shadow_id: int
    n: int
    workflow_id: int | None = None
    transaksi_id: int | None = None
    clears: int = 0

    @classmethod
    def from_conf(cls, dag_run_id: str, conf: dict[str, Any], clears: int = 0) -> Ticket:
        """Raises DocumentRefused when the DAG run was started without the ids of a message."""
        try:
            ids = {name: int(conf[name]) for name in ("workflow_id", "transaksi_id") if conf.get(name) is not None}
            shadow_id, n = int(conf["shadow_id"]), int(conf.get("n", 1))
            return cls(dag_run_id=dag_run_id, shadow_id=shadow_id, n=n, clears=clears, **ids)
        except (KeyError, TypeError, ValueError):
            raise DocumentRefused(say("en", "engine.by_hand", run=dag_run_id), code=404) from None


@dataclass(frozen=True)
class Decision:
    """What came of the question that a step asked: by whom, when (aware UTC) and why; of a timeout, when it ended.
    evidence: what it was asked about. sequence: its number."""

    outcome: Literal["approved", "rejected", "timeout"]
    by: str | None
    at: datetime
    reason: str | None
    evidence: str
    sequence: int


@dataclass(frozen=True)
class Token:
    """The right to commit one try of a step: valid while no newer try and no newer DAG run has begun. branch: of a
    parallel group, or the slot of a for_each. decision: the answer that this try was given, if its step had asked."""

    run_id: int
    dag_run_id: str
    n: int
    step: str
    visit: int
    attempt: int
    branch: str = ""
    decision: Decision | None = None


@dataclass(frozen=True)
class Go:
    """Run the handler on this state, then settle with this token. run: as this process has committed it, where the
    step began in the commit of the one before it."""

    token: Token
    state: dict[str, Any]
    run: Run | None = None


@dataclass(frozen=True)
class Replay:
    """The step (or branch) is recorded, or was skipped by a branch; the DAG run goes on."""


@dataclass(frozen=True)
class Leave:
    """This DAG run has nothing (more) to do: the rest of it is skipped, green."""

    reason: str


@dataclass(frozen=True)
class Forward:
    """The step is recorded; the next task of this DAG run goes on."""

    next_step: str


Result = Forward | Replay | Leave


NEWER_TRY = "a newer try of this step has begun or ended"


class Fenced(EverestError):
    """A newer try, a newer DAG run or a final status owns this step; nothing of this try was written."""

    code = 409


class Stale(EverestError):
    """The run is not as its process left it: to be looked at again, under its lock."""

    retryable = True
    code = 409


class Overtaken(EverestError):
    """A person answered while the step was at work; it is run again with the answer."""

    retryable = True
    code = 409


class ItemFenced(Fenced):
    """An item of a for_each is in other hands; the slot goes on with the next."""


class BudgetExceeded(EverestError):
    """A limit of the workflow's definition is used up."""

    code = 422


class ItemFailed(EverestError):
    """An item of a for_each failed for good."""

    code = 500


@dataclass(frozen=True)
class BetweenTransactions:
    """In the place of a transaction where none is open: while a stream's generator runs."""

    now: datetime


@dataclass(frozen=True)
class StepContext:
    """What a handler gets beside the state.

    tx: the open transaction: what is written there commits with the step, exactly once. key: the same at every try,
    for effects outside the database. item, index: of a for_each, else None. decision: what came of the question that
    this step asked (`questions.ask_decision`), None while it is open or none was asked. occasion: "" for a try of the
    step; else what the handler is about: "compensate", "on_cancel", "on_failure" or "on_deadline", the last two with
    the numbers that tell one such happening from the next.
    """

    tx: Any
    workflow_id: int
    step: str
    visit: int
    attempt: int
    shadow_id: int
    dag_run_id: str
    n: int
    branch: str = ""
    item: Any = None
    index: int | None = None
    decision: Decision | None = None
    occasion: str = ""

    @property
    def now(self) -> datetime:
        """Aware UTC, the database's clock; the same throughout this try."""
        now: datetime = self.tx.now
        return now

    @property
    def key(self) -> str:
        place = [self.workflow_id, self.step, self.visit, self.branch if self.index is None else self.index]
        # The occasion stands in front: behind a step's number a branch could bear its name.
        parts = [self.occasion, *place]
        return ":".join(str(part) for part in parts if part != "")
