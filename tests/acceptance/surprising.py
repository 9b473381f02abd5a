"""Counts that wait for a person on the stack, and the commands that people type."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests import builders
from tests.acceptance.counting import count
from tests.acceptance.live import Live
from tests.builders import Document


def late(live: Live) -> Document:
    """Nothing is published yet; a receipt dated before its snapshot was entered behind it."""
    lines = count()
    now = datetime.now(UTC)
    snapshot = now - timedelta(hours=2)
    document = live.document(lines, snapshot_at=snapshot, diotorisasi_at=now)
    with live.connection() as conn:
        dated = (snapshot - timedelta(hours=1)).astimezone(builders.WIB).replace(tzinfo=None)
        kode = str(lines[0].kode_barang)
        builders.movement(conn, kode, masuk="4", nomer_nota="BELI-77", sumber="BELI", tanggal_wib=dated, created_at=now)
    return document


def surprising(live: Live) -> Document:
    """The same, announced by a foreign message."""
    document = late(live)
    live.publish(document.message)
    return document


def everest(live: Live, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(live.run("everest", *words, "--json").stdout)
    return answer


def tasks_of(live: Live, dag_run_id: str, dag: str = "opname_posting") -> dict[str, str]:
    with live.airflow() as airflow:
        url = f"/dags/{dag}/dagRuns/{dag_run_id}/taskInstances"
        found = airflow.get(url).raise_for_status().json()["task_instances"]
    return {task["task_id"]: task["state"] for task in found}
