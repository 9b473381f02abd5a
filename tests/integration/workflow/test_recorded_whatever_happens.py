"""A failure that cannot be written is a job that never ends: nothing a handler does, and nothing an error says, may
keep it out of the rows. And a DAG run that no message stands for does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from everest import bootstrap
from everest.errors import DocumentRefused
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import Database
from everest.workflow import engine, runner
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.engine import Leave, Ticket
from ingest_consumer import shadow as jobs
from tests import builders


@pytest.fixture
def db(database: MysqlUrl) -> Iterator[Database]:
    opened = bootstrap.database(database, Settings())
    yield opened
    opened.close()


def claimed(db: Database, connection: Any, definition: Definition) -> Ticket:
    """Dispatched, and claimed as the consumer would."""
    with db.transaction() as tx:
        sent = engine.dispatch(tx, definition, {})
    assert jobs.claim(connection, sent.shadow_id, sent.dag_run_id, definition.name, sent.dag_run_id, 1)
    connection.commit()
    return Ticket(sent.dag_run_id, sent.shadow_id, 1, sent.workflow_id)


def run_a(db: Database, definition: Definition, ticket: Ticket) -> Any:
    return runner.run_step(definition, ticket, "a", db.transaction, is_last_try=True)


@pytest.mark.parametrize("trouble", ["raises", "asks the database for nonsense"])
def test_a_failure_handler_that_fails_itself_leaves_the_failure_recorded_and_nothing_half_done(
    db: Database, connection: Any, trouble: str
) -> None:
    def refuse(state: dict[str, Any], step: Any) -> dict[str, Any]:
        raise DocumentRefused("salah")

    def handler(state: dict[str, Any], step: Any, error: Exception) -> None:
        step.tx.conn.query("INSERT INTO audit_log (actor, action) VALUES ('test', 'half done')")
        if trouble == "raises":
            raise ZeroDivisionError
        step.tx.conn.query("SELECT nonsense")

    flow = workflow("clumsy").then(refuse, name="a").on_failure(handler).build()
    ticket = claimed(db, connection, flow)

    with pytest.raises(DocumentRefused):
        run_a(db, flow, ticket)

    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["error_code"], row["error"]) == ("FAILED", 422, "salah")
    assert builders.rows(connection, "SELECT id FROM audit_log WHERE actor = 'test'") == []
    events = builders.rows(connection, "SELECT event FROM workflow_events ORDER BY id DESC LIMIT 2")
    assert [event["event"] for event in events] == ["failure_handler_failed", "failed"]


def test_a_bug_whose_words_no_column_takes_is_recorded_all_the_same(db: Database, connection: Any) -> None:
    def bug(state: dict[str, Any], step: Any) -> dict[str, Any]:
        raise RuntimeError("half a character \udc80, then much: " + "x" * 100_000)

    flow = workflow("wordy").then(bug, name="a").build()
    ticket = claimed(db, connection, flow)

    with pytest.raises(RuntimeError):
        run_a(db, flow, ticket)

    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 500)
    assert "half a character \\udc80" in row["error"]


def test_a_dag_run_that_a_person_started_by_hand_in_airflow_does_nothing_with_a_foreign_row(
    db: Database, connection: Any
) -> None:
    flow = workflow("opname_posting").then(lambda state, step: {}, name="a").idempotency_key("{transaksi_id}").build()
    shadow_id = builders.shadow_row(connection, 1001, "SO-1")

    assert isinstance(run_a(db, flow, Ticket.from_conf("manual__2026-12-01", {"shadow_id": shadow_id})), Leave)

    row = builders.shadow(connection, shadow_id)
    assert (row["worker_status"], row["workflow_id"]) == ("PENDING", None)
