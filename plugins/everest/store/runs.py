"""The rows of workflow runs in MySQL: the engine's port, on one open transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from everest.errors import DocumentMissing
from everest.store.database import last_insert_id
from everest.store.fanout import QUERIES as _QUERIES
from everest.store.fanout import MysqlFanout
from everest.workflow import codec
from everest.workflow.records import Ended, Outcome, Run, ShadowRow, Standing, StepRecord, Try
from everest.workflow.ticket import NEWER_TRY, Fenced, Stale, Token
from ingest_consumer import shadow as jobs

_RUN_JSON = ("payload", "state", "waiting", "counters", "error")
_RUN_INSTANTS = ("wakes_at", "deadline_at", "paused_at", "created_at", "updated_at", "finished_at")


class MysqlRunStore(MysqlFanout):
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
            error=_text(run.error),
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
        values |= {key: _aware(values[key]) for key in _RUN_INSTANTS}
        values["counters"] = values["counters"] or {}
        return Run(**values)

    def ends(self, run_ids: Sequence[int]) -> list[Ended]:
        wanted = sorted(set(run_ids))
        rows = _QUERIES.ends(self._conn, run_ids=wanted) if wanted else ()
        return [Ended(row["id"], row["status"], _aware(row["finished_at"])) for row in rows]

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
            error=_text(error),
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
            detail=_text(detail),
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

    # ----------------------------------------------------------------------------------------- shadow rows

    def shadow(self, shadow_id: int, lock: bool = False) -> ShadowRow | None:
        query = _QUERIES.lock_shadow if lock else _QUERIES.get_shadow
        row = query(self._conn, shadow_id=shadow_id)
        return None if row is None else ShadowRow(**row)

    def insert_shadow(self, run: Run, transaksi_id: int | None, nomer_nota: str | None, payload: str) -> int:
        _QUERIES.insert_shadow(
            self._conn,
            transaksi_id=transaksi_id,
            nomer_nota=nomer_nota,
            workflow_id=run.id,
            payload=payload,
            dag_id=run.dag_id,
        )
        return last_insert_id(self._conn)

    def link_shadow(self, shadow_id: int, run_id: int) -> None:
        _QUERIES.link_shadow(self._conn, shadow_id=shadow_id, workflow_id=run_id)

    def set_shadow(self, shadow_id: int, outcome: Outcome, current_step: str | None) -> None:
        self._write(_QUERIES.set_shadow, shadow_id=shadow_id, current_step=current_step, **_columns(outcome))

    def set_shadows(self, run: Run, outcome: Outcome) -> None:
        self._write(_QUERIES.set_shadows, workflow_id=run.id, current_step=run.current_step, **_columns(outcome))

    def part_strangers(self, run: Run, nota: str | None) -> None:
        self._write(_QUERIES.part_strangers, workflow_id=run.id, carrier_id=run.carrier_shadow_id, nota=nota or None)

    def announce(self, run: Run, outcome: Outcome) -> None:
        _QUERIES.announce(
            self._conn,
            shadow_id=run.carrier_shadow_id,
            worker_status=outcome.worker_status,
            current_step=run.current_step,
            response=_text(outcome.response),
            dag_id=run.dag_id,
            dag_run_id=run.dag_run_id,
            n=run.n,
        )
        _QUERIES.let_others_wait(
            self._conn, workflow_id=run.id, carrier_id=run.carrier_shadow_id, current_step=run.current_step
        )

    def dag_run_id(self, run: Run) -> str:
        return jobs.dag_run_id(run.workflow, run.idempotency_key, run.id, _carrier(run), run.n)

    def enqueue(self, run: Run, available_at: datetime | None = None) -> None:
        carrier = self.shadow(_carrier(run))
        body = jobs.outbox_body(
            shadow_id=_carrier(run),
            workflow=run.workflow,
            workflow_id=run.id,
            dag_id=run.dag_id,
            dag_run_id=run.dag_run_id,
            n=run.n,
            transaksi_id=carrier.transaksi_id if carrier else None,
            nota=carrier.nomer_nota if carrier else None,
        )
        jobs.enqueue(
            self._conn, shadow_id=run.carrier_shadow_id, workflow_id=run.id, body=body, available_at=available_at
        )

    def unsend(self, run: Run) -> None:
        _QUERIES.unsend(self._conn, run_id=run.id)

    def audit(self, actor: str, action: str, run: Run, reason: str | None, detail: dict[str, Any] | None) -> None:
        row = None if run.carrier_shadow_id is None else jobs.get(self._conn, run.carrier_shadow_id)
        jobs.audit(self._conn, actor, action, row, reason, {"workflow_status": run.status, **(detail or {})})

    def outcome_of(self, run: Run) -> Outcome:
        row = _QUERIES.shadow_outcome(self._conn, shadow_id=run.carrier_shadow_id)
        if row is None:
            return Outcome("FAILED", run.error, run.error_code, None)
        return Outcome(
            row["worker_status"],
            None if row["response"] is None else json.loads(row["response"]),
            row["error_code"],
            row["error"],
        )

    def rerun(self, shadow_id: int, actor: str, reason: str | None) -> str:
        return jobs.rerun(self._conn, shadow_id, actor, reason)


def _try(row: dict[str, Any]) -> Try | None:
    """Takes the step's columns out of the row."""
    status, attempt = row.pop("step_status"), row.pop("step_attempt")
    return None if status is None else Try(status, attempt)


def _carrier(run: Run) -> int:
    if run.carrier_shadow_id is None:
        raise DocumentMissing(f"workflow run {run.id} has no shadow row to carry its message")
    return run.carrier_shadow_id


def _text(value: dict[str, Any] | None) -> str | None:
    """Plain JSON for people and pages; state goes through the codec instead."""
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _naive(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC).replace(tzinfo=None)


def _aware(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.replace(tzinfo=UTC)


def _columns(outcome: Outcome) -> dict[str, Any]:
    return {
        "worker_status": outcome.worker_status,
        "response": _text(outcome.response),
        "error_code": outcome.error_code,
        "error": outcome.error,
    }
