"""An engineer at a workflow that goes through real DAG runs, on its page in Airflow's own frame, in a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from tests.acceptance import listed_workflows as w
from tests.acceptance.browsing import PATIENCE_MS, follow, opened, say
from tests.acceptance.listed import Listed
from tests.acceptance.live import until


def test_an_engineer_retries_pauses_signals_and_cancels_and_sees_what_was_done_undone(
    listed: Listed, open_as: Callable[..., Any]
) -> None:
    """Each change is seen to happen without loading the page again; from there on to the DAG run in Airflow."""
    run = listed.start(w.DRIVEN, refuses=True)
    listed.failed(run)
    with open_as("finance") as page:
        page.goto(f"/everest/workflows/{run}")
        expect(page.locator("#state .badge.failed")).to_be_visible()
        expect(page.locator("#state [data-open], form[action$='/signal']")).to_have_count(0)
    with open_as("engineer") as page:
        frame = opened(page, "Alur kerja")
        frame.locator("select[name=workflow]").select_option(w.DRIVEN.name)
        frame.locator("form.filters button[type=submit]").click()
        frame.wait_for_url(f"**workflow={w.DRIVEN.name}*")
        frame.locator(f"#rows a[href$='/workflows/{run}']").click()
        expect(frame.locator("#state")).to_contain_text("belum bisa")
        say(frame, "retry", "gudang sudah dibuka")
        waits = frame.locator("#state .badge.waiting_for_signal")
        expect(waits).to_be_visible(timeout=PATIENCE_MS)
        expect(frame.locator("#question")).to_contain_text("truck")
        say(frame, "pause", "audit")
        expect(frame.locator("#state .badge.paused")).to_be_visible()
        say(frame, "resume")
        expect(waits).to_be_visible()
        names = frame.locator("form[action$='/signal'] select[name=name]")
        assert names.locator("option").all_inner_texts() == ["truck", "papers"]
        names.select_option("truck")
        frame.locator("form[action$='/signal'] [name=payload]").fill('{"nomor": "B 1 X", "berat": 1.10}')
        frame.locator("form[action$='/signal'] button").click()
        expect(frame.locator("#signals")).to_contain_text("B 1 X")
        expect(frame.locator("#question")).to_contain_text("papers", timeout=PATIENCE_MS)
        say(frame, "cancel", "salah dokumen")
        expect(frame.locator("#state .badge.cancelled")).to_be_visible()
        undone = frame.locator("#facts li", has_text="selesai")
        expect(undone).to_have_count(2, timeout=PATIENCE_MS)
        _, name = listed.name(run, 4)  # the last one; of those that a wait announced Airflow knows nothing
        assert frame.locator("a[data-airflow][href*='/runs/']").first.inner_text() == name
        follow(page, frame, f"a[data-airflow][href$='/runs/{name}']", f"/dags/{w.DRIVEN.dag_id}/dagRuns/{name}($|/)")
        page.wait_for_url(f"**/dags/{w.DRIVEN.dag_id}/runs/{name}*")
    row = listed.run(run)
    assert (row["status"], row["compensation"]) == ("cancelled", "done")
    assert json.dumps(row["state"]["truck"], default=str) == '{"nomor": "B 1 X", "berat": "1.10"}'
    assert len(listed.did(run, "undid")) == 2, "the newest first, each once"
    assert listed.attempts(run)["one", 1, ""] == 1, "what had been done was not done again"
    until("green DAG runs", lambda: [listed.dag_run(run, n) for n in (2, 4)] == ["success", "success"])
    rows = listed.live.rows(
        "SELECT action, reason FROM audit_log WHERE workflow_id = %s AND actor = 'engineer' ORDER BY id", run
    )
    assert [tuple(row.values()) for row in rows] == [
        ("rerun", "gudang sudah dibuka"),
        ("pause", "audit"),
        ("resume", None),
        ("signal", "truck"),
        ("cancel", "salah dokumen"),
    ]
