"""The benchmarks' own DAGs, such as the empty one: put where the stack's Airflow sees them, taken away again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from stack.layout import Layout

EMPTY_DAG = "bench_empty"
FUSED_DAG = "bench_fused"
POSTING_DAG = "opname_posting"
FOLDER = Path(__file__).with_name("dags")
FOUND_SECONDS = 120
RUN_SECONDS = 900
TRIGGERING_THREADS = 4
"""As many as the stack's consumer has workers."""
POLL_SECONDS = 0.5
"""Each poll costs the API server 20 ms of CPU, which the runs that are measured would miss."""


class Airflow:
    """Just enough of the REST API, as any other program would use it."""

    @classmethod
    def of_the_stack(cls) -> Airflow:
        url, user, password = (os.environ.get(f"EVEREST_AIRFLOW_{name}") for name in ("URL", "USER", "PASSWORD"))
        if not (url and user and password):
            raise RuntimeError("no Airflow: `make up` starts one, `source .local/stack.env` says where it is")
        return cls(url, user, password)

    def __init__(self, url: str, user: str, password: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30, trust_env=False)
        answer = self._client.post("/auth/token", json={"username": user, "password": password})
        answer.raise_for_status()
        self.loaded: tuple[str, ...] = ()
        """The DAGs whose runs are waited for."""
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def trigger(self, dag: str, run_id: str) -> None:
        body: dict[str, Any] = {"dag_run_id": run_id, "logical_date": None, "conf": {}}
        self._client.post(f"/api/v2/dags/{dag}/dagRuns", json=body).raise_for_status()

    def active(self, dag: str) -> int:
        """Runs of a DAG that have not ended."""
        answer = self._runs(dag, {"state": ["queued", "running"], "limit": 1})
        return int(answer["total_entries"])

    def ended(self, dag: str, prefix: str) -> list[datetime]:
        """When the runs of that prefix ended. Raises RuntimeError if one failed."""
        parameters = {"dag_run_id_pattern": f"{prefix}%", "run_id_pattern": f"{prefix}%", "limit": 100}
        found = [run for run in self._runs(dag, parameters)["dag_runs"] if run["dag_run_id"].startswith(prefix)]
        failed = [run["dag_run_id"] for run in found if run["state"] != "success"]
        if failed:
            raise RuntimeError(f"empty runs that did not succeed: {failed[:3]}")
        return [datetime.fromisoformat(run["end_date"]) for run in found]

    def wait_until_idle(self) -> None:
        """Nothing of ours and nothing of the floor is at work any more, so the next measurement is alone."""
        deadline = time.monotonic() + RUN_SECONDS
        while any(self.active(dag) for dag in self.loaded):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Airflow still had runs at work after {RUN_SECONDS} s")
            time.sleep(POLL_SECONDS)

    def _runs(self, dag: str, parameters: dict[str, Any]) -> Any:
        answer = self._client.get(f"/api/v2/dags/{dag}/dagRuns", params={"order_by": "-run_after", **parameters})
        answer.raise_for_status()
        return answer.json()

    def knows(self, dag: str) -> bool:
        answer = self._client.get(f"/api/v2/dags/{dag}")
        return answer.status_code == 200 and not answer.json()["is_stale"] and not answer.json()["is_paused"]

    def wait_for_dags(self, *dags: str) -> None:
        """Until they can be triggered."""
        deadline = time.monotonic() + FOUND_SECONDS
        while not all(self.knows(dag) for dag in dags):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Airflow did not load {', '.join(dags)} within {FOUND_SECONDS} s")
            time.sleep(POLL_SECONDS)
        self.loaded = dags

    def forget(self, dag: str) -> None:
        with suppress(httpx.HTTPError):  # an Airflow that is gone loses the file, and forgets it when it is back
            self._client.delete(f"/api/v2/dags/{dag}")


def burst(airflow: Airflow, dag: str, prefix: str, count: int) -> float:
    """Seconds from the first POST of so many runs to the end of the last."""
    airflow.wait_until_idle()
    began = datetime.now(UTC)
    with ThreadPoolExecutor(TRIGGERING_THREADS) as pool:
        list(pool.map(lambda number: airflow.trigger(dag, f"{prefix}{number}"), range(count)))
    airflow.wait_until_idle()
    ended = airflow.ended(dag, prefix)
    if len(ended) != count:
        raise RuntimeError(f"{len(ended)} of {count} runs of {dag} are known to Airflow")
    return (max(ended) - began).total_seconds()


@contextmanager
def with_dags(layout: Layout, *dags: str) -> Iterator[Airflow]:
    """Airflow with these DAGs of `bench/dags` loaded; afterwards neither their files nor their runs are there."""
    airflow = Airflow.of_the_stack()
    if not layout.bench_dags.exists():
        raise RuntimeError("this stack was started without a folder for the benchmark's DAGs; `make up` again")
    copies = {dag: layout.bench_dags / f"{dag}.py" for dag in dags}
    try:
        for dag, copy in copies.items():
            shutil.copyfile(FOLDER / f"{dag}.py", copy)
        airflow.wait_for_dags(POSTING_DAG, *dags)
        yield airflow
    finally:
        for copy in copies.values():
            copy.unlink(missing_ok=True)
        shutil.rmtree(layout.bench_dags / "__pycache__", ignore_errors=True)
        for dag in dags:
            airflow.forget(dag)
