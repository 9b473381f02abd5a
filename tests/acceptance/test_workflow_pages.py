"""An engineer at a workflow that goes through real DAG runs, on its page in Airflow's own frame, in a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
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


def test_finance_fill_in_what_another_modules_workflow_asks_for(listed: Listed, open_as: Callable[..., Any]) -> None:
    """On Persetujuan, in Airflow's frame, by the inputs that its definition declares; first wrongly: the flaw stands
    at its field, what was filled in stays, and nothing was sent. Analysts see the question and no input."""
    run = listed.start(w.ASKS, bulan="2026-08")
    listed.at(run, "rate")
    with open_as("analyst") as page:
        frame = opened(page, "Persetujuan")
        asked = frame.locator("article", has=frame.locator(f"a[href$='/workflows/{run}']"))
        expect(asked).to_contain_text("2026-08")
        expect(asked.locator("form, input, select")).to_have_count(0)
    with open_as("finance") as page:
        frame = opened(page, "Persetujuan")
        asked = frame.locator("article", has=frame.locator(f"a[href$='/workflows/{run}']"))
        send = asked.locator("form button[type=submit]")
        expect(asked.locator("select option")).to_have_text(["", "BI", "BCA"])
        send.click()
        assert asked.locator("[name='field.usd']").evaluate("(one) => one.validity.valueMissing")
        asked.get_by_label("Kurs USD").fill("16.250")
        asked.get_by_label("Berlaku pada").fill("2026-08-31")
        asked.locator("select").select_option("BI")
        asked.get_by_label("catatan").fill("<b>dari koran</b>")
        send.click()
        flaw = frame.locator("[name='field.usd'][aria-invalid=true]")
        expect(flaw).to_have_value("16.250")
        expect(frame.locator("form b.minus")).to_have_text(
            ["Bisa ribuan, bisa desimal: tulis 1500, atau 1,5 (juga 1,5000)."]
        )
        expect(frame.get_by_label("catatan")).to_have_value("<b>dari koran</b>")
        assert listed.run(run)["status"] == "waiting_for_signal"
        flaw.fill("16250,50")
        frame.locator("form button[type=submit]").click()
        frame.wait_for_url(f"**/workflows/{run}?done=given")
        expect(frame.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)
        expect(frame.locator("#kept")).to_contain_text("<b>dari koran</b>")
    given = {"usd": Decimal("16250.50"), "pada": date(2026, 8, 31), "bank": "BI", "catatan": "<b>dari koran</b>"}
    assert listed.completed(run)["state"]["kurs"] == given
    assert listed.did(run) != []
    rows = listed.live.rows("SELECT actor, action FROM audit_log WHERE workflow_id = %s AND actor = 'finance'", run)
    assert [tuple(row.values()) for row in rows] == [("finance", "input")]
