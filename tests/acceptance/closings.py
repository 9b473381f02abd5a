"""The example workflow on the stack: begun, and waited for at a step."""

from __future__ import annotations

import json
from typing import Any

from tests.acceptance.live import Live, until


def workflow(live: Live, *words: str, check: bool = True) -> dict[str, Any]:
    """`python -m everest workflow ... --json`, as an operator types it."""
    done = live.run("everest", "workflow", *words, "--json", check=check)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def begin(live: Live, month: str) -> str:
    sent = workflow(live, "dispatch", "monthly_closing", "--payload", json.dumps({"bulan": month}))
    return str(sent["workflow_id"])


def run_row(live: Live, run: str) -> dict[str, Any]:
    (row,) = live.rows("SELECT * FROM workflow_runs WHERE id = %s", run)
    return row


def wait_at(live: Live, run: str, step: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        row = run_row(live, run)
        assert row["status"] not in ("failed", "cancelled"), row["error"]
        return row if (row["status"], row["current_step"]) == ("waiting_for_signal", step) else None

    return until(f"workflow {run} to wait at {step}", look)
