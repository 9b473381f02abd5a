"""Several rows of one document: who carries it, who waits, and whose outcome each of them ends with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.store.unit_of_work import Database
from everest.workflow import engine, runner
from everest.workflow.engine import Fenced, Go, Leave, Ticket
from ingest_consumer import shadow as jobs
from tests import builders
from tests.integration.workflow.running import OPNAME, OPNAME_TWO, TWO, claim, effects, run_of, start, step


def foreign(connection: Any, transaksi_id: int = 1001, nota: str | None = "SO-1") -> Ticket:
    shadow_id = builders.shadow_row(connection, transaksi_id, nota)
    run_id = jobs.dag_run_id("opname_posting", transaksi_id, None, shadow_id, 1)
    assert jobs.claim(connection, shadow_id, None, "opname_posting", run_id, 1)
    connection.commit()
    return Ticket(run_id, shadow_id, 1, None, transaksi_id)


def test_the_first_task_of_a_foreign_message_makes_its_run(db: Database, connection: Any) -> None:
    ticket = foreign(connection)

    step(db, OPNAME, ticket, "a")

    run = run_of(connection, ticket)
    assert (run["workflow"], run["idempotency_key"], run["n"]) == ("opname_posting", "1001", 1)
    assert builders.shadow(connection, ticket.shadow_id)["worker_status"] == "COMPLETED"


def test_a_second_row_waits_while_the_document_is_at_work_and_ends_with_it(db: Database, connection: Any) -> None:
    carrier, second = foreign(connection), foreign(connection)
    with db.transaction() as tx:
        go = engine.begin(tx, OPNAME, carrier, "a")
    assert isinstance(go, Go)

    assert isinstance(step(db, OPNAME, second, "a"), Leave)
    assert builders.shadow(connection, second.shadow_id)["worker_status"] == "WAITING"
    with db.transaction() as tx:
        engine.settle(tx, OPNAME, go.token, {})

    assert builders.shadow(connection, second.shadow_id)["worker_status"] == "COMPLETED"
    assert len(builders.rows(connection, "SELECT id FROM workflow_runs")) == 1


def test_a_second_row_copies_the_outcome_of_a_finished_document(db: Database, connection: Any) -> None:
    step(db, OPNAME, foreign(connection), "a")
    second = foreign(connection)

    assert isinstance(step(db, OPNAME, second, "a"), Leave)
    row = builders.shadow(connection, second.shadow_id)
    assert (row["worker_status"], row["response"]["status"]) == ("COMPLETED", "success")
    assert effects(connection) == ["a"]


@pytest.fixture(params=["", "UNSIGNED"])
def ids_of_jobs(connection: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """As we make them, and as a table of another application may have them."""
    alter = "ALTER TABLE rabbit_publish_shadow MODIFY COLUMN id BIGINT {} NOT NULL AUTO_INCREMENT"
    with connection.cursor() as cursor:
        cursor.execute(alter.format(request.param))
        yield
        connection.commit()
        cursor.execute(alter.format(""))


@pytest.mark.usefixtures("ids_of_jobs")
def test_a_second_row_that_finds_the_document_failed_runs_it_again_as_its_carrier(
    db: Database, connection: Any
) -> None:
    first = foreign(connection)
    with db.transaction() as tx:
        go = engine.begin(tx, OPNAME, first, "a")
    assert isinstance(go, Go)
    with db.transaction() as tx:
        engine.fail(tx, OPNAME, go.token, DocumentRefused("salah"))
    second = foreign(connection)

    assert isinstance(step(db, OPNAME, second, "a"), Leave)

    row = builders.shadow(connection, second.shadow_id)
    assert (row["worker_status"], row["n"]) == ("PENDING", 2)
    assert builders.shadow(connection, first.shadow_id)["worker_status"] == "WAITING"
    step(db, OPNAME, claim(connection, second.shadow_id), "a")
    for ticket in (first, second):
        assert builders.shadow(connection, ticket.shadow_id)["worker_status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("carriers", "nota", "ends"),
    [
        ("SO-1", "SO-2", "FAILED"),
        ("SO-1 ", "SO-2", "FAILED"),
        ("SO-1", "SO-1  ", "COMPLETED"),
        ("SO-1", None, "COMPLETED"),
        ("SO-1", " ", "COMPLETED"),
        (None, "SO-2", "COMPLETED"),
    ],
)
def test_a_second_row_that_names_another_nota_does_not_share_the_success_of_a_document_at_work(
    db: Database, connection: Any, carriers: str | None, nota: str | None, ends: str
) -> None:
    """A carrier that names none, in a workflow whose answer names none: nobody knows the document's."""
    carrier, second = foreign(connection, nota=carriers), foreign(connection, nota=nota)
    step(db, OPNAME_TWO, carrier, "a")
    step(db, OPNAME_TWO, second, "a")
    assert builders.shadow(connection, second.shadow_id)["worker_status"] == "WAITING"

    step(db, OPNAME_TWO, carrier, "b")

    row = builders.shadow(connection, second.shadow_id)
    assert row["worker_status"] == ends
    assert (row["workflow_id"] is None) == (ends == "FAILED")
    assert builders.shadow(connection, carrier.shadow_id)["worker_status"] == "COMPLETED"


@pytest.mark.parametrize(("nota", "ends"), [("SO-2", "FAILED"), ("SO-1 ", "COMPLETED"), ("", "COMPLETED")])
def test_a_second_row_after_the_end_is_the_documents_unless_it_names_another_nota(
    db: Database, connection: Any, nota: str, ends: str
) -> None:
    step(db, OPNAME, foreign(connection), "a")
    second = foreign(connection, nota=nota)

    step(db, OPNAME, second, "a")

    row = builders.shadow(connection, second.shadow_id)
    assert (row["worker_status"], row["error_code"]) == (ends, 409 if ends == "FAILED" else None)


@pytest.mark.parametrize(
    ("at", "nota", "ends"), [("a", "SO-2", "PENDING"), ("b", "SO-2", "FAILED"), ("b", "SO-1 ", "PENDING")]
)
def test_another_nota_runs_a_failed_document_again_only_while_no_step_has_looked_at_it(
    db: Database, connection: Any, at: str, nota: str, ends: str
) -> None:
    first = foreign(connection)
    if at == "b":
        step(db, OPNAME_TWO, first, "a")
    with db.transaction() as tx:
        go = engine.begin(tx, OPNAME_TWO, first, at)
    assert isinstance(go, Go)
    with db.transaction() as tx:
        engine.fail(tx, OPNAME_TWO, go.token, DocumentRefused("salah"))
    second = foreign(connection, nota=nota)

    step(db, OPNAME_TWO, second, "a")

    row, run = builders.shadow(connection, second.shadow_id), run_of(connection, first)
    assert row["worker_status"] == ends
    assert run["carrier_shadow_id"] == (first if ends == "FAILED" else second).shadow_id
    if ends == "FAILED":
        assert (row["error_code"], row["workflow_id"]) == (409, None)
        assert builders.shadow(connection, first.shadow_id)["error"] == "salah"


def test_taking_over_makes_the_queued_message_stale(db: Database, connection: Any) -> None:
    with db.transaction() as tx:
        sent = engine.dispatch(tx, TWO, {"key": "k"})
        ticket = engine.take_over(tx, TWO, sent.shadow_id)

    assert runner.run_to_end(TWO, ticket, db.transaction)
    row = builders.shadow(connection, sent.shadow_id)
    assert (row["worker_status"], row["n"]) == ("COMPLETED", 2)
    assert row["dag_run_id"] != sent.dag_run_id


def test_a_document_at_work_is_taken_over_only_on_purpose_and_its_task_is_fenced(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    with db.transaction() as tx:
        go = engine.begin(tx, TWO, ticket, "a")
    assert isinstance(go, Go)

    with pytest.raises(engine.Conflict), db.transaction() as tx:
        engine.take_over(tx, TWO, ticket.shadow_id)
    with db.transaction() as tx:
        mine = engine.take_over(tx, TWO, ticket.shadow_id, take_running=True)
    with pytest.raises(Fenced), db.transaction() as tx:
        engine.settle(tx, TWO, go.token, {})
    runner.run_to_end(TWO, mine, db.transaction)
    assert effects(connection) == ["a", "b"]
