"""The passages of one workflow through Airflow, for people and pages. SELECTs only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from everest.store.database import Connection, aware, load_queries
from ingest_consumer import shadow as jobs

QUERIES = load_queries("workflow_views")

MAX_DAG_RUNS = 100
"""Shown at once."""
EVERY_N = 2**31 - 1
"""More DAG runs than a workflow has."""


@dataclass(frozen=True)
class DagRun:
    """One passage through Airflow. is_by_hand: walked by a command, unknown to Airflow."""

    n: int
    dag_id: str
    dag_run_id: str
    first_at: datetime | None
    last_at: datetime | None
    steps_started: int
    steps_completed: int
    failures: int
    is_by_hand: bool


def dag_runs(conn: Connection, run: dict[str, Any], before_n: int) -> list[DagRun]:
    """Newest first. Their names stand in the messages that announced them; one walked by hand had none."""
    rows = {row["n"]: row for row in QUERIES.dag_runs(conn, run_id=run["id"], before_n=before_n, size=MAX_DAG_RUNS)}
    if run["n"] < before_n:
        rows.setdefault(run["n"], {})  # announced, and nothing happened in it yet
    if not rows:
        return []
    told = QUERIES.announcements(conn, run_id=run["id"], since_n=min(rows))
    announced = {int(row["n"]): (row["dag_id"], row["dag_run_id"]) for row in told}
    announced[run["n"]] = (run["dag_id"], run["dag_run_id"])

    def name(n: int) -> tuple[str, str]:
        key, carrier = run["idempotency_key"], run["carrier_shadow_id"] or 0
        if n in announced:
            return announced[n]
        try:
            return run["dag_id"], jobs.dag_run_id(run["workflow"], key, run["id"], carrier, n)
        except ValueError:  # a workflow by no name that we would take: no DAG run of ours is called so
            return run["dag_id"], ""

    return [
        DagRun(
            n,
            *name(n),
            aware(row.get("first_at")),
            aware(row.get("last_at")),
            int(row.get("started", 0)),
            int(row.get("completed", 0)),
            int(row.get("failed", 0)),
            bool(row.get("by_hand", 0)),
        )
        for n, row in sorted(rows.items(), reverse=True)
    ]
