"""Decisions on the pages of the running stack, in Airflow's own frame: looked at first, then given with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Frame, expect

from tests.acceptance.browsing import PATIENCE_MS, framed, led
from tests.acceptance.closings import begin, wait_at, workflow
from tests.acceptance.counting import count
from tests.acceptance.live import Live
from tests.acceptance.surprising import surprising

pytestmark = pytest.mark.acceptance


def answer(live: Live, frame: Frame, run: str, step: str, button: str, reason: str) -> None:
    """Where a workflow of another module asks, as soon as it does."""
    wait_at(live, run, step)
    led(frame, "approvals")
    question = frame.locator("article", has=frame.locator(f"a[href$='/workflows/{run}']"))
    question.locator("[name=reason]").fill(reason)
    question.locator(f"button.{button}").click()
    expect(frame.locator(".notice")).to_be_visible()


def test_finance_looks_ahead_rejects_a_document_and_decides_what_another_module_asks(
    live: Live, open_as: Callable[..., Any], month: str
) -> None:
    """A clerk sees their own document and no other; finance previews what waits and rejects it, with a reason; the
    closing of a month gets two yeses, and then a no where it asks for a decision."""
    run = begin(live, month)
    waiting, own = surprising(live), live.document(count(), dibuat_oleh="warehouse")
    live.wait_for(waiting.shadow_id, "WAITING", "FAILED", "COMPLETED")
    with open_as("warehouse") as page:
        frame = framed(page, f"documents?nota={own.nomer_nota}")
        expect(frame.locator("#rows")).to_contain_text(own.nomer_nota)
        led(frame, f"documents?nota={waiting.nomer_nota}")
        expect(frame.locator("main")).not_to_contain_text(f">{waiting.nomer_nota}<")
        expect(frame.locator(f"a[href$='/documents/{waiting.shadow_id}']")).to_have_count(0)
        for path in ("", "/preview", "/journal.csv"):
            seen = page.request.get(f"/everest/documents/{waiting.shadow_id}{path}")
            assert seen.status == 404, path
        assert page.request.get(f"/everest/documents/{own.shadow_id}/preview").status == 200
    with open_as("finance") as page:
        frame = framed(page, "approvals")
        answer(live, frame, run, "warehouse_head_approves", "primary", "rak cocok")
        led(frame, f"documents/{waiting.shadow_id}")
        frame.locator("#state a[href$='/preview']").click()
        expect(frame.locator("#outcome")).to_contain_text("Perlu keputusan")
        expect(frame.locator("#balance")).to_contain_text("Seimbang")
        expect(frame.locator("#journal tbody tr")).not_to_have_count(0)
        expect(frame.locator("#card tbody tr")).not_to_have_count(0)
        assert live.postings(waiting.nomer_nota) == []
        frame.locator(".crumbs a").last.click()
        frame.locator(f"[data-open=reject{waiting.shadow_id}]").click()
        frame.locator("dialog[open] button[type=submit]").click()
        expect(frame.locator("dialog[open]")).to_be_visible()  # the browser asks for the reason
        frame.locator("dialog[open] [name=reason]").fill("rak B salah")
        frame.locator("dialog[open] button[type=submit]").click()
        expect(frame.locator(".notice")).to_contain_text("Ditolak")
        answer(live, frame, run, "finance_approves", "primary", "angka cocok")
        answer(live, frame, run, "reviewer_decides", "danger", "kurang rinci")
        led(frame, f"documents/{waiting.shadow_id}")
        expect(frame.locator("#state .badge.failed")).to_be_visible(timeout=PATIENCE_MS)
        expect(frame.locator("#state")).to_contain_text("rak B salah")
        led(frame, f"workflows/{run}")
        expect(frame.locator("#signals")).to_contain_text("tinjauan")
    assert live.shadow(waiting.shadow_id)["error_code"] == 403
    assert live.postings(waiting.nomer_nota) == []
    told = live.rows(
        "SELECT action, reason FROM audit_log WHERE actor = 'finance' AND workflow_id = %s ORDER BY id", run
    )
    assert [tuple(row.values()) for row in told] == [
        ("approve", "rak cocok"),
        ("approve", "angka cocok"),
        ("reject", "kurang rinci"),
    ]
    workflow(live, "cancel", run, "--reason", "akhir tes")
    (said,) = live.rows("SELECT actor, reason FROM audit_log WHERE transaksi_id = %s", waiting.transaksi_id)
    assert tuple(said.values()) == ("finance", "rak B salah")
