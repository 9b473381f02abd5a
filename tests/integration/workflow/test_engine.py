"""The engine's rules on a real database: who may run a step, who may commit it, and what a failure leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from everest import bootstrap
from everest.errors import DocumentRefused, EverestError, TransientDatabaseError
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import engine, runner
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.engine import Fenced, Forward, Go, Leave, Replay, Ticket, Token
from ingest_consumer import shadow as jobs
from tests import builders

Handler = Callable[[dict[str, Any], Any], dict[str, Any] | None]


@pytest.fixture
def db(database: MysqlUrl) -> Iterator[Database]:
    opened = bootstrap.database(database, Settings())
    yield opened
    opened.close()


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


def test_steps_in_order_complete_the_run_and_every_shadow_row(db: Database, connection: Any) -> None:
    ticket = start(db, connection)

    assert step(db, TWO, ticket, "a") == Forward("b")
    assert builders.shadow(connection, ticket.shadow_id)["current_step"] == "b"
    assert isinstance(step(db, TWO, ticket, "b"), Leave)

    assert run_of(connection, ticket)["status"] == "completed"
    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["response"]["code"]) == ("COMPLETED", 200)
    assert effects(connection) == ["a", "b"]


def test_a_recorded_step_is_replayed_not_run_again(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    step(db, TWO, ticket, "a")

    assert step(db, TWO, ticket, "a") == Replay()
    assert effects(connection) == ["a"]


def test_a_task_ahead_of_the_pointer_leaves(db: Database, connection: Any) -> None:
    ticket = start(db, connection)

    assert isinstance(step(db, TWO, ticket, "b"), Leave)
    assert effects(connection) == []


def test_only_the_announced_dag_run_works(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    stale = Ticket("two__k__9__9", ticket.shadow_id, 9, ticket.workflow_id)

    assert isinstance(step(db, TWO, stale, "a"), Leave)
    assert effects(connection) == []


def test_an_older_try_cannot_commit_once_a_newer_one_has_begun(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    with db.transaction() as tx:
        older = engine.begin(tx, TWO, ticket, "a")
    with db.transaction() as tx:
        newer = engine.begin(tx, TWO, ticket, "a")
    assert isinstance(older, Go) and isinstance(newer, Go)

    with pytest.raises(Fenced), db.transaction() as tx:
        TWO.step("a").handler({}, context(tx, older.token))
        engine.settle(tx, TWO, older.token, {"who": "older"})
    with db.transaction() as tx:
        TWO.step("a").handler({}, context(tx, newer.token))
        engine.settle(tx, TWO, newer.token, {"who": "newer"})

    assert effects(connection) == ["a"]
    assert state_of(connection, ticket)["who"] == "newer"


def context(tx: UnitOfWork, token: Token) -> engine.StepContext:
    return engine.StepContext(tx, token.run_id, token.step, 1, token.attempt, 1, token.dag_run_id, 1)


def test_a_cancel_in_between_makes_the_commit_impossible(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    with db.transaction() as tx:
        go = engine.begin(tx, TWO, ticket, "a")
    assert isinstance(go, Go)
    builders.rows(connection, "SELECT 1")
    connection.cursor().execute("UPDATE workflow_runs SET status = 'cancelled'")
    connection.commit()

    with pytest.raises(Fenced), db.transaction() as tx:
        TWO.step("a").handler({}, context(tx, go.token))
        engine.settle(tx, TWO, go.token, {})
    assert effects(connection) == []


def test_a_pause_lets_the_step_at_work_commit_and_starts_nothing_further(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    with db.transaction() as tx:
        go = engine.begin(tx, TWO, ticket, "a")
    assert isinstance(go, Go)
    connection.cursor().execute("UPDATE workflow_runs SET status = 'paused'")
    connection.commit()

    with db.transaction() as tx:
        result = engine.settle(tx, TWO, go.token, {})
    assert isinstance(result, Leave)
    assert run_of(connection, ticket)["current_step"] == "b"
    assert builders.shadow(connection, ticket.shadow_id)["worker_status"] == "WAITING"
    assert isinstance(step(db, TWO, ticket, "b"), Leave)


def test_a_permanent_error_is_recorded_at_once(db: Database, connection: Any) -> None:
    def refuse(state: dict[str, Any], step: Any) -> None:
        note("lost")(state, step)
        raise DocumentRefused("tidak boleh", code=422)

    refused = workflow("refused").then(refuse, name="a").idempotency_key("{key}").build()
    ticket = start(db, connection, refused)

    with pytest.raises(DocumentRefused) as error:
        step(db, refused, ticket, "a", last=False)

    assert runner.is_recorded(error.value)
    assert effects(connection) == [], "its writes are rolled back"
    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["error_code"], row["error"]) == ("FAILED", 422, "tidak boleh")
    assert run_of(connection, ticket)["failed_n"] == 1


def test_a_bug_is_tried_again_and_recorded_at_the_last_try(db: Database, connection: Any) -> None:
    def broken(state: dict[str, Any], step: Any) -> None:
        raise ZeroDivisionError("ups")

    broken_flow = workflow("broken").then(broken, name="a").idempotency_key("{key}").build()
    ticket = start(db, connection, broken_flow)

    with pytest.raises(ZeroDivisionError) as first:
        step(db, broken_flow, ticket, "a", last=False)
    assert not runner.is_recorded(first.value)
    assert builders.shadow(connection, ticket.shadow_id)["worker_status"] == "PROCESSING"

    with pytest.raises(ZeroDivisionError) as second:
        step(db, broken_flow, ticket, "a", last=True)
    assert runner.is_recorded(second.value)
    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 500)
    assert "ZeroDivisionError" in row["error"]


def test_a_timeout_is_a_504_after_the_last_try(db: Database, connection: Any) -> None:
    """H25: the attempts are bounded, and the reason says timeout."""

    def slow(state: dict[str, Any], step: Any) -> None:
        raise TimeoutError

    slow_flow = workflow("slow").then(slow, name="a").idempotency_key("{key}").build()
    ticket = start(db, connection, slow_flow)

    for last in (False, False, True):
        with pytest.raises(EverestError):
            step(db, slow_flow, ticket, "a", last=last)
    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 504)
    steps = builders.rows(connection, "SELECT attempt, status FROM workflow_steps")
    assert steps == [{"attempt": 3, "status": "failed"}]


def test_a_transient_error_is_tried_again_inside_the_task(db: Database, connection: Any) -> None:
    tries = []

    def shaky(state: dict[str, Any], step: Any) -> None:
        note("shaky")(state, step)
        tries.append(1)
        if len(tries) < 4:
            raise TransientDatabaseError("deadlock", 1213)

    shaky_flow = workflow("shaky").then(shaky, name="a").idempotency_key("{key}").build()
    ticket = start(db, connection, shaky_flow)

    step(db, shaky_flow, ticket, "a", last=False)

    assert effects(connection) == ["shaky"], "each try before it was rolled back"
    assert builders.shadow(connection, ticket.shadow_id)["worker_status"] == "COMPLETED"


def test_after_a_lost_commit_the_record_is_found_instead_of_doing_it_again(db: Database, connection: Any) -> None:
    ticket = start(db, connection)
    commits = []

    @contextmanager
    def loses_the_answer() -> Iterator[UnitOfWork]:
        with db.transaction() as tx:
            yield tx
        commits.append(1)
        if len(commits) == 2:
            raise TransientDatabaseError("lost connection during COMMIT", 2013)

    result = runner.run_step(TWO, ticket, "a", loses_the_answer, is_last_try=False)

    assert result == Replay()
    assert effects(connection) == ["a"]


def test_a_failed_task_that_a_person_clears_goes_on_in_the_same_dag_run(db: Database, connection: Any) -> None:
    fixed = []

    def fixable(state: dict[str, Any], step: Any) -> None:
        if not fixed:
            raise DocumentRefused("belum")

    flow = workflow("fixable").then(note("a"), name="a").then(fixable, name="b").idempotency_key("{key}").build()
    ticket = start(db, connection, flow)
    step(db, flow, ticket, "a")
    with pytest.raises(DocumentRefused):
        step(db, flow, ticket, "b")
    fixed.append(1)

    cleared = replace(ticket, clears=1)
    assert step(db, flow, cleared, "a") == Replay()
    step(db, flow, cleared, "b")

    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["error"], row["error_code"]) == ("COMPLETED", None, None)
    assert effects(connection) == ["a"]


def test_a_jump_back_is_a_new_visit_in_a_new_dag_run(db: Database, connection: Any) -> None:
    rounds = []

    def again(state: dict[str, Any], step: Any) -> dict[str, Any]:
        rounds.append(1)
        return {"_next_step": "b"} if len(rounds) == 1 else {}

    flow = (
        workflow("loop")
        .then(note("a"), name="a").then(note("b"), name="b").then(again, name="c")
        .idempotency_key("{key}").build()
    )  # fmt: skip
    ticket = start(db, connection, flow)
    for name in "abc":
        step(db, flow, ticket, name)

    row = builders.shadow(connection, ticket.shadow_id)
    assert (row["worker_status"], row["n"]) == ("PENDING", 2)
    outbox = builders.rows(connection, "SELECT body FROM outbox ORDER BY id")
    assert [row["dag_run_id"] in message["body"] for message in outbox] == [False, True]
    second = claim(connection, ticket.shadow_id)
    assert step(db, flow, second, "a") == Replay()
    step(db, flow, second, "b")
    step(db, flow, second, "c")
    assert effects(connection) == ["a", "b", "b"]
    visits = builders.rows(connection, "SELECT step, visit FROM workflow_steps ORDER BY visit, step")
    assert [(row["step"], row["visit"]) for row in visits] == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2)]
    assert builders.shadow(connection, ticket.shadow_id)["worker_status"] == "COMPLETED"


def test_a_branch_forward_skips_the_steps_between(db: Database, connection: Any) -> None:
    def jump(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"_next_step": "c", "_private": 1, "seen": None}

    flow = workflow("jump").then(jump, name="a").then(note("b"), name="b").then(note("c"), name="c").build()
    with db.transaction() as tx:
        sent = engine.dispatch(tx, flow, {})
    ticket = claim(connection, sent.shadow_id)

    assert step(db, flow, ticket, "a") == Forward("c")
    assert step(db, flow, ticket, "b") == Replay()
    step(db, flow, ticket, "c")

    assert effects(connection) == ["c"]
    assert state_of(connection, ticket) == {"c": 1, "seen": None}


def test_an_unknown_branch_target_fails_at_once_without_running_again(db: Database, connection: Any) -> None:
    calls = []

    def lost(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(1)
        return {"_next_step": "nowhere"}

    flow = workflow("lost").then(lost, name="a").idempotency_key("{key}").build()
    ticket = start(db, connection, flow)

    with pytest.raises(DocumentRefused, match="nowhere"):
        step(db, flow, ticket, "a", last=False)
    assert len(calls) == 1
    assert builders.shadow(connection, ticket.shadow_id)["error_code"] == 500


def test_a_used_key_is_a_conflict_and_writes_nothing(db: Database, connection: Any) -> None:
    start(db, connection)

    with pytest.raises(engine.Conflict), db.transaction() as tx:
        engine.dispatch(tx, TWO, {"key": "k"})
    assert len(builders.rows(connection, "SELECT id FROM rabbit_publish_shadow")) == 1


# ------------------------------------------------------------------------------- foreign and second shadow rows

OPNAME = workflow("opname_posting").then(note("a"), name="a").idempotency_key("{transaksi_id}").build()


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


OPNAME_TWO = (
    workflow("opname_posting")
    .then(note("a"), name="a")
    .then(note("b"), name="b")
    .idempotency_key("{transaksi_id}")
    .build()
)


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


# ------------------------------------------------------------------------------------------------- taking over


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
