"""What is left on a DAG run for whoever looks at it in Airflow: why it ended, and links to the runs before, behind,
above and below it. A courtesy: what is true stands in the rows.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ingest_consumer.airflow_api import run_link
from ingest_consumer.shadow import Shadow, queries

CHILDREN_SHOWN = 3
"""Airflow takes 1,000 characters of a note, and a link to a run has up to 400."""


def joined(*parts: str | None) -> str | None:
    return "; ".join(part for part in parts if part) or None


def way_back(dag_id: str, run_id: str) -> str | None:
    """A continuation names the run before it: the id of run n ends with n."""
    _, _, n = run_id.rpartition("__")
    return f"continues {_link(dag_id, run_id, int(n) - 1)}" if n.isdecimal() and int(n) > 1 else None


def relatives(conn: Any, row: Shadow, since: datetime | None) -> str | None:
    """The workflow that this one is a part of or was started by, and those it runs or has started `since` its DAG run
    began."""
    if row.workflow_id is None:
        return None
    links: dict[str, list[str]] = {}
    for one in queries.relatives(conn, workflow_id=row.workflow_id, since=since, shown=CHILDREN_SHOWN + 1):
        links.setdefault(one.relation, []).append(_link(one.dag_id, one.dag_run_id, max(1, one.n)))
    return joined(*(f"{relation} {_some(found)}" for relation, found in links.items()))


def _some(links: list[str]) -> str:
    return ", ".join(links[:CHILDREN_SHOWN]) + (" and others" if len(links) > CHILDREN_SHOWN else "")


def _link(dag_id: str, run_id: str, n: int) -> str:
    return run_link(dag_id, f"{run_id.rpartition('__')[0]}__{n}")
