"""A line of a task's log names the job as the logs of consumer, relay and reconciler do."""

from __future__ import annotations

import json
import time
from typing import Any

from everest.opname.workflow import POST_OPNAME
from tests.acceptance.live import Live
from tests.builders import Line


def lines(live: Live, run: str, task: str) -> list[dict[str, Any]]:
    with live.airflow() as airflow:
        path = f"/dags/{POST_OPNAME.name}/dagRuns/{run}/taskInstances/{task}/logs/1"
        answer = airflow.get(path, headers={"accept": "application/x-ndjson"}).raise_for_status()
    return [json.loads(line) for line in answer.text.splitlines() if line.strip()]


def test_each_step_logs_with_the_ids_of_the_job_in_airflow(live: Live) -> None:
    document = live.document([Line(f"X-LOG-{time.time_ns()}", "1", "2", "1000")])
    live.publish(document.message)
    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert row["worker_status"] == "COMPLETED", row["error"]
    due = {
        "shadow_id": document.shadow_id,
        "transaksi_id": document.transaksi_id,
        "nota": document.nomer_nota,
        "workflow_id": row["workflow_id"],
        "dag_run_id": row["dag_run_id"],
        "n": 1,
    }
    first = POST_OPNAME.steps[0]
    for step in POST_OPNAME.steps:
        said = [line for line in lines(live, row["dag_run_id"], step.name) if "Steps of this task" in str(line)]
        assert len(said) == 1, step.name
        # A job of another program has no run of ours until its first step begins one.
        known = {name: id for name, id in due.items() if (name, step) != ("workflow_id", first)}
        assert {name: said[0].get(name) for name in known} == known
