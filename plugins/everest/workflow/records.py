"""The rows of a run as values: what the engine reads of a store and gives back to it. No rule is in here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from everest.words import say, told

RunStatus = Literal[
    "running", "paused", "waiting_for_signal", "waiting_for_workflows", "completed", "failed", "cancelled"
]
FINAL = frozenset({"completed", "cancelled"})
WAITING = frozenset({"waiting_for_signal", "waiting_for_workflows"})


@dataclass
class Run:
    """A row of workflow_runs. `current_step` and `visit` are the pointer; `dag_run_id` is the announced or owning
    DAG run, and nobody else may commit for this workflow. Instants are aware UTC.

    waiting: what an open wait is about (names, matched, sequence); counters: budgets used, loop counts, and which
    transition last wrote each key of the state. compensation: None, "pending", "done" or "failed".
    """

    id: int
    workflow: str
    version: str
    definition_hash: str
    idempotency_key: str | None
    payload: dict[str, Any]
    state: dict[str, Any]
    status: RunStatus
    current_step: str | None
    visit: int
    n: int
    dag_id: str
    dag_run_id: str
    carrier_shadow_id: int | None
    paused_status: RunStatus | None = None
    waiting: dict[str, Any] | None = None
    wait_sequence: int = 0
    wakes_at: datetime | None = None
    parent_id: int | None = None
    parent_step: str | None = None
    parent_visit: int | None = None
    parent_index: int | None = None
    group_key: str | None = None
    priority: int = 0
    deadline_at: datetime | None = None
    paused_at: datetime | None = None
    transitions: int = 0
    counters: dict[str, Any] = field(default_factory=dict)
    recovered: int = 0
    compensation: str | None = None
    error_code: int | None = None
    error: dict[str, Any] | None = None
    failed_n: int | None = None
    failed_attempt: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def last_failed_n(self) -> int:
        """The newest DAG run in which it failed, also after a retry; 0: it never did. Of a run of before this was kept:
        the one before this."""
        return int(self.counters.get("failed_n", self.n - 1))

    def note_failure(self) -> None:
        self.failed_n = self.counters["failed_n"] = self.n


@dataclass(frozen=True)
class StepRecord:
    """A row of workflow_steps: the newest attempt of a step (or branch) in one visit, and its output once it is
    completed."""

    step: str
    visit: int
    branch: str
    status: str
    attempt: int
    n: int
    output: dict[str, Any] | None


@dataclass(frozen=True)
class Standing:
    """Where a run stands and who owns it, without its state: what is asked again for each of thousands of items."""

    id: int
    status: RunStatus
    current_step: str | None
    visit: int
    n: int
    dag_run_id: str


@dataclass(frozen=True)
class Ended:
    """How a run stands that others wait for. finished_at: of a completed one."""

    id: int
    status: RunStatus
    finished_at: datetime | None


@dataclass(frozen=True)
class Try:
    """How a step's newest attempt stands: what a commit is fenced by."""

    status: str
    attempt: int


@dataclass(frozen=True)
class Item:
    """A row of workflow_items: an item of a for_each. `attempt` is the fence of its tries."""

    index: int
    status: str
    attempt: int
    item: Any
    output: Any
    error: dict[str, Any] | None


@dataclass(frozen=True)
class ItemCounts:
    """How the items of a for_each stand."""

    total: int
    succeeded: int
    failed: int

    @property
    def open(self) -> int:
        return self.total - self.succeeded - self.failed


@dataclass(frozen=True)
class Signal:
    """A row of workflow_signals that no wait consumed yet."""

    id: int
    name: str
    payload: dict[str, Any]
    correlation: str | None
    sent_by: str | None
    sent_at: datetime


@dataclass(frozen=True)
class Compensation:
    """A row of workflow_compensations: what undoes one completed step, with the public state right after it."""

    id: int
    sequence: int
    step: str
    visit: int
    handler: str
    state: dict[str, Any]
    status: str
    attempts: int
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class ShadowRow:
    """What the engine reads of a shadow row."""

    id: int
    transaksi_id: int | None
    nomer_nota: str | None
    workflow_id: int | None
    worker_status: str
    dag_run_id: str | None
    n: int | None


@dataclass(frozen=True)
class Outcome:
    """What a change of a workflow's status means to the senders of its jobs."""

    worker_status: str
    response: dict[str, Any] | None = None
    error_code: int | None = None
    error: str | None = None


def is_other_nota(nota: str | None, documents: str | None) -> bool:
    """Whether a job names another nota than its document. As MySQL compares them, blanks at the end count for nothing;
    a job that names none is the document's, and where the document's is not known no job is another's."""
    named, known = (nota or "").rstrip(" "), (documents or "").rstrip(" ")
    return "" not in (named, known) and named != known


def nota_refused(transaksi_id: int | None, worker_status: str, documents: str | None, nota: str | None) -> Outcome:
    """How a job ends that names another nota than its document, which stands as worker_status. The sentence stands in
    the query part_strangers as well."""
    key = "engine.begun_as_other" if worker_status == "FAILED" else "engine.ended_as_other"
    message = say("id", key, number=transaksi_id, state=worker_status, other=documents, nota=nota)
    return Outcome("FAILED", {"status": "error", "code": 409, **told(message), "errors": []}, 409, message)
