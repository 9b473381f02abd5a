"""The empty DAG, the floor of P4 and P5: put where the stack's Airflow sees it, triggered by REST, taken away again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from stack.layout import Layout

DAG = "bench_empty"
POSTING_DAG = "opname_posting"
FILE = Path(__file__).with_name("dags") / f"{DAG}.py"
FOUND_SECONDS = 120
RUN_SECONDS = 900
POLL_SECONDS = 0.5
"""Each poll costs the API server 20 ms of CPU, which the runs that are measured would miss."""


class Airflow:
    """Just enough of the REST API, as any other program would use it."""

    def __init__(self) -> None:
        url, user, password = (os.environ.get(f"EVEREST_AIRFLOW_{name}") for name in ("URL", "USER", "PASSWORD"))
        if not (url and user and password):
            raise RuntimeError("no Airflow: `make up` starts one, `source .local/stack.env` says where it is")
        self._client = httpx.Client(base_url=url, timeout=30, trust_env=False)
        answer = self._client.post("/auth/token", json={"username": user, "password": password})
        answer.raise_for_status()
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def trigger(self, run_id: str) -> None:
        body: dict[str, Any] = {"dag_run_id": run_id, "logical_date": None, "conf": {}}
        self._client.post(f"/api/v2/dags/{DAG}/dagRuns", json=body).raise_for_status()

    def active(self, dag: str = DAG) -> int:
        """Runs of a DAG that have not ended."""
        answer = self._runs(dag, {"state": ["queued", "running"], "limit": 1})
        return int(answer["total_entries"])

    def ended(self, prefix: str) -> list[datetime]:
        """When the runs of that prefix ended. Raises RuntimeError if one failed."""
        parameters = {"dag_run_id_pattern": f"{prefix}%", "run_id_pattern": f"{prefix}%", "limit": 100}
        found = [run for run in self._runs(DAG, parameters)["dag_runs"] if run["dag_run_id"].startswith(prefix)]
        failed = [run["dag_run_id"] for run in found if run["state"] != "success"]
        if failed:
            raise RuntimeError(f"empty runs that did not succeed: {failed[:3]}")
        return [datetime.fromisoformat(run["end_date"]) for run in found]

    def wait_until_idle(self) -> None:
        """Nothing of ours and nothing of the floor is at work any more, so the next measurement is alone."""
        deadline = time.monotonic() + RUN_SECONDS
        while self.active() or self.active(POSTING_DAG):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Airflow still had runs at work after {RUN_SECONDS} s")
            time.sleep(POLL_SECONDS)

    def _runs(self, dag: str, parameters: dict[str, Any]) -> Any:
        answer = self._client.get(f"/api/v2/dags/{dag}/dagRuns", params={"order_by": "-run_after", **parameters})
        answer.raise_for_status()
        return answer.json()

    def knows_floor(self) -> bool:
        answer = self._client.get(f"/api/v2/dags/{DAG}")
        return answer.status_code == 200 and not answer.json()["is_stale"] and not answer.json()["is_paused"]

    def forget_floor(self) -> None:
        with suppress(httpx.HTTPError):  # an Airflow that is gone loses the file, and forgets it when it is back
            self._client.delete(f"/api/v2/dags/{DAG}")


@contextmanager
def with_empty_dag(layout: Layout) -> Iterator[Airflow]:
    """Airflow with the empty DAG loaded; afterwards neither the file nor its runs are there."""
    airflow = Airflow()
    if not layout.bench_dags.exists():
        raise RuntimeError("this stack was started without a folder for the benchmark's DAG; `make up` again")
    copy = layout.bench_dags / FILE.name
    shutil.copyfile(FILE, copy)
    try:
        deadline = time.monotonic() + FOUND_SECONDS
        while not airflow.knows_floor():
            if time.monotonic() > deadline:
                raise RuntimeError(f"Airflow did not load {copy} within {FOUND_SECONDS} s")
            time.sleep(POLL_SECONDS)
        yield airflow
    finally:
        copy.unlink(missing_ok=True)
        shutil.rmtree(layout.bench_dags / "__pycache__", ignore_errors=True)
        airflow.forget_floor()
