"""Small workflows whose steps leave rows to count, and their runs, dispatched and claimed as by the consumer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from everest.store.unit_of_work import Database
from everest.workflow import engine, runner
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.engine import Ticket
from ingest_consumer import shadow as jobs
from tests import builders

Handler = Callable[[dict[str, Any], Any], dict[str, Any] | None]


def note(text: str) -> Handler:
    """A handler with a business effect that can be counted: one audit line."""

    def handler(state: dict[str, Any], step: Any) -> dict[str, Any]:
        with step.tx.conn.cursor() as cursor:
            cursor.execute("INSERT INTO audit_log (actor, action) VALUES ('test', %s)", (text,))
        return {text: step.attempt}

    return handler


def effects(connection: Any) -> list[str]:
    return [
        row["action"]
        for row in builders.rows(connection, "SELECT action FROM audit_log WHERE actor='test' ORDER BY id")
    ]


TWO = workflow("two").then(note("a"), name="a").then(note("b"), name="b").idempotency_key("{key}").build()


def start(db: Database, connection: Any, definition: Definition = TWO, key: str = "k") -> Ticket:
    """Dispatches and claims, as consumer would."""
    with db.transaction() as tx:
        sent = engine.dispatch(tx, definition, {"key": key})
    return claim(connection, sent.shadow_id)


def claim(connection: Any, shadow_id: int) -> Ticket:
    row = jobs.get(connection, shadow_id)
    assert row is not None
    run_id = row.dag_run_id
    assert run_id is not None
    assert jobs.claim(connection, shadow_id, row.dag_run_id, row.dag_id or "", run_id, row.n or 1)
    connection.commit()
    return Ticket(run_id, shadow_id, row.n or 1, row.workflow_id)


def run_of(connection: Any, ticket: Ticket) -> dict[str, Any]:
    (row,) = builders.rows(
        connection,
        "SELECT r.* FROM workflow_runs r JOIN rabbit_publish_shadow s ON s.workflow_id = r.id WHERE s.id = %s",
        ticket.shadow_id,
    )
    return row


def state_of(connection: Any, ticket: Ticket) -> Any:
    """The value, not the text: MySQL writes JSON in its own way, with blanks and another order of keys."""
    return json.loads(run_of(connection, ticket)["state"])


def step(db: Database, definition: Definition, ticket: Ticket, name: str, last: bool = True) -> Any:
    return runner.run_step(definition, ticket, name, db.transaction, is_last_try=last)


OPNAME = workflow("opname_posting").then(note("a"), name="a").idempotency_key("{transaksi_id}").build()

OPNAME_TWO = (
    workflow("opname_posting")
    .then(note("a"), name="a")
    .then(note("b"), name="b")
    .idempotency_key("{transaksi_id}")
    .build()
)
