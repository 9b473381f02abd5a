"""What the engine needs of a store: the rows of runs and steps inside one open transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

RunStatus = Literal[
    "running", "paused", "waiting_for_signal", "waiting_for_workflows", "completed", "failed", "cancelled"
]
FINAL = frozenset({"completed", "cancelled"})


@dataclass
class Run:
    """A row of workflow_runs. `current_step` and `visit` are the pointer; `dag_run_id` is the announced or owning
    DAG run, and nobody else may commit for this workflow."""

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
    transitions: int = 0
    recovered: int = 0
    compensation: str | None = None
    error_code: int | None = None
    error: dict[str, Any] | None = None
    failed_n: int | None = None
    failed_attempt: int | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class StepRecord:
    """A row of workflow_steps: the newest attempt of a step in one visit, and its output once it is completed."""

    step: str
    visit: int
    branch: str
    status: str
    attempt: int
    n: int
    output: dict[str, Any] | None


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


class RunStore(Protocol):
    """Rows of one database transaction. Lock order: run rows before shadow rows before outbox rows."""

    def get(self, run_id: int) -> Run | None: ...

    def lock(self, run_id: int) -> Run:
        """Waits for the row. Raises DocumentMissing."""
        ...

    def find(self, workflow: str, key: str) -> int | None: ...

    def insert(self, run: Run) -> int:
        """The new id, or the id of the run that holds the key already."""
        ...

    def save(self, run: Run) -> None: ...

    def begin_attempt(self, run: Run, step: str, branch: str) -> int:
        """Raises the attempt counter of the step in this visit and returns it."""
        ...

    def step(self, run_id: int, step: str, visit: int, branch: str) -> StepRecord | None: ...

    def finish_step(
        self,
        run: Run,
        step: str,
        branch: str,
        status: str,
        output: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> None: ...

    def add_event(
        self, run: Run, event: str, step: str | None, attempt: int | None, detail: dict[str, Any] | None
    ) -> None: ...

    def shadow(self, shadow_id: int, lock: bool = False) -> ShadowRow | None: ...

    def insert_shadow(self, run: Run, transaksi_id: int | None, nomer_nota: str | None, payload: str) -> int: ...

    def link_shadow(self, shadow_id: int, run_id: int) -> None: ...

    def set_shadow(self, shadow_id: int, outcome: Outcome, current_step: str | None) -> None: ...

    def set_shadows(self, run: Run, outcome: Outcome) -> None:
        """All rows of the run that are not final: the outcome and the run's pointer."""
        ...

    def announce(self, run: Run, outcome: Outcome) -> None:
        """Writes the run's n and DAG run id into the carrier row with this outcome; other open rows wait."""
        ...

    def dag_run_id(self, run: Run) -> str:
        """The name of DAG run n of a workflow (state protocol, "Identities"), below 200 bytes."""
        ...

    def enqueue(self, run: Run) -> None:
        """The outbox row that announces the run's current n."""
        ...

    def outcome_of(self, run: Run) -> Outcome:
        """The outcome that the carrier row shows."""
        ...

    def rerun(self, shadow_id: int, actor: str, reason: str | None) -> str: ...


class Transaction(Protocol):
    """An open transaction as the engine sees it; a handler finds its own stores on it as well."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def now(self) -> datetime:
        """Aware UTC, the database's clock."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """What is written inside is undone, alone, when the `with` is left by an error. Raises
        TransientDatabaseError when the whole transaction is lost with it."""
        ...


class TransactionFactory(Protocol):
    """Opens a transaction that commits at the end of the `with` and rolls back on any error."""

    def __call__(self) -> AbstractContextManager[Transaction]: ...
