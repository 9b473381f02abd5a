"""A statement that the server would not take is refused before it is sent: sent, it ends the connection, and looks like
the trouble of a moment that is worth another try.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from everest import bootstrap
from everest.errors import DatabaseError
from everest.settings import MysqlUrl, Settings
from everest.store.database import TOO_LARGE, typed_errors
from everest.store.unit_of_work import Database
from everest.workflow import engine, runner
from everest.workflow.builder import workflow
from everest.workflow.engine import Ticket
from ingest_consumer import shadow as jobs
from tests import builders


@pytest.fixture
def db(database: MysqlUrl) -> Iterator[Database]:
    opened = bootstrap.database(database, Settings())
    yield opened
    opened.close()


def most_bytes(connection: Any) -> int:
    (row,) = builders.rows(connection, "SELECT @@max_allowed_packet AS bytes")
    return int(row["bytes"])


def walk(db: Database, connection: Any, size: int) -> tuple[dict[str, Any], int]:
    """A workflow whose first step returns so many bytes: its job, and how often the step ran."""
    calls = []

    def heavy(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(step.attempt)
        return {"berat": "x" * size}

    flow = workflow("heavy").then(heavy, name="a").then(lambda state, step: {"berat": None}, name="b").build()
    with db.transaction() as tx:
        sent = engine.dispatch(tx, flow, {})
    assert jobs.claim(connection, sent.shadow_id, sent.dag_run_id, flow.name, sent.dag_run_id, 1)
    connection.commit()
    ticket = Ticket(sent.dag_run_id, sent.shadow_id, 1, sent.workflow_id)
    for step in ("a", "b"):
        with suppress(DatabaseError):
            runner.run_step(flow, ticket, step, db.transaction, is_last_try=False)
    return builders.shadow(connection, sent.shadow_id), len(calls)


def test_too_large_a_statement_is_permanent_and_the_connection_stays(db: Database, connection: Any) -> None:
    size = most_bytes(connection)
    with pytest.raises(DatabaseError, match="max_allowed_packet") as caught, typed_errors():
        connection.query(b"SELECT '" + b"x" * size + b"'")

    assert (caught.value.number, caught.value.retryable) == (TOO_LARGE, False)
    assert builders.rows(connection, "SELECT 1 AS still_there") == [{"still_there": 1}]


def test_a_state_that_fits_a_statement_is_kept_though_a_step_writes_it_three_times(
    db: Database, connection: Any
) -> None:
    job, calls = walk(db, connection, most_bytes(connection) // 3)

    assert (job["worker_status"], calls) == ("COMPLETED", 1)


def test_a_state_that_fits_none_fails_its_step_at_once_and_the_handler_runs_once(db: Database, connection: Any) -> None:
    job, calls = walk(db, connection, most_bytes(connection))

    assert (job["worker_status"], calls) == ("FAILED", 1)
    assert "max_allowed_packet" in job["error"]
