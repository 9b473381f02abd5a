"""What a person does with a FAILED row: run it again, or drop its dead letter.

`everest` and the dead-letter commands share these two; a letter that somebody moved back to the queue with the broker's
own tools means the first. Any DB-API connection with tuple cursors; the *caller* commits, or rolls back on an error.
Locks: run row, then shadow rows, then outbox.
"""

from __future__ import annotations

import json
from typing import Any

from ingest_consumer import shadow
from ingest_consumer.errors import Reason, RerunRefused
from ingest_consumer.json_text import object_in
from ingest_consumer.shadow import OPNAME_POSTING, Shadow

CANCELLED_BY_HAND = 499


def rerun(conn: Any, shadow_id: int, actor: str, reason: str | None = None) -> str:
    """Announces the next DAG run of a FAILED job and returns its dag_run_id; works with and without a run row.

    The row given becomes the carrier. Raises RerunRefused when the row is not FAILED (or changed meanwhile), its
    run is not failed, or its compensations have begun. The caller commits, or rolls back on an error.
    """
    row, run = _lock(conn, shadow_id)
    if row.worker_status != "FAILED":
        words = f"job #{shadow_id} is {row.worker_status}, only FAILED can be run again"
        raise _refused("not_failed", words, row, job=shadow_id, status=row.worker_status)
    if run is None:
        if row.transaksi_id is None:
            words = f"job #{shadow_id} has neither a document nor a workflow"
            raise _refused("nothing", words, row, job=shadow_id)
        workflow, key = OPNAME_POSTING, str(row.transaksi_id)
        dag_id, n = row.dag_id or OPNAME_POSTING, (row.n or 1) + 1
    else:
        if run["status"] != "failed":
            words = f"workflow {run['id']} is {run['status']}, only failed can be run again"
            raise _refused("run_not_failed", words, row, run=run["id"], status=run["status"])
        if run["compensation"] is not None:
            words = f"workflow {run['id']} is compensated: start a new one"
            raise _refused("compensated", words, row, run=run["id"])
        workflow, key, dag_id, n = run["workflow"], run["idempotency_key"], run["dag_id"], run["n"] + 1
    run_id = shadow.dag_run_id(workflow, key, row.workflow_id, shadow_id, n)
    announced = {"shadow_id": shadow_id, "workflow_id": row.workflow_id, "dag_run_id": run_id, "n": n}
    if not shadow.queries.rerun_shadow(conn, **announced, dag_id=dag_id, old_dag_run_id=row.dag_run_id):
        raise _refused("changed", f"job #{shadow_id} changed meanwhile; look again", row, job=shadow_id)
    if run is not None:  # locked first, written second: a refusal above leaves nothing half done
        shadow.queries.rerun_run(conn, **announced)
        shadow.queries.rerun_followers(conn, **announced, dag_id=dag_id)
        _event(conn, row, "rerun", actor, reason)
    body = shadow.outbox_body(
        shadow_id=shadow_id,
        workflow=workflow,
        workflow_id=row.workflow_id,
        dag_id=dag_id,
        dag_run_id=run_id,
        n=n,
        transaksi_id=row.transaksi_id,
        nota=row.nomer_nota,
    )
    shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=row.workflow_id, body=body)
    shadow.audit(conn, actor, "rerun", row, reason, {"worker_status": "PENDING", "dag_run_id": run_id, "n": n})
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
        raise _refused("no_document", refusal, row, run=run["id"])
    error = f"Dibatalkan oleh {actor}: {reason}. Kesalahan sebelumnya: {row.reason}"
    said = {"key": "rerun.dropped", "values": {"who": actor, "reason": reason, "why": _failure(row)}}
    answer = {"status": "error", "code": CANCELLED_BY_HAND, "message": error, "said": said, "errors": _errors(row)}
    response = json.dumps(answer, ensure_ascii=False)
    words = {"shadow_id": shadow_id, "workflow_id": row.workflow_id, "error": error, "response": response}
    if not shadow.queries.cancel_shadow(conn, **words):
        return False
    if run is not None:
        shadow.queries.cancel_run(conn, **words)
        shadow.queries.cancel_followers(conn, **words)
        _event(conn, row, "cancelled", actor, reason)
    shadow.audit(conn, actor, "drop", row, reason, {"worker_status": "CANCELLED", "error_code": CANCELLED_BY_HAND})
    return True


def _failure(row: Shadow) -> dict[str, Any]:
    """Why it failed, with what tells it in another language where its answer says that."""
    answer = object_in(row.response)
    said = answer.get("said") if answer.get("message") == row.reason else None
    return {"message": row.reason, **({"said": said} if isinstance(said, dict) else {})}


def _refused(key: str, words: str, row: Shadow | None, **values: Any) -> RerunRefused:
    return RerunRefused(Reason.of(f"rerun.{key}", words, **values), None if row is None else row.worker_status)


def _lock(conn: Any, shadow_id: int) -> tuple[Shadow, dict[str, Any] | None]:
    """The row as it is under its run's lock, and the run. A row without a run is guarded by the CAS alone."""
    row = shadow.get(conn, shadow_id)
    if row is None:
        raise _refused("missing", f"there is no job #{shadow_id}", None, job=shadow_id)
    if row.workflow_id is None:
        return shadow.respelled(conn, row), None
    found = shadow.queries.lock_run(conn, workflow_id=row.workflow_id)
    row = shadow.get(conn, shadow_id)  # read again: it may have changed before we had the lock
    if row is None or found is None:
        words = f"job #{shadow_id} names a workflow that does not exist"
        raise _refused("no_workflow", words, row, job=shadow_id)
    columns = ("id", "workflow", "idempotency_key", "status", "n", "dag_id", "dag_run_id", "compensation", "error_code")
    return shadow.respelled(conn, row), dict(zip(columns, found, strict=True))


def _event(conn: Any, row: Shadow, event: str, actor: str, reason: str | None) -> None:
    detail = json.dumps({"actor": actor, "reason": reason}, ensure_ascii=False)
    shadow.queries.run_event(conn, workflow_id=row.workflow_id, event=event, detail=detail)


def _errors(row: Shadow) -> list[Any]:
    errors = object_in(row.response).get("errors")
    return errors if isinstance(errors, list) else []
