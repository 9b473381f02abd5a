"""The engine's rules on a real database: who may run a step, who may commit it, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from everest.errors import DocumentRefused, EverestError, TransientDatabaseError
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import engine, runner
from everest.workflow.builder import workflow
from everest.workflow.engine import Fenced, Forward, Go, Leave, Replay, Ticket, Token
from tests import builders
from tests.integration.workflow.running import TWO, claim, effects, note, run_of, start, state_of, step


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


# ------------------------------------------------------------------------------------------------- taking over
