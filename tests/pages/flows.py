"""Steps and forms of a workflow, as the tests of Alur kerja use them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from everest.workflow.questions import ask_decision
from tests.pages.conftest import Browser
from tests.workflow.world import MysqlWorld


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write(["undo", step.step])


def asks(state: dict[str, Any], step: Any) -> dict[str, Any] | None:
    """A step that asks a person itself, and may not be answered by the one who made the bill."""
    if step.decision is not None:
        return {"keputusan": step.decision.outcome}
    return ask_decision(
        ["tagihan <b>77</b> melebihi anggaran"], "bukti-1", timedelta(days=2), not_by=("Finance",),
        message="menunggu bendahara", details={"jumlah": "12500000"},
    )  # fmt: skip


def sequence(page: str) -> str:
    return re.findall(r'name="sequence" value="(\d+)"', page)[0]


def said(world: MysqlWorld, run_id: int) -> list[tuple[str, str, str | None]]:
    rows = world.rows("SELECT actor, action, reason FROM audit_log WHERE workflow_id = %s ORDER BY id", run_id)
    return [(row["actor"], row["action"], row["reason"]) for row in rows if row["actor"] != "system"]


def posted(client: Browser, run_id: int, action: str, done: str, **fields: Any) -> None:
    answer = client.submit(f"/workflows/{run_id}/{action}", **fields)
    assert (answer.status_code, answer.headers.get("location")) == (303, f"/workflows/{run_id}?done={done}"), (
        answer.text
    )
    assert client.get(answer.headers["location"]).status_code == 200
