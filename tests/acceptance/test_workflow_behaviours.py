"""List 1, what time, processes and Airflow have a part in: on the running stack. A test's numbers are the list's."""

from __future__ import annotations

import pytest

from everest.errors import Conflict
from everest.workflow import control
from tests.acceptance import listed_workflows as w
from tests.acceptance.listed import Listed
from tests.acceptance.live import until


def test_009_010_a_pause_lets_the_step_at_work_commit_and_a_resume_runs_nothing_twice(listed: Listed) -> None:
    with listed.gate("paused"):
        run = listed.start(w.PARENT, gates={"one": "paused"})
        listed.arrived("paused")
        listed.do(run, control.pause)
        listed.do(run, control.resume)
        with pytest.raises(Conflict, match="running"):
            listed.do(run, control.resume)
        listed.do(run, control.pause)

    until("the step to commit", lambda: listed.run(run)["current_step"] == "nested")
    assert listed.dag_run(run, 1) == "success"
    assert (listed.run(run)["status"], listed.job(run)["worker_status"]) == ("paused", "WAITING")
    assert (listed.children(run), listed.did(run)) == ([], ["one:1:"])

    listed.do(run, control.resume)
    listed.completed(run)
    assert (listed.did(run), len(listed.children(run))) == (["one:1:", "last:1:"], 1)


def test_059_060_a_hand_off_gives_each_item_a_run_of_its_own_and_waits_for_all(listed: Listed) -> None:
    run = listed.start(w.HANDS_OFF, items=["a", "b"], shared=1)

    row = listed.completed(run)

    children = listed.children(run)
    assert row["state"]["started_workflow_ids"] == children
    states = [listed.run(child)["state"] for child in children]
    assert [(state["item"], state["start_item_index"], state["shared"]) for state in states] == [
        ("a", 0, 1),
        ("b", 1, 1),
    ]
    assert row["state"]["agent_results"] == {str(child): listed.run(child)["state"] for child in children}
    assert listed.linked(run, 1, "started") == [listed.name(child, 1) for child in children]
    upwards = [link for child in children for link in listed.linked(child, 1, "started by")]
    assert len(upwards) == len(children)
    assert set(upwards) <= {listed.name(run, 1), listed.name(run, 2)}
    assert [listed.did(child) for child in children] == [["agent_work:1::a"], ["agent_work:1::b"]]


def test_001_to_005_014_015_022_a_chain_fails_twice_jumps_and_completes(listed: Listed) -> None:
    run = listed.started["chain"]

    row = listed.completed(run)

    assert row["state"] == {"given": 7, "first": 1, "seen": [7, 1, False], "attempts": 3, "last": 1}
    assert listed.did(run) == ["one:1:", "flaky:1:", "jump:1:", "last:1:"], "a failed try leaves no row"
    mine = [event for event, step in listed.events(run, "started", "failed", "retried", "completed") if step == "flaky"]
    assert mine == ["started", "failed", "retried", "started", "failed", "retried", "started", "completed"]
    assert row["n"] == 1, "one DAG run, one message"
    assert listed.dag_run(run, 1) == "success"


def test_018_019_020_025_078_079_processes_that_are_killed_are_tried_again_and_lose_nothing(listed: Listed) -> None:
    """A step, a branch, the slot of an item and a stream, each killed once."""
    run = listed.started["killed"]
    failed = listed.failed(run)
    assert failed["current_step"] == "numbers"
    state = failed["state"]
    assert [state[key] for key in ("one", "left", "right", "sum")] == [2, 1, 2, 12]
    assert (state["doubled"]["succeeded"], state["doubled"]["failed"]) == (3, 0)
    once = {"one:1:", "both:1:left", "both:1:right", "each:1:0", "each:1:1", "each:1:2"}
    assert listed.times(run) == dict.fromkeys(once, 1)
    chunks = listed.live.rows("SELECT chunk FROM workflow_chunks WHERE workflow_id = %s ORDER BY id", run)
    assert len(chunks) == 3


def test_040_041_044_a_delay_of_no_time_goes_on_and_one_of_two_seconds_ends_its_dag_run(listed: Listed) -> None:
    run = listed.started["early"]

    row = listed.completed(run)

    assert (row["state"]["early"], row["n"]) == ({"n": 1}, 2), "a signal that was there before ends no DAG run"
    assert listed.dag_run(run, 1) == "success"
    (parked,) = listed.live.rows(
        "SELECT created_at FROM workflow_events WHERE workflow_id = %s AND event = 'parked'", run
    )
    (due,) = listed.live.rows("SELECT available_at FROM outbox WHERE workflow_id = %s ORDER BY id DESC LIMIT 1", run)
    waited = due["available_at"] - parked["created_at"]
    assert 1 < waited.total_seconds() <= 2, "what the database says, not when somebody looked"


def test_029_a_retry_runs_only_the_item_that_is_missing(listed: Listed) -> None:
    run = listed.started["one of three fails"]
    listed.failed(run)
    assert listed.times(run) == {"each:1:0": 1}, "what cannot succeed any more runs no further item"

    listed.do(run, control.retry)

    row = listed.completed(run)
    assert (row["state"]["doubled"]["succeeded"], row["state"]["sum"], row["n"]) == (3, 12, 2)
    assert listed.times(run) == {"each:1:0": 1, "each:1:1": 1, "each:1:2": 1}


def test_032_a_loop_is_a_new_dag_run_for_each_pass(listed: Listed) -> None:
    run = listed.started["loops"]

    row = listed.completed(run)

    assert listed.did(run) == ["outer:1:", "inner:1:", "inner:2:", "outer:3:", "inner:3:", "inner:4:"]
    assert row["n"] == 4
    assert {listed.dag_run(run, n) for n in range(1, 5)} == {"success"}


def test_042_043_a_signal_starts_the_next_dag_run_and_only_its_own_steps_run(listed: Listed) -> None:
    run = listed.started["waits"]
    row = listed.at(run, "first_go")
    assert (row["status"], row["state"]["late"], row["n"]) == ("waiting_for_signal", True, 3)
    unsent = "SELECT id FROM outbox WHERE workflow_id = %s AND published_at IS NULL"
    assert listed.live.rows(unsent, run) == []
    assert listed.dag_run(run, 2) == "success"

    listed.signal(run, "other")
    listed.signal(run, "go", n=1)

    row = listed.at(run, "second_go")
    assert row["state"]["one"] == {"n": 1}


def test_075_a_deadline_covers_waiting_and_runs_its_handler(listed: Listed) -> None:
    run = listed.started["overdue"]

    row = listed.failed(run)

    assert (row["error_code"], listed.did(run, "late")) == (504, [""])
    assert (row["current_step"], listed.dag_run(run, 1)) == ("gate", "success"), "its DAG run had ended with the wait"


def test_a_fused_task_that_is_killed_goes_on_behind_its_last_commit(listed: Listed) -> None:
    run = listed.started["fused"]

    listed.completed(run)

    assert listed.did(run) == ["one:1:", "two:1:", "three:1:"]
    assert listed.attempts(run) == {("one", 1, ""): 1, ("two", 1, ""): 2, ("three", 1, ""): 1}
