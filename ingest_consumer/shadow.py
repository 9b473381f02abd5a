"""The shadow row, seen from the queue: claim it, hand it over, mark its dead letter, write what announces its run.

This is where a message meets the truth. `everest` imports from here (never the other way round), so the functions take
any DB-API connection with tuple cursors and autocommit off, and the *caller* commits. Driver errors pass through
untouched. What a person does with a FAILED row stands in `by_hand`.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosql

from ingest_consumer.json_text import object_in

log = logging.getLogger(__name__)

JOBS_EXCHANGE = "everest.jobs.x"
DEAD_LETTER_EXCHANGE = "everest.jobs.dlx"
ROUTING_KEY = "job.process"
JOBS_QUEUE = "everest.jobs.q"
DEAD_LETTER_QUEUE = "everest.jobs.failed.dlq"
OUT_OF_ORDER = frozenset({"down", "crashed", "stopped"})
"""States of a queue in which RabbitMQ's management API tells 0 messages, whatever it holds."""
OUR_LETTER = "x-everest-dead"
"""The header of a letter that no rejection wrote; moved back to the jobs queue by hand it means: run the document
again."""
OPNAME_POSTING = "opname_posting"
"""The workflow of a message that names none: what the web application sends."""

FINAL = ("COMPLETED", "CANCELLED")
STATUSES = frozenset({"PENDING", "PROCESSING", "WAITING", "FAILED", *FINAL})
REFUSED_BY_A_PERSON = 403
"""The one failure that is nobody's fault: it gets no dead letter."""

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
    def meant_status(self) -> str | None:
        """The status that the row's word stands for. Programs and people write it in their own spelling, which the
        column's CHECK lets pass; None for a word that is none of ours."""
        word = (self.worker_status or "").strip().upper()
        return word if word in STATUSES else None

    @property
    def is_final(self) -> bool:
        return self.meant_status in FINAL

    @property
    def needs_dead_letter(self) -> bool:
        """FAILED with a fault: every code but a person's refusal."""
        return self.meant_status == "FAILED" and self.error_code != REFUSED_BY_A_PERSON

    @property
    def reason(self) -> str:
        """Why the job stands where it stands, in the words of whoever wrote it."""
        if self.error:
            return self.error
        return str(object_in(self.response).get("message", f"{self.worker_status} without a recorded reason"))


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
    encoding="utf-8",
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


def respelled(conn: Any, row: Shadow) -> Shadow:
    """The row with its status in our spelling, which is written if it stood there in another; the caller commits.
    A word that is none of ours stays."""
    if row.meant_status in (None, row.worker_status):
        return row
    queries.respell(conn, shadow_id=row.id, found=row.worker_status, meant=row.meant_status)
    log.warning("shadow row %s said %a, it means %s", row.id, row.worker_status, row.meant_status)
    return replace(row, worker_status=str(row.meant_status))


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
