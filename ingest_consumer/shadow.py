"""The shadow row, seen from the queue: claim it, hand it over, mark its dead letter, run it again, cancel it.

This is where a message meets the truth. `everest` imports the rerun primitive from here (never the other way
round), so the functions take any DB-API connection with tuple cursors and autocommit off, and the *caller* commits.
Locks: run row, then shadow rows, then outbox. Driver errors pass through untouched.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosql

from ingest_consumer.errors import RerunRefused

JOBS_EXCHANGE = "everest.jobs.x"
DEAD_LETTER_EXCHANGE = "everest.jobs.dlx"
ROUTING_KEY = "job.process"
OPNAME_POSTING = "opname_posting"
"""The workflow of a message that names none: what the web application sends."""

FINAL = ("COMPLETED", "CANCELLED")
REFUSED_BY_A_PERSON = 403
"""The one failure that is nobody's fault: it gets no dead letter."""
CANCELLED_BY_HAND = 499

# Airflow's allowed_run_id_pattern, and its column.
_RUN_ID_TEXT = re.compile(r"[A-Za-z0-9_.~:+-]+")
MAX_RUN_ID_BYTES = 199


@dataclass(frozen=True)
class Shadow:
    """A row of rabbit_publish_shadow. `n` and `dag_run_id` are None while no run was announced (a foreign row);
    `workflow` comes from the run row, None while nobody linked one. Instants are naive UTC."""

    id: int
    transaksi_id: int | None
    nomer_nota: str | None
    workflow_id: int | None
    publish_status: str
    worker_status: str
    worker_at: datetime | None
    attempts: int
    current_step: str | None
    response: str | None
    error_code: int | None
    error: str | None
    dag_id: str | None
    dag_run_id: str | None
    n: int | None
    dead_lettered_at: datetime | None
    handed_over_at: datetime | None
    created_at: datetime
    workflow: str | None = None
    published_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        return self.worker_status in FINAL

    @property
    def needs_dead_letter(self) -> bool:
        """FAILED with a fault: every code but a person's refusal."""
        return self.worker_status == "FAILED" and self.error_code != REFUSED_BY_A_PERSON

    @property
    def reason(self) -> str:
        """Why the job stands where it stands, in the words of whoever wrote it."""
        if self.error:
            return self.error
        try:
            return str(json.loads(self.response or "")["message"])
        except (ValueError, KeyError, TypeError):
            return f"{self.worker_status} without a recorded reason"


@dataclass(frozen=True)
class Relative:
    """A workflow that began another one, or that another one began. relation: "part of", "started by" (upwards),
    "runs", "started" (downwards). n: its newest DAG run that a consumer started, 0 when none did yet."""

    relation: str
    dag_id: str
    dag_run_id: str
    n: int
    id: int


queries: Any = aiosql.from_path(
    Path(__file__).with_name("queries.sql"),
    "pymysql",
    record_classes={"Shadow": Shadow, "Relative": Relative},
    mandatory_parameters=False,
)


def get(conn: Any, shadow_id: int) -> Shadow | None:
    row: Shadow | None = queries.get_shadow(conn, shadow_id=shadow_id)
    return row


def get_many(conn: Any, shadow_ids: set[int]) -> dict[int, Shadow]:
    if not shadow_ids:
        return {}
    return {row.id: row for row in queries.get_shadows(conn, shadow_ids=tuple(sorted(shadow_ids)))}


def dag_run_id(workflow: str, key: str | int | None, workflow_id: int | None, shadow_id: int, n: int) -> str:
    """The name of DAG run n of a job. A key that Airflow would not take in a run id gives way to workflow_id."""
    for name in (key, workflow_id):
        run_id = f"{workflow}__{name}__{shadow_id}__{n}"
        fits = len(run_id.encode()) <= MAX_RUN_ID_BYTES and _RUN_ID_TEXT.fullmatch(run_id) and ".." not in run_id
        if name is not None and name != "" and fits:
            return run_id
    raise ValueError(f"no run id for workflow {workflow!r}, shadow row {shadow_id}: neither key nor workflow_id fits")


def outbox_body(
    *,
    shadow_id: int,
    workflow: str,
    workflow_id: int | None,
    dag_id: str,
    dag_run_id: str,
    n: int,
    transaksi_id: int | None = None,
    nota: str | None = None,
) -> str:
    """The message that announces DAG run n. Ids only: what is true stands in the row."""
    document = {} if transaksi_id is None else {"transaksi_id": transaksi_id}
    name = {} if nota is None else {"nota": nota}
    body = {
        **document,
        "shadow_id": shadow_id,
        **name,
        "v": 1,
        "workflow": workflow,
        "workflow_id": workflow_id,
        "dag_id": dag_id,
        "dag_run_id": dag_run_id,
        "n": n,
    }
    return json.dumps(body, ensure_ascii=False)


def enqueue(
    conn: Any,
    *,
    shadow_id: int | None,
    workflow_id: int | None,
    body: str,
    available_at: datetime | None = None,
    headers: dict[str, Any] | None = None,
    exchange: str = JOBS_EXCHANGE,
    routing_key: str = ROUTING_KEY,
) -> None:
    """Writes an outbox row; the relay publishes it from `available_at` (aware, or naive UTC; None = now) on."""
    if available_at is not None and available_at.tzinfo is not None:
        available_at = available_at.astimezone(UTC).replace(tzinfo=None)  # drivers drop the zone silently
    queries.enqueue(
        conn,
        shadow_id=shadow_id,
        workflow_id=workflow_id,
        exchange=exchange,
        routing_key=routing_key,
        body=body,
        headers=None if headers is None else json.dumps(headers),
        available_at=available_at,
    )


def claim(conn: Any, shadow_id: int, expected_dag_run_id: str | None, dag_id: str, dag_run_id: str, n: int) -> bool:
    """CAS PENDING -> PROCESSING; False when the row no longer announces `expected_dag_run_id`."""
    changed = queries.claim(
        conn, shadow_id=shadow_id, expected_dag_run_id=expected_dag_run_id, dag_id=dag_id, dag_run_id=dag_run_id, n=n
    )
    return bool(changed)


def mark_dead_lettered(conn: Any, shadow_id: int, dag_run_id: str | None) -> bool:
    """CAS on (FAILED, this run, no dead letter yet); True = this caller owes the dead letter."""
    return bool(queries.mark_dead_lettered(conn, shadow_id=shadow_id, dag_run_id=dag_run_id))


def hand_over(conn: Any, shadow_id: int, dag_run_id: str, body: str) -> bool:
    """Leaves the message's body with the row while its run is still at work; False = the run ended meanwhile."""
    return bool(queries.hand_over(conn, shadow_id=shadow_id, dag_run_id=dag_run_id, body=body))


def postpone(conn: Any, body: str, shadow_id: int, seconds: int) -> None:
    """The same message, same n, again in `seconds`; the shadow row stays as it is. The copy that has just come back
    goes, else a DAG that is paused for a week would leave thousands of them. (By their numbers: a search would wait for
    the rows that the relay holds.)"""
    message = {"shadow_id": shadow_id, "body": body, "exchange": JOBS_EXCHANGE}
    spent = tuple(one for (one,) in queries.spent_copies(conn, **message))
    if spent:
        queries.drop_spent(conn, ids=spent)
    queries.postpone(conn, **message, seconds=seconds, routing_key=ROUTING_KEY)


def rerun(conn: Any, shadow_id: int, actor: str, reason: str | None = None) -> str:
    """Announces the next DAG run of a FAILED job and returns its dag_run_id; works with and without a run row.

    The row given becomes the carrier. Raises RerunRefused when the row is not FAILED (or changed meanwhile), its
    run is not failed, or its compensations have begun. The caller commits, or rolls back on an error.
    """
    row, run = _lock(conn, shadow_id)
    if row.worker_status != "FAILED":
        words = f"shadow row {shadow_id} is {row.worker_status}, only FAILED can be run again"
        raise RerunRefused(words, row.worker_status)
    if run is None:
        if row.transaksi_id is None:
            raise RerunRefused(f"shadow row {shadow_id} has neither a document nor a workflow", row.worker_status)
        workflow, key, dag_id, n = OPNAME_POSTING, str(row.transaksi_id), row.dag_id or OPNAME_POSTING, (row.n or 1) + 1
    else:
        if run["status"] != "failed":
            words = f"workflow {run['id']} is {run['status']}, only failed can be run again"
            raise RerunRefused(words, row.worker_status)
        if run["compensation"] is not None:
            raise RerunRefused(f"workflow {run['id']} is compensated: start a new one", row.worker_status)
        workflow, key, dag_id, n = run["workflow"], run["idempotency_key"], run["dag_id"], run["n"] + 1
    run_id = dag_run_id(workflow, key, row.workflow_id, shadow_id, n)
    announced = {"shadow_id": shadow_id, "workflow_id": row.workflow_id, "dag_run_id": run_id, "n": n}
    if not queries.rerun_shadow(conn, **announced, dag_id=dag_id, old_dag_run_id=row.dag_run_id):
        raise RerunRefused(f"shadow row {shadow_id} changed meanwhile; look again", row.worker_status)
    if run is not None:  # locked first, written second: a refusal above leaves nothing half done
        queries.rerun_run(conn, **announced)
        queries.rerun_followers(conn, **announced, dag_id=dag_id)
        _event(conn, row, "rerun", actor, reason)
    body = outbox_body(
        shadow_id=shadow_id,
        workflow=workflow,
        workflow_id=row.workflow_id,
        dag_id=dag_id,
        dag_run_id=run_id,
        n=n,
        transaksi_id=row.transaksi_id,
        nota=row.nomer_nota,
    )
    enqueue(conn, shadow_id=shadow_id, workflow_id=row.workflow_id, body=body)
    audit(conn, actor, "rerun", row, reason, {"worker_status": "PENDING", "dag_run_id": run_id, "n": n})
    return run_id


def cancel_dropped(conn: Any, shadow_id: int, actor: str, reason: str) -> bool:
    """A person drops the dead letter of a FAILED document: it and its run are CANCELLED with code 499.

    False (and nothing changed) when the document is not FAILED any more. Raises RerunRefused for a workflow that
    carries no document: to cancel one takes its definition (runs nested in it, its `on_cancel`). The caller commits.
    """
    row, run = _lock(conn, shadow_id)
    if row.worker_status != "FAILED" or (run is not None and run["status"] != "failed"):
        return False
    if run is not None and row.transaksi_id is None:
        refusal = f"workflow {run['id']} carries no document; type: python -m everest workflow cancel {run['id']}"
        raise RerunRefused(refusal, row.worker_status)
    error = f"Dibatalkan oleh {actor}: {reason}. Kesalahan sebelumnya: {row.reason}"
    response = json.dumps(
        {"status": "error", "code": CANCELLED_BY_HAND, "message": error, "errors": _errors(row)}, ensure_ascii=False
    )
    words = {"shadow_id": shadow_id, "workflow_id": row.workflow_id, "error": error, "response": response}
    if not queries.cancel_shadow(conn, **words):
        return False
    if run is not None:
        queries.cancel_run(conn, **words)
        queries.cancel_followers(conn, **words)
        _event(conn, row, "cancelled", actor, reason)
    audit(conn, actor, "drop", row, reason, {"worker_status": "CANCELLED", "error_code": CANCELLED_BY_HAND})
    return True


def audit(conn: Any, actor: str, action: str, row: Shadow | None, reason: str | None, after: dict[str, Any]) -> None:
    """One line in the audit log about a job (None = a message that has none)."""
    told = ("worker_status", "error_code", "error", "dag_run_id", "n")
    before = {name: getattr(row, name) for name in told} if row else None
    queries.audit(
        conn,
        actor=actor[:100],
        action=action,
        transaksi_id=row.transaksi_id if row else None,
        nomer_nota=row.nomer_nota if row else None,
        shadow_id=row.id if row else None,
        workflow_id=row.workflow_id if row else None,
        reason=reason[:500] if reason else None,
        before_value=json.dumps(before, ensure_ascii=False) if before else None,
        after_value=json.dumps(after, ensure_ascii=False),
    )


def _lock(conn: Any, shadow_id: int) -> tuple[Shadow, dict[str, Any] | None]:
    """The row as it is under its run's lock, and the run. A row without a run is guarded by the CAS alone."""
    row = get(conn, shadow_id)
    if row is None:
        raise RerunRefused(f"there is no shadow row {shadow_id}")
    if row.workflow_id is None:
        return row, None
    found = queries.lock_run(conn, workflow_id=row.workflow_id)
    row = get(conn, shadow_id)  # read again: it may have changed before we had the lock
    if row is None or found is None:
        status = None if row is None else row.worker_status
        raise RerunRefused(f"shadow row {shadow_id} names a workflow that does not exist", status)
    columns = ("id", "workflow", "idempotency_key", "status", "n", "dag_id", "dag_run_id", "compensation", "error_code")
    return row, dict(zip(columns, found, strict=True))


def _event(conn: Any, row: Shadow, event: str, actor: str, reason: str | None) -> None:
    detail = json.dumps({"actor": actor, "reason": reason}, ensure_ascii=False)
    queries.run_event(conn, workflow_id=row.workflow_id, event=event, detail=detail)


def _errors(row: Shadow) -> list[Any]:
    try:
        errors = json.loads(row.response or "{}").get("errors", [])
    except (ValueError, AttributeError):
        return []
    return errors if isinstance(errors, list) else []
