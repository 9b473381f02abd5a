"""The rows of workflow runs in MySQL: the engine's port, on one open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from everest.errors import DocumentMissing
from everest.store.database import aware, last_insert_id
from everest.store.fanout import QUERIES as _QUERIES
from everest.store.run_jobs import MysqlRunJobs, as_text
from everest.workflow import codec
from everest.workflow.records import Ended, Run, Standing, StepRecord, Try
from everest.workflow.ticket import NEWER_TRY, Fenced, Stale, Token

_RUN_JSON = ("payload", "state", "waiting", "counters", "error")
_RUN_INSTANTS = ("wakes_at", "deadline_at", "paused_at", "created_at", "updated_at", "finished_at")


class MysqlRunStore(MysqlRunJobs):
    """Implements `everest.workflow.ports.RunStore`; the caller owns the transaction."""

    # ------------------------------------------------------------------------------------------------- runs

    def get(self, run_id: int) -> Run | None:
        return self._run(_QUERIES.get_run(self._conn, run_id=run_id))

    def lock(self, run_id: int) -> Run:
        run = self._run(_QUERIES.lock_run(self._conn, run_id=run_id))
        if run is None:
            raise DocumentMissing(f"workflow run {run_id} does not exist")
        return run

    def lock_try(self, run_id: int, step: str, branch: str) -> tuple[Run, Try | None]:
        row = _QUERIES.lock_run_and_step(self._conn, run_id=run_id, step=step, branch=branch)
        if row is None:
            raise DocumentMissing(f"workflow run {run_id} does not exist")
        tried = _try(row)
        run = self._run(row)
        assert run is not None
        return run, tried

    def standing(self, run_id: int, step: str, branch: str, lock: bool = False) -> tuple[Standing | None, Try | None]:
        query = _QUERIES.lock_standing if lock else _QUERIES.standing
        row = query(self._conn, run_id=run_id, step=step, branch=branch)
        if row is None:
            return None, None
        tried = _try(row)
        return Standing(**row), tried

    def find(self, workflow: str, key: str) -> int | None:
        found = _QUERIES.find_run(self._conn, workflow=workflow, idempotency_key=key)
        return None if found is None else int(found)

    def insert(self, run: Run) -> int:
        _QUERIES.insert_run(
            self._conn,
            workflow=run.workflow,
            version=run.version,
            definition_hash=run.definition_hash,
            idempotency_key=run.idempotency_key,
            payload=codec.dumps(run.payload),
            state=codec.dumps(run.state),
            status=run.status,
            current_step=run.current_step,
            visit=run.visit,
            n=run.n,
            dag_id=run.dag_id,
            dag_run_id=run.dag_run_id,
            carrier_shadow_id=run.carrier_shadow_id,
            parent_id=run.parent_id,
            parent_step=run.parent_step,
            parent_visit=run.parent_visit,
            parent_index=run.parent_index,
            group_key=run.group_key,
            priority=run.priority,
            deadline_at=_naive(run.deadline_at),
        )
        return last_insert_id(self._conn)

    def save(self, run: Run) -> None:
        self._write(
            _QUERIES.save_run,
            run_id=run.id,
            state=codec.dumps(run.state),
            status=run.status,
            paused_status=run.paused_status,
            waiting=None if run.waiting is None else codec.dumps(run.waiting),
            wait_sequence=run.wait_sequence,
            wakes_at=_naive(run.wakes_at),
            current_step=run.current_step,
            visit=run.visit,
            n=run.n,
            dag_id=run.dag_id,
            dag_run_id=run.dag_run_id,
            carrier_shadow_id=run.carrier_shadow_id,
            deadline_at=_naive(run.deadline_at),
            paused_at=_naive(run.paused_at),
            transitions=run.transitions,
            counters=codec.dumps(run.counters) if run.counters else None,
            recovered=run.recovered,
            compensation=run.compensation,
            error_code=run.error_code,
            error=as_text(run.error),
            failed_n=run.failed_n,
            failed_attempt=run.failed_attempt,
            finished_at=_naive(run.finished_at),
        )

    def step_on(self, run: Run, token: Token, output: dict[str, Any]) -> None:
        state = codec.dumps(run.state)
        self._write(
            _QUERIES.step_on,
            Stale(f"workflow {run.id} is not as it was when step {token.step} began"),
            run_id=run.id,
            dag_run_id=token.dag_run_id,
            at_step=token.step,
            visit=token.visit,
            status=run.status,
            current_step=run.current_step,
            state=state,
            transitions=run.transitions,
            counters=codec.dumps(run.counters) if run.counters else None,
        )
        self._write(
            _QUERIES.finish_newest_try,
            Fenced(NEWER_TRY),
            run_id=run.id,
            step=token.step,
            visit=token.visit,
            attempt=token.attempt,
            output=codec.dumps(output),
            state_after=state,
        )

    @staticmethod
    def _run(row: dict[str, Any] | None) -> Run | None:
        if row is None:
            return None
        values = {key: codec.loads(value) if key in _RUN_JSON else value for key, value in row.items()}
        values |= {key: aware(values[key]) for key in _RUN_INSTANTS}
        values["counters"] = values["counters"] or {}
        return Run(**values)

    def ends(self, run_ids: Sequence[int]) -> list[Ended]:
        wanted = sorted(set(run_ids))
        rows = _QUERIES.ends(self._conn, run_ids=wanted) if wanted else ()
        return [Ended(row["id"], row["status"], aware(row["finished_at"])) for row in rows]

    def states(self, run_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        rows = _QUERIES.states(self._conn, run_ids=sorted(set(run_ids))) if run_ids else ()
        return {row["id"]: codec.loads(row["state"]) for row in rows}

    def waiters(self, run_id: int) -> list[int]:
        return [row["id"] for row in _QUERIES.waiters(self._conn, run_id=run_id)]

    def hold(self, run_ids: Iterable[int]) -> None:
        wanted = sorted(set(run_ids))
        if wanted:
            list(_QUERIES.hold_runs(self._conn, run_ids=wanted))

    def waits_on(self, run_ids: Iterable[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        wanted = sorted(set(run_ids))
        for row in _QUERIES.waits_on(self._conn, run_ids=wanted) if wanted else ():
            found.setdefault(row["waiter"], []).append(row["waited"])
        return found

    def nested_children(self, run_id: int) -> list[int]:
        return [row["id"] for row in _QUERIES.nested_children(self._conn, run_id=run_id)]

    def child_of(self, run_id: int, step: str, visit: int) -> int | None:
        found = _QUERIES.child_of(self._conn, run_id=run_id, step=step, visit=visit)
        return None if found is None else int(found)

    def group(self, group_key: str) -> list[int]:
        return [row["id"] for row in _QUERIES.group_members(self._conn, group_key=group_key)]

    # ------------------------------------------------------------------------------------------------ steps

    def begin_attempt(self, run: Run, step: str, branch: str, attempt: int = 1) -> None:
        query = _QUERIES.first_attempt if attempt == 1 else _QUERIES.next_attempt
        self._write(query, run_id=run.id, step=step, visit=run.visit, branch=branch, attempt=attempt, n=run.n)

    def step(self, run_id: int, step: str, visit: int, branch: str) -> StepRecord | None:
        row = _QUERIES.get_step(self._conn, run_id=run_id, step=step, visit=visit, branch=branch)
        if row is None:
            return None
        return StepRecord(**{**row, "output": codec.loads(row["output"])})

    def branches(self, run_id: int, step: str, visit: int) -> list[StepRecord]:
        rows = _QUERIES.branches(self._conn, run_id=run_id, step=step, visit=visit)
        return [StepRecord(**{**row, "output": codec.loads(row["output"])}) for row in rows]

    def finish_step(
        self,
        run: Run,
        step: str,
        branch: str,
        status: str,
        output: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> None:
        self._write(
            _QUERIES.finish_step,
            run_id=run.id,
            step=step,
            visit=run.visit,
            branch=branch,
            status=status,
            output=None if output is None else codec.dumps(output),
            state_after=codec.dumps(run.state) if status == "completed" else None,
            error=as_text(error),
        )

    def add_event(
        self, run: Run, event: str, step: str | None, attempt: int | None, detail: dict[str, Any] | None
    ) -> None:
        self._write(
            _QUERIES.add_event,
            run_id=run.id,
            event=event,
            step=step,
            visit=run.visit,
            attempt=attempt,
            n=run.n,
            detail=as_text(detail),
        )

    def add_handover(self, run: Run, step: str, attempt: int, following: str) -> None:
        self._write(
            _QUERIES.add_handover,
            run_id=run.id,
            step=step,
            visit=run.visit,
            attempt=attempt,
            n=run.n,
            following=following,
        )


def _try(row: dict[str, Any]) -> Try | None:
    """Takes the step's columns out of the row."""
    status, attempt = row.pop("step_status"), row.pop("step_attempt")
    return None if status is None else Try(status, attempt)


def _naive(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC).replace(tzinfo=None)
