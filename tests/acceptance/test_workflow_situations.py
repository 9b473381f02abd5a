"""List 2, what time, processes and Airflow have a part in: on the running stack. A test's number is the list's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from everest.workflow import control, runner, starts
from everest.workflow.builder import workflow
from everest.workflow.ticket import Forward
from tests.acceptance import listed_workflows as w
from tests.acceptance.listed import Listed, kill
from tests.acceptance.live import until


@pytest.mark.parametrize(
    ("name", "number", "says"),
    [
        ("no items", 1, "each"),
        ("quorum above the count", 2, "quorum"),
        ("no list", 3, "list"),
        ("too many items", 25, "max_for_each_items"),
    ],
)
def test_01_02_03_25_a_for_each_that_cannot_be_met_fails_at_once(
    listed: Listed, name: str, number: int, says: str
) -> None:
    run = listed.started[name]

    row = listed.failed(run)

    assert says in row["error"]["message"]
    assert listed.did(run) == []
    assert listed.events(run, "started", "retried") == [("started", "each")], "permanent: one try"
    assert listed.dag_run(run, 1) == "failed"


def test_09_a_child_that_fails_fails_its_parent_and_both_complete_when_retried_in_turn(listed: Listed) -> None:
    run = listed.started["parent of a failing child"]
    failed = listed.failed(run)
    (child,) = listed.children(run)
    assert (failed["current_step"], failed["error_code"]) == ("nested", 409)
    listed.failed(child)
    assert listed.linked(run, 1, "runs") == [listed.name(child, 1)]
    (upwards,) = listed.linked(child, 1, "part of")  # the parent's second run may have begun before this note
    assert upwards in (listed.name(run, 1), listed.name(run, 2))

    listed.do(child, control.retry)
    listed.completed(child)
    listed.do(run, control.retry)

    row = listed.completed(run)
    assert (row["state"]["in_child"], listed.children(run)) == (2, [child])
    assert (listed.did(run), listed.did(child)) == (["one:1:", "last:1:"], ["in_child:1:"])


def test_10_11_a_cancel_takes_the_nested_run_along_and_its_step_in_flight_leaks_nothing(listed: Listed) -> None:
    with listed.gate("cancelled"):
        run = listed.start(w.PARENT, gates={"in_child": "cancelled"})
        listed.arrived("cancelled")
        (child,) = listed.children(run)
        listed.do(run, control.cancel, "ann", "salah")
        assert [listed.run(one)["status"] for one in (run, child)] == ["cancelled"] * 2

    assert listed.dag_run(child, 1) == "failed", "the task outlived the cancel and was refused its commit"
    until("the reconciler to undo the parent's step", lambda: listed.run(run)["compensation"] == "done")
    assert [listed.run(one)["status"] for one in (run, child)] == ["cancelled"] * 2
    assert [listed.job(one)["worker_status"] for one in (run, child)] == ["CANCELLED"] * 2
    assert (listed.did(child), listed.did(child, "undid")) == ([], [])
    assert (listed.did(run), len(listed.did(run, "undid"))) == (["one:1:"], 1)


def test_12_13_a_command_killed_in_a_compensation_is_carried_on_and_what_throws_is_mended_by_hand(
    listed: Listed,
) -> None:
    run = listed.started["undone"]
    listed.at(run, "gate")
    environment = {**listed.live.env, "EVEREST_WORKFLOWS": "tests.acceptance.listed_workflows", w.DIES: "1"}

    dead = replace(listed.live, env=environment).run("everest", "workflow", "cancel", str(run), check=False)

    assert dead.returncode == -9
    until("the reconciler to give up", lambda: listed.run(run)["compensation"] == "failed")
    assert (listed.did(run, "undid"), listed.did(run, "cleaned")) == ([], []), "strictly the newest first"
    with listed.live.connection() as conn, conn.cursor() as cursor:
        cursor.execute("INSERT INTO audit_log (actor, action, workflow_id) VALUES ('guest', 'mended', %s)", (run,))
        conn.commit()
    listed.do(run, control.compensate)
    until("the compensations", lambda: listed.run(run)["compensation"] == "done")
    assert (listed.did(run, "undid"), listed.did(run, "cleaned")) == (["one,two", "one"], ["one,two"])


def test_14_two_copies_of_a_task_at_once_commit_once(listed: Listed) -> None:
    """The second copy is one as a restarted scheduler makes it: the same task of the same DAG run."""
    with listed.gate("copies"):
        run = listed.start(w.TWO, gates={"one": "copies"})
        listed.arrived("copies")
        # Under the same gate it would wait; the copy's session holds no lock that the first one needs.
        ungated = replace(w.TWO, steps=(replace(w.TWO.steps[0], handler=_without_gate), *w.TWO.steps[1:]))
        answer = runner.run_step(ungated, listed.ticket(run), "one", listed.database.transaction, is_last_try=True)
        assert answer == Forward("last")

    listed.completed(run)
    assert listed.did(run) == ["one:1:", "last:1:"]
    assert (listed.attempts(run)["one", 1, ""], listed.run(run)["n"]) == (2, 2)
    assert listed.dag_run(run, 1) == "failed", "the first copy was refused its commit; the reconciler began the next"


def _without_gate(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return w.does({key: value for key, value in state.items() if key != "gates"}, step)


@pytest.mark.parametrize("state", ["failed", pytest.param("success", marks=pytest.mark.long)])  # found a minute later
def test_a_run_marked_in_airflow_is_never_completed_by_it_and_goes_on_when_retried(listed: Listed, state: str) -> None:
    gate = f"marked {state}"
    with listed.gate(gate):
        run = listed.start(w.TWO, gates={"one": gate})
        listed.arrived(gate)
        listed.mark(run, state)
        row = listed.failed(run)
    assert (row["error_code"], "Airflow" in row["error"]["message"], listed.did(run)) == (499, True, [])

    listed.do(run, control.retry)

    listed.completed(run)
    assert listed.did(run) == ["one:1:", "last:1:"]


def test_16_a_hand_off_that_is_killed_half_way_starts_exactly_one_run_per_item(listed: Listed) -> None:
    """A session of the test is about to take the key of the second run, so the task stops there; then it dies."""
    with listed.live.connection() as conn, conn.cursor() as cursor:
        with listed.database.transaction() as tx:
            run = starts.dispatch(tx, w.HANDS_OFF, {"items": [1, 2, 3]}).workflow_id
            _take_key(cursor, run)
        pid = listed.live.task_process(f"%INSERT INTO workflow_runs%{run}:start:1:1%")
        kill(pid)
        conn.rollback()

    row = listed.completed(run)
    assert listed.attempts(run)["start", 1, ""] == 2
    assert row["state"]["started_workflow_ids"] == listed.children(run)
    assert [listed.run(child)["state"]["item"] for child in listed.children(run)] == [1, 2, 3]


def _take_key(cursor: Any, run: int) -> None:
    cursor.execute(
        "INSERT INTO workflow_runs (workflow, version, definition_hash, idempotency_key, payload, state, status, n,"
        " dag_id, dag_run_id, created_at, updated_at) VALUES ('test_agent', '', '', %s, '{}', '{}', 'cancelled', 1,"
        " '', '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
        (f"{run}:start:1:1",),
    )


def test_24_a_wake_up_that_was_lost_is_found_by_the_reconciler(listed: Listed) -> None:
    held = listed.started["held"]
    listed.at(held, "gate")
    waiter = listed.start(w.WAITER, other=held)
    listed.at(waiter, "join")

    with listed.live.connection() as conn, conn.cursor() as cursor:  # it ends, and nobody is told
        cursor.execute("UPDATE workflow_runs SET status = 'completed' WHERE id = %s", (held,))
        conn.commit()

    listed.completed(waiter)
    assert listed.did(waiter) == ["last:1:"]


def test_two_relays_and_two_reconcilers_one_of_each_killed_go_on_as_one(listed: Listed) -> None:
    for program in ("relay", "reconciler"):
        listed.live.kill(program)
    runs = [listed.start(w.TWO) for _ in range(2)]
    for run in runs:
        listed.completed(run)
        assert listed.did(run) == ["one:1:", "last:1:"]
        sent = listed.live.rows("SELECT id FROM outbox WHERE workflow_id = %s", run)
        assert len(sent) == 1


@pytest.mark.long
def test_04_07_each_pass_of_a_loop_has_branches_items_and_signals_of_its_own(listed: Listed) -> None:
    run = listed.started["loop"]

    row = listed.completed(run)

    both = {f"both:{visit}:{branch}" for visit in (1, 2) for branch in ("left", "right")}
    each = {f"each:{visit}:{index}" for visit in (1, 2) for index in (0, 1)}
    assert listed.times(run) == dict.fromkeys((*both, *each, "count:1:", "count:2:"), 1)
    assert (row["state"]["pass"], row["state"]["doubled"]["succeeded"], row["n"]) == ({"n": 2}, 2, 2)


def test_05_clearing_the_failed_branch_in_airflow_runs_it_alone_and_a_completed_run_nothing(listed: Listed) -> None:
    run = listed.started["cleared"]
    listed.failed(run)
    assert listed.times(run) == {"both:1:left": 1}

    listed.clear(run, 1, only_failed=True)

    row = listed.until(run, "completed")
    assert listed.times(run) == {"both:1:left": 1, "both:1:right": 1, "last:1:": 1}
    assert (row["n"], row["state"]["right"]) == (1, 2)
    listed.clear(run, 1, only_failed=False)
    assert listed.dag_run(run, 1) == "success"
    assert listed.run(run) == row
    assert len(listed.did(run)) == 3


@pytest.mark.long
def test_07_15_an_old_signal_does_not_answer_the_next_wait_and_a_pause_outlives_a_signal(listed: Listed) -> None:
    run = listed.started["waits"]
    if listed.run(run)["current_step"] != "second_go":  # nobody looked at the first wait yet
        listed.at(run, "first_go")
        listed.signal(run, "go", n=1)
    row = listed.at(run, "second_go")
    listed.do(run, control.pause)
    listed.signal(run, "go", n=2)
    assert listed.run(run)["status"] == "paused"
    assert listed.run(run)["n"] == row["n"] + 1, "announced, not sent"

    listed.do(run, control.resume)

    row = listed.completed(run)
    assert (row["state"]["one"], row["state"]["two"]) == ({"n": 1}, {"n": 2})
    assert listed.did(run) == ["last:1:"]


@pytest.mark.long
def test_08_a_wait_that_says_nothing_of_its_timeout_fails_by_it(listed: Listed) -> None:
    row = listed.failed(listed.started["timed out"])

    assert row["error_code"] == 504


@pytest.mark.long
def test_19_a_run_of_another_definition_stops_with_a_sentence(listed: Listed) -> None:
    run = listed.start(workflow("test_two").then(w.does, name="one").build())

    row = listed.failed(run)

    assert "another definition" in row["error"]["message"]
    assert listed.did(run) == []


@pytest.mark.long
def test_20_a_budget_that_breaks_on_delivery_keeps_the_signal_and_fails_the_run(listed: Listed) -> None:
    run = listed.started["tight"]
    listed.at(run, "gate")

    listed.signal(run, "go", n=1)

    row = listed.failed(run)
    assert (row["error_code"], "got" in row["state"]) == (422, False)
    assert listed.live.rows("SELECT name FROM workflow_signals WHERE workflow_id = %s", run) == [{"name": "go"}]


@pytest.mark.long
def test_21_chunks_survive_a_kill_and_a_retry_by_hand(listed: Listed) -> None:
    run = listed.started["killed"]
    assert listed.failed(run)["error"]["message"] == "putus"

    listed.do(run, control.retry)

    row = listed.completed(run)
    assert row["state"]["chunks"] == [0, 1, 2, 3, 4]
    assert listed.live.rows("SELECT id FROM workflow_chunks WHERE workflow_id = %s", run) == []


def test_22_a_task_killed_while_it_records_its_wait_leaves_a_wait_or_a_task(listed: Listed) -> None:
    """The test holds the run's row, so the task stops at the lock under which it would record its wait."""
    with listed.live.connection() as conn, conn.cursor() as cursor:
        run = listed.start(w.HELD)
        until("the task to have begun", lambda: listed.attempts(run))
        cursor.execute("SELECT id FROM workflow_runs WHERE id = %s FOR UPDATE", (run,))
        if listed.run(run)["waiting"] is None:
            kill(listed.live.task_process(f"%FROM workflow_runs r%r.id = {run}%FOR UPDATE%"))
        conn.rollback()

    listed.at(run, "gate")
    listed.signal(run, "go")
    listed.completed(run)


@pytest.mark.long
def test_23_an_unknown_target_fails_without_running_the_handler_again(listed: Listed) -> None:
    run = listed.started["strays"]

    row = listed.failed(run)

    assert "nowhere" in row["error"]["message"]
    assert (listed.did(run), listed.events(run, "started")) == ([], [("started", "strays")])


@pytest.mark.long
def test_26_the_count_of_an_inner_loop_is_reset_when_it_is_left(listed: Listed) -> None:
    run = listed.started["loops"]

    row = listed.completed(run)  # max_iterations is 1 for each loop, and the inner one goes back twice in all

    assert (row["state"]["passes"], row["state"]["inner"]) == (2, 4)


def test_a_paused_dag_holds_its_runs_and_loses_none(listed: Listed) -> None:
    with listed.live.airflow() as airflow:
        airflow.patch("/dags/test_two", json={"is_paused": True}).raise_for_status()
        try:
            run = listed.start(w.TWO)
            held = listed.start(w.HELD)
            listed.at(held, "gate")  # one paused DAG blocks no other workflow
            assert listed.did(run) == []
        finally:
            airflow.patch("/dags/test_two", json={"is_paused": False}).raise_for_status()
    listed.completed(run)
    assert listed.did(run) == ["one:1:", "last:1:"]
