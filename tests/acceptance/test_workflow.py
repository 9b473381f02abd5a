"""The worked example on the running stack: waits, people, a loop, a nested run, a cancel, and kills in between."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.acceptance.closings import begin, run_row, wait_at, workflow
from tests.acceptance.live import Live, until


def wait_for(live: Live, run: str, status: str) -> dict[str, Any]:
    return until(
        f"workflow {run} to be {status}",
        lambda: (lambda row: row if row["status"] == status else None)(run_row(live, run)),
    )


def notes(live: Live, run: str) -> list[str]:
    """What the example's steps wrote, in order; those of the nested run with them."""
    rows = live.rows(
        "SELECT action FROM audit_log WHERE workflow_id = %s OR workflow_id IN"
        " (SELECT id FROM workflow_runs WHERE parent_id = %s) ORDER BY id",
        run,
        run,
    )
    ours = ("closing_opened", "closing_withdrawn", "report_drafted", "report_filed", "report_voided")
    return [row["action"] for row in rows if row["action"] in (*ours, "closing_finished", "closing_cancelled")]


def test_a_closing_waits_loops_nests_and_completes(live: Live, month: str) -> None:
    run = begin(live, month)

    wait_at(live, run, "warehouse_head_approves")
    workflow(live, "approve", run)
    wait_at(live, run, "finance_approves")
    workflow(live, "approve", run, "--reason", "sudah dicek")
    wait_at(live, run, "reviewer_decides")
    workflow(live, "reject", run, "--reason", "kurang rinci")
    second = until(
        "the second draft",
        lambda: (lambda row: row if row["visit"] == 2 and row["waiting"] else None)(run_row(live, run)),
    )
    assert second["current_step"] == "reviewer_decides"
    workflow(live, "approve", run)

    wait_for(live, run, "completed")
    assert notes(live, run) == [
        "closing_opened",
        "report_drafted",
        "report_drafted",
        "report_filed",
        "closing_finished",
    ]
    shown = workflow(live, "show", run)
    assert shown["status"] == "completed"
    (job,) = live.rows("SELECT worker_status, dag_run_id, n FROM rabbit_publish_shadow WHERE workflow_id = %s", run)
    assert job["worker_status"] == "COMPLETED"
    with live.airflow() as airflow:
        for n in range(1, job["n"] + 1):
            name = job["dag_run_id"].rpartition("__")[0] + f"__{n}"
            state = until("an ended DAG run", lambda name=name: _ended(airflow, "monthly_closing", name))
            assert state == "success", "a DAG run that ends in a wait is green"


def _ended(airflow: Any, dag: str, run_id: str) -> str | None:
    state = airflow.get(f"/dags/{dag}/dagRuns/{run_id}").raise_for_status().json()["state"]
    return state if state in ("success", "failed") else None


def test_a_cancelled_closing_is_undone(live: Live, month: str) -> None:
    run = begin(live, month)
    wait_at(live, run, "warehouse_head_approves")

    workflow(live, "cancel", run, "--reason", "salah bulan")

    until("the compensations", lambda: run_row(live, run)["compensation"] == "done")
    assert notes(live, run) == ["closing_opened", "closing_withdrawn", "closing_cancelled"]
    assert workflow(live, "approve", run, check=False), "an answer to nobody is a conflict, not a crash"
    assert run_row(live, run)["status"] == "cancelled"


def test_a_paused_closing_takes_its_answer_when_it_goes_on(live: Live, month: str) -> None:
    run = begin(live, month)
    wait_at(live, run, "warehouse_head_approves")
    workflow(live, "pause", run)
    assert run_row(live, run)["status"] == "paused"

    workflow(live, "resume", run)

    wait_at(live, run, "warehouse_head_approves")
    workflow(live, "reject", run, "--reason", "stok belum cocok")
    failed = wait_for(live, run, "failed")
    assert failed["error_code"] == 403
    assert "stok belum cocok" in failed["error"]
    workflow(live, "cancel", run)


def test_a_closing_outlives_the_death_of_whoever_works_on_it(live: Live, month: str) -> None:
    run = begin(live, month)
    for program in ("consumer", "airflow-scheduler", "relay", "reconciler"):
        pid = live.pid(program)
        os.kill(pid, signal.SIGKILL)
        live.wait_until_back(program, pid)

    wait_at(live, run, "warehouse_head_approves")
    for step in ("warehouse_head_approves", "finance_approves", "reviewer_decides"):
        wait_at(live, run, step)
        workflow(live, "approve", run)
    wait_for(live, run, "completed")
    assert notes(live, run) == ["closing_opened", "report_drafted", "report_filed", "closing_finished"]
    checked = live.rows(
        "SELECT reason FROM audit_log WHERE workflow_id = %s AND action = 'warehouse_checked' GROUP BY reason"
        " HAVING COUNT(*) > 1",
        run,
    )
    assert checked == [], "each item's effect exactly once"
