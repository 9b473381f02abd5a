"""The jobs of a run: its shadow rows, which tell a document's sender how it stands, and the outbox row that announces
its next DAG run.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from everest.errors import DocumentMissing
from everest.store.database import last_insert_id
from everest.store.fanout import QUERIES, MysqlFanout
from everest.workflow.records import Outcome, Run, ShadowRow
from ingest_consumer import by_hand
from ingest_consumer import shadow as jobs


class MysqlRunJobs(MysqlFanout):
    """The part of `RunStore` that the queue sees; `MysqlRunStore` adds runs and steps."""

    def shadow(self, shadow_id: int, lock: bool = False) -> ShadowRow | None:
        query = QUERIES.lock_shadow if lock else QUERIES.get_shadow
        row = query(self._conn, shadow_id=shadow_id)
        return None if row is None else ShadowRow(**row)

    def insert_shadow(self, run: Run, transaksi_id: int | None, nomer_nota: str | None, payload: str) -> int:
        QUERIES.insert_shadow(
            self._conn,
            transaksi_id=transaksi_id,
            nomer_nota=nomer_nota,
            workflow_id=run.id,
            payload=payload,
            dag_id=run.dag_id,
        )
        return last_insert_id(self._conn)

    def link_shadow(self, shadow_id: int, run_id: int) -> None:
        QUERIES.link_shadow(self._conn, shadow_id=shadow_id, workflow_id=run_id)

    def set_shadow(self, shadow_id: int, outcome: Outcome, current_step: str | None) -> None:
        self._write(QUERIES.set_shadow, shadow_id=shadow_id, current_step=current_step, **_columns(outcome))

    def set_shadows(self, run: Run, outcome: Outcome) -> None:
        self._write(QUERIES.set_shadows, workflow_id=run.id, current_step=run.current_step, **_columns(outcome))

    def part_strangers(self, run: Run, nota: str | None) -> None:
        self._write(QUERIES.part_strangers, workflow_id=run.id, carrier_id=run.carrier_shadow_id, nota=nota or None)

    def announce(self, run: Run, outcome: Outcome) -> None:
        QUERIES.announce(
            self._conn,
            shadow_id=run.carrier_shadow_id,
            worker_status=outcome.worker_status,
            current_step=run.current_step,
            response=as_text(outcome.response),
            dag_id=run.dag_id,
            dag_run_id=run.dag_run_id,
            n=run.n,
        )
        QUERIES.let_others_wait(
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
        QUERIES.unsend(self._conn, run_id=run.id)

    def audit(self, actor: str, action: str, run: Run, reason: str | None, detail: dict[str, Any] | None) -> None:
        row = None if run.carrier_shadow_id is None else jobs.get(self._conn, run.carrier_shadow_id)
        jobs.audit(self._conn, actor, action, row, reason, {"workflow_status": run.status, **(detail or {})})

    def outcome_of(self, run: Run) -> Outcome:
        row = QUERIES.shadow_outcome(self._conn, shadow_id=run.carrier_shadow_id)
        if row is None:
            return Outcome("FAILED", run.error, run.error_code, None)
        return Outcome(
            row["worker_status"],
            None if row["response"] is None else json.loads(row["response"]),
            row["error_code"],
            row["error"],
        )

    def rerun(self, shadow_id: int, actor: str, reason: str | None) -> str:
        return by_hand.rerun(self._conn, shadow_id, actor, reason)


def _carrier(run: Run) -> int:
    if run.carrier_shadow_id is None:
        raise DocumentMissing(f"workflow run {run.id} has no shadow row to carry its message")
    return run.carrier_shadow_id


def as_text(value: dict[str, Any] | None) -> str | None:
    """Plain JSON for people and pages; state goes through the codec instead."""
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _columns(outcome: Outcome) -> dict[str, Any]:
    return {
        "worker_status": outcome.worker_status,
        "response": as_text(outcome.response),
        "error_code": outcome.error_code,
        "error": outcome.error,
    }
