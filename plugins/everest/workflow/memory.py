"""The engine's store in memory, for tests of workflows: no server, the same rules, every commit all or nothing.

`run_inline` walks a definition to its end or to its next wait. Values go through the same JSON as in the database, so
that a state which could not be stored fails here, too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from everest.errors import Conflict, DocumentMissing
from everest.workflow import clock
from everest.workflow.memory_jobs import MemoryRunJobs
from everest.workflow.memory_tables import Tables, plain
from everest.workflow.records import (
    FINAL,
    Ended,
    Outcome,
    Run,
    Standing,
    StepRecord,
    Try,
)
from everest.workflow.ticket import NEWER_TRY, Fenced, Stale, Token


@dataclass(frozen=True)
class MemoryTransaction:
    """What a handler finds as `step.tx` in memory."""

    runs: MemoryRunStore
    now: datetime
    tables: Tables

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is written inside is undone, alone, when the `with` is left by an error."""
        before = copy.deepcopy(vars(self.tables))
        try:
            yield
        except BaseException:
            vars(self.tables).update(before)
            raise

    def write(self, effect: Any) -> None:
        """A business write that commits with the step."""
        self.tables.effects.append(copy.deepcopy(effect))


class MemoryDatabase:
    """Opens transactions one at a time. `clock` moves only when a test moves it."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.tables = Tables()
        self.now = now
        self.before_commit: Callable[[], None] = lambda: None
        """A test's fault: raises to lose the commit."""
        self.after_commit: Callable[[], None] = lambda: None
        """A test's fault: raises to lose the answer of a commit that happened."""

    def move_clock(self, by: timedelta) -> None:
        self.now += by

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        before = self.tables.copy()
        try:
            yield MemoryTransaction(MemoryRunStore(self.tables, self.now), self.now, self.tables)
            self.before_commit()
        except BaseException:
            self.tables = before
            raise
        self.after_commit()


class MemoryRunStore(MemoryRunJobs):
    """Implements `everest.workflow.ports.RunStore`."""

    def at_once(self) -> AbstractContextManager[None]:
        return nullcontext()

    # -------------------------------------------------------------------------------------------------- runs

    def get(self, run_id: int) -> Run | None:
        return copy.deepcopy(self._t.runs.get(run_id))

    def lock(self, run_id: int) -> Run:
        run = self.get(run_id)
        if run is None:
            raise DocumentMissing(f"workflow run {run_id} does not exist")
        return run

    def lock_try(self, run_id: int, step: str, branch: str) -> tuple[Run, Try | None]:
        run = self.lock(run_id)
        record = self.step(run_id, step, run.visit, branch)
        return run, None if record is None else Try(record.status, record.attempt)

    def standing(self, run_id: int, step: str, branch: str, lock: bool = False) -> tuple[Standing | None, Try | None]:
        run = self._t.runs.get(run_id)
        if run is None:
            return None, None
        record = self.step(run_id, step, run.visit, branch)
        standing = Standing(run.id, run.status, run.current_step, run.visit, run.n, run.dag_run_id)
        return standing, None if record is None else Try(record.status, record.attempt)

    def find(self, workflow: str, key: str) -> int | None:
        for run in self._t.runs.values():
            if (run.workflow, run.idempotency_key) == (workflow, key):
                return run.id
        return None

    def insert(self, run: Run) -> int:
        held = None if run.idempotency_key is None else self.find(run.workflow, run.idempotency_key)
        if held is not None:
            return held
        run_id = len(self._t.runs) + 1
        self._t.runs[run_id] = replace(_checked(run), id=run_id, created_at=self._now)
        return run_id

    def save(self, run: Run) -> None:
        self._t.runs[run.id] = replace(_checked(run), updated_at=self._now)

    def step_on(self, run: Run, token: Token, output: dict[str, Any]) -> None:
        held, newest = self.lock_try(run.id, token.step, token.branch)
        if (held.status, held.dag_run_id) != ("running", token.dag_run_id):
            raise Stale(f"workflow {run.id} is {held.status}, of DAG run {held.dag_run_id}")
        if (held.current_step, held.visit) != (token.step, token.visit):
            raise Stale(f"workflow {run.id} stands at {held.current_step}, visit {held.visit}")
        if newest != Try("running", token.attempt):
            raise Fenced(NEWER_TRY)
        self.finish_step(run, token.step, "", "completed", output, None)
        self.save(replace(run, finished_at=None if run.current_step else self._now))

    def ends(self, run_ids: Sequence[int]) -> list[Ended]:
        found = (self._t.runs[one] for one in sorted(set(run_ids)) if one in self._t.runs)
        return [Ended(one.id, one.status, one.finished_at) for one in found]

    def states(self, run_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        return {one: copy.deepcopy(self._t.runs[one].state) for one in run_ids if one in self._t.runs}

    def waiters(self, run_id: int) -> list[int]:
        return sorted(one for one, waited in self._waiting().items() if run_id in waited)

    def hold(self, run_ids: Iterable[int]) -> None:
        """Nobody else is here."""

    def waits_on(self, run_ids: Iterable[int]) -> dict[int, list[int]]:
        wanted = set(run_ids)
        return {one: waited for one, waited in self._waiting().items() if one in wanted}

    def _waiting(self) -> dict[int, list[int]]:
        return {
            run.id: list(run.waiting["ids"])
            for run in self._t.runs.values()
            if run.waiting and "ids" in run.waiting and run.status not in FINAL and run.status != "failed"
        }

    def nested_children(self, run_id: int) -> list[int]:
        return [
            run.id
            for run in self._t.runs.values()
            if run.parent_id == run_id and run.parent_step is not None and run.status not in FINAL
        ]

    def child_of(self, run_id: int, step: str, visit: int) -> int | None:
        for run in self._t.runs.values():
            if (run.parent_id, run.parent_step, run.parent_visit) == (run_id, step, visit):
                return run.id
        return None

    def group(self, group_key: str) -> list[int]:
        return [run.id for run in self._t.runs.values() if run.group_key == group_key]

    # ------------------------------------------------------------------------------------------------- steps

    def begin_attempt(self, run: Run, step: str, branch: str, attempt: int = 1) -> None:
        key = (run.id, step, run.visit, branch)
        newest = self._t.steps[key].attempt if key in self._t.steps else 0
        assert attempt == newest + 1, f"attempt {attempt} of step {step} comes after {newest}"
        self._t.steps[key] = StepRecord(step, run.visit, branch, "running", attempt, run.n, None)

    def step(self, run_id: int, step: str, visit: int, branch: str) -> StepRecord | None:
        return self._t.steps.get((run_id, step, visit, branch))

    def branches(self, run_id: int, step: str, visit: int) -> list[StepRecord]:
        return [one for key, one in self._t.steps.items() if key[:3] == (run_id, step, visit)]

    def finish_step(
        self,
        run: Run,
        step: str,
        branch: str,
        status: str,
        output: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> None:
        key = (run.id, step, run.visit, branch)
        if key in self._t.steps:
            self._t.steps[key] = replace(self._t.steps[key], status=status, output=plain(output))
            state_after = plain(run.state) if status == "completed" else None
            self._t.ends[key] = {"error": plain(error), "state_after": state_after}

    def others_at_work(self, run: Run, step: str, branch: str) -> bool:
        items = self._t.items.get((run.id, step, run.visit))
        if items is not None:
            return any(
                one["status"] == "running" and one["n"] == run.n and one["slot"] != branch for one in items.values()
            )
        others = (one for one in self.branches(run.id, step, run.visit) if one.branch not in ("", branch))
        return any(one.status == "running" and one.n == run.n for one in others)

    # ------------------------------------------------------------------------------------ history and messages

    def add_event(
        self, run: Run, event: str, step: str | None, attempt: int | None, detail: dict[str, Any] | None
    ) -> None:
        self._t.events.append({"run": run.id, "event": event, "step": step, "attempt": attempt, "detail": detail})

    def add_handover(self, run: Run, step: str, attempt: int, following: str) -> None:
        self.add_event(run, "completed", step, attempt, None)
        self.add_event(run, "started", following, 1, None)

    def rerun(self, shadow_id: int, actor: str, reason: str | None) -> str:
        run = self.lock(self._t.shadows[shadow_id]["workflow_id"])
        if run.status != "failed":
            raise Conflict(f"workflow {run.id} is {run.status}, only failed can be run again")
        if run.compensation is not None:
            raise Conflict(f"workflow {run.id} has already been compensated: start a new one")
        run.status, run.recovered, run.waiting, run.wakes_at, run.paused_status = "running", 0, None, None, None
        run.error_code, run.error, run.failed_n, run.failed_attempt = None, None, None, None
        run.carrier_shadow_id, run.n = shadow_id, run.n + 1
        clock.start_anew(run, self._now)
        run.dag_run_id = self.dag_run_id(run)
        self.save(run)
        self.announce(run, Outcome("PENDING"))
        self.enqueue(run)
        self.add_event(run, "rerun", run.current_step, None, {"actor": actor, "reason": reason})
        return run.dag_run_id


def _checked(run: Run) -> Run:
    """A copy whose JSON columns went through the codec, as a database would keep them."""
    kept = copy.deepcopy(run)
    for name in ("payload", "state", "waiting", "counters", "error"):
        setattr(kept, name, plain(getattr(kept, name)))
    return kept
