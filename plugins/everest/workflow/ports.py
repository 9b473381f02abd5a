"""What the engine needs of a store: reading and writing the rows of runs, steps, items and signals inside one open
transaction.

Two stores implement it: MySQL (`everest.store.runs`) and memory (`everest.workflow.memory`), under the same contract
tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from everest.workflow.records import (
    Compensation,
    Ended,
    Item,
    ItemCounts,
    Outcome,
    Run,
    ShadowRow,
    Signal,
    Standing,
    StepRecord,
    Try,
)
from everest.workflow.ticket import Token


class RunStore(Protocol):
    """Rows of one database transaction. Lock order: run rows by ascending id, then shadow rows, then outbox rows."""

    def at_once(self) -> AbstractContextManager[None]:
        """Inside there are only writes that return nothing; they may reach the server together, at the end."""
        ...

    # runs
    def get(self, run_id: int) -> Run | None: ...
    def lock(self, run_id: int) -> Run:
        """Waits for the row. Raises DocumentMissing."""
        ...

    def lock_try(self, run_id: int, step: str, branch: str) -> tuple[Run, Try | None]:
        """The same, and the newest attempt of a step in the run's visit. Raises DocumentMissing."""
        ...

    def standing(self, run_id: int, step: str, branch: str, lock: bool = False) -> tuple[Standing | None, Try | None]:
        """As `lock_try`, of the run only where it stands; waits for the row only with `lock`. None: no such run."""
        ...

    def find(self, workflow: str, key: str) -> int | None: ...
    def insert(self, run: Run) -> int:
        """The new id, or the id of the run that holds the key already."""
        ...

    def save(self, run: Run) -> None: ...
    def step_on(self, run: Run, token: Token, output: dict[str, Any]) -> None:
        """Records that a plain step is completed, and the run behind it, without the run's lock: the first writes of
        an `at_once`, which raises Stale when the run is not at this step of this DAG run, running, and Fenced when
        the token's try is not the newest. `run` is what its process knows of it: all that is written here changes
        only in commits that move the pointer. A run without a current step is completed and has finished now."""
        ...

    def ends(self, run_ids: Sequence[int]) -> list[Ended]:
        """How these runs stand, by ascending id, in one look and without what they hold; missing ones are left out."""
        ...

    def states(self, run_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Their states, in one look."""
        ...

    def waiters(self, run_id: int) -> list[int]:
        """Runs whose open wait names this one: its parent, and those that depend on it."""
        ...

    def nested_children(self, run_id: int) -> list[int]:
        """Runs that a run_workflow step of this one began and that have not ended."""
        ...

    def child_of(self, run_id: int, step: str, visit: int) -> int | None: ...
    def group(self, group_key: str) -> list[int]: ...

    # steps
    def begin_attempt(self, run: Run, step: str, branch: str, attempt: int = 1) -> None:
        """The step is at work in this visit. attempt: one more than the newest, which the caller has seen under the
        run's lock."""
        ...

    def step(self, run_id: int, step: str, visit: int, branch: str) -> StepRecord | None: ...
    def branches(self, run_id: int, step: str, visit: int) -> list[StepRecord]: ...
    def finish_step(
        self,
        run: Run,
        step: str,
        branch: str,
        status: str,
        output: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> None:
        """A completed step keeps the run's state as it stands now: its output is merged already."""
        ...

    # items of a for_each, and the runs that a wait depends on
    def add_items(self, run: Run, step: str, items: Sequence[Any]) -> None: ...
    def has_items(self, run: Run, step: str) -> bool: ...
    def free_items(self, run: Run, step: str, slot: str) -> None:
        """Items that an earlier try of this slot, or an earlier DAG run, left at work can be claimed again."""
        ...

    def release_items(self, run: Run, step: str, slot: str) -> None:
        """Items that this slot would have tried again may be claimed by any."""
        ...

    def reopen_items(self, run: Run, step: str) -> None:
        """A person cleared the failed task: what did not succeed can be claimed again, also what a slot has at work
        (its commit is fenced by the item's attempt)."""
        ...

    def claim_item(self, run_id: int, step: str, visit: int, slot: str, n: int, is_fresh: bool = False) -> Item | None:
        """The next item nobody holds, now this slot's, its attempt raised. One that failed in a slot and may be tried
        again is that slot's; so is one that it claimed without learning of it (a lost answer). is_fresh: none of
        those."""
        ...

    def finish_item(
        self,
        run: Run | Standing,
        step: str,
        index: int,
        attempt: int,
        status: str,
        output: Any,
        error: dict[str, Any] | None,
    ) -> bool:
        """How this attempt of an item ended; False when the item is not at work in it any more."""
        ...

    def others_at_work(self, run: Run, step: str, branch: str) -> bool:
        """Whether another branch, or an item in another slot, has begun in the run's current DAG run and not ended."""
        ...

    def all_succeeded(self, run: Run | Standing, step: str) -> bool:
        """Whether no item is left. Asked after each of thousands, under the run's lock: a look, never a count."""
        ...

    def count_items(self, run: Run | Standing, step: str) -> ItemCounts: ...
    def items(self, run: Run, step: str) -> list[Item]: ...
    def first_success(self, run: Run, step: str) -> int | None:
        """The index of the item that succeeded first."""
        ...

    def add_dependencies(self, run: Run, step: str, depends_on: Sequence[int]) -> None: ...
    def hold(self, run_ids: Iterable[int]) -> None:
        """Locks these runs, by ascending id; ids that do not exist are passed by."""
        ...

    def waits_on(self, run_ids: Iterable[int]) -> dict[int, list[int]]:
        """For runs that wait for workflows now: which ones each waits for."""
        ...

    # signals
    def add_signal(
        self,
        run: Run,
        name: str,
        payload: Mapping[str, Any],
        correlation: str | None,
        sent_by: str | None,
        sequence: int | None,
    ) -> int: ...
    def open_signals(self, run: Run, names: Sequence[str]) -> list[Signal]: ...
    def unread_signals(self, run: Run, name: str | None, most: int) -> int:
        """How many plain signals of that name (None: of any) no wait has consumed; counted up to `most`."""
        ...

    def release_signals(self, run: Run, step: str) -> None:
        """Plain signals that a failed try of this very wait had consumed are there for the next one."""
        ...

    def consume_signal(self, run: Run, signal_id: int, step: str) -> None: ...

    # chunks of a stream
    def add_chunk(self, run: Run, step: str, chunk: Any) -> None: ...
    def chunks(self, run_id: int, step: str, visit: int) -> list[Any]: ...
    def drop_chunks(self, run: Run, step: str) -> None: ...

    # compensations
    def add_compensation(self, run: Run, step: str, handler: str, state: dict[str, Any], first: bool = False) -> None:
        """Pushed on the run's stack; `first` puts it at the bottom, to run last."""
        ...

    def next_compensation(self, run_id: int, lock: bool = True) -> Compensation | None:
        """The newest that is not done, failed ones included; None when all are done. With `lock`, one that another
        session has locked is passed by: compare what you get with what you looked for."""
        ...

    def owes_below(self, run_id: int) -> bool:
        """Whether a run nested in this one, at any depth, has compensations due."""
        ...

    def compensations(self, run_id: int) -> list[Compensation]: ...
    def finish_compensation(self, compensation_id: int, status: str, error: dict[str, Any] | None) -> None: ...

    # history
    def add_event(
        self, run: Run, event: str, step: str | None, attempt: int | None, detail: dict[str, Any] | None
    ) -> None: ...

    def add_handover(self, run: Run, step: str, attempt: int, following: str) -> None:
        """Two events: this attempt of a step is completed, and the first one of the following has started."""
        ...

    # shadow and outbox rows
    def shadow(self, shadow_id: int, lock: bool = False) -> ShadowRow | None: ...
    def insert_shadow(self, run: Run, transaksi_id: int | None, nomer_nota: str | None, payload: str) -> int: ...
    def link_shadow(self, shadow_id: int, run_id: int) -> None: ...
    def set_shadow(self, shadow_id: int, outcome: Outcome, current_step: str | None) -> None: ...
    def set_shadows(self, run: Run, outcome: Outcome) -> None:
        """All rows of the run that are not final: the outcome and the run's pointer."""
        ...

    def part_strangers(self, run: Run, nota: str | None) -> None:
        """Open rows of a document that the run completes which name another nota: each becomes FAILED 409 on its own
        and is no longer the run's. nota: what it completed as; None or '': what its carrier names, and where that
        names none, no row is a stranger. A row without a nota, or with blanks behind it, is the document's."""
        ...

    def announce(self, run: Run, outcome: Outcome) -> None:
        """Writes the run's n and DAG run id into the carrier row with this outcome; other open rows wait."""
        ...

    def dag_run_id(self, run: Run) -> str:
        """The name of DAG run n of a workflow (state protocol, "Identities"), below 200 bytes."""
        ...

    def enqueue(self, run: Run, available_at: datetime | None = None) -> None:
        """The outbox row that announces the run's current n; due now unless told otherwise."""
        ...

    def unsend(self, run: Run) -> None:
        """Takes back outbox rows of this run that were not published yet."""
        ...

    def outcome_of(self, run: Run) -> Outcome:
        """The outcome that the carrier row shows."""
        ...

    def rerun(self, shadow_id: int, actor: str, reason: str | None) -> str: ...
    def audit(self, actor: str, action: str, run: Run, reason: str | None, detail: dict[str, Any] | None) -> None: ...


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
