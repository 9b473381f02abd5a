"""What people do on the pages of the running stack, in a real Chromium, each as themselves; who did it stands in the
audit log afterwards. Their documents go through the stack at the same time."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from tests import builders
from tests.acceptance.browsing import PATIENCE_MS, framed, led, say
from tests.acceptance.counting import acts, count, refused
from tests.acceptance.live import Live
from tests.acceptance.surprising import surprising
from tests.builders import Document

pytestmark = pytest.mark.acceptance

Open = Callable[..., Any]


def kept_out(live: Live) -> Document:
    """It will fail: its warehouse is not active yet, which another program puts right (`let_in`)."""
    gudang = f"GD-TUTUP-{secrets.token_hex(3)}"
    document = live.document(count(), gudang_kode=gudang)
    _activate(live, document, False)
    live.publish(document.message)
    return document


def let_in(live: Live, document: Document) -> None:
    _activate(live, document, True)


def _activate(live: Live, document: Document, is_active: bool) -> None:
    with live.connection() as conn, conn.cursor() as cursor:
        cursor.execute(
            "UPDATE gudang SET aktif = %s WHERE gudang_kode ="
            " (SELECT gudang_kode FROM so_headers_staging WHERE transaksi_id = %s)",
            (is_active, document.transaksi_id),
        )
        conn.commit()


def test_finance_reruns_approves_reverses_replays_and_drops(live: Live, open_as: Open) -> None:
    """In Airflow's frame. A failed one is run again once its cause is put right, a waiting one is approved, a posted
    one reversed; of three dead letters two are replayed together and one is dropped with a reason."""
    rerun, first, second = (kept_out(live) for _ in range(3))
    hopeless = refused(live)
    waiting = surprising(live)
    posted = live.document(count())
    live.publish(posted.message)
    for document in (rerun, first, second, hopeless):
        live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    for document in (rerun, first, second):
        let_in(live, document)
    live.wait_for(waiting.shadow_id, "WAITING", "FAILED", "COMPLETED")
    live.wait_for(posted.shadow_id, "COMPLETED", "FAILED")
    with open_as("finance") as page:
        frame = framed(page, f"documents/{rerun.shadow_id}")
        say(frame, "rerun", "sudah dihitung")
        frame.locator(".notice").wait_for()
        led(frame, "approvals")
        expect(frame.locator(f"#q{waiting.shadow_id}")).to_contain_text("BELI-77")
        led(frame, f"documents/{waiting.shadow_id}")
        expect(frame.locator("#question")).to_contain_text("BELI-77")
        say(frame, f"approve{waiting.shadow_id}", "barang datang pagi")
        frame.locator(".notice").wait_for()
        led(frame, f"documents/{posted.shadow_id}")
        say(frame, "reverse", "salah gudang")
        frame.wait_for_url(re.compile("done=reversed"))
        reversal = int(re.findall(r"/documents/(\d+)", frame.url)[0])
        led(frame, "dead-letters")
        for document in (first, second):
            frame.locator(f"input[name=shadow_id][value='{document.shadow_id}']").check()
        frame.locator("#failed [name=reason]").fill("sudah dihitung")
        frame.locator("#failed button.primary").click()
        expect(frame.locator("td .badge.good")).to_have_count(2)
        expect(frame.locator("main")).to_contain_text(second.nomer_nota)
        led(frame, "dead-letters")
        frame.locator(f"input[name=shadow_id][value='{hopeless.shadow_id}']").check()
        frame.locator("#failed button.danger").click()
        expect(frame.locator("#failed .unsent")).to_contain_text("Alasan")  # it needs a reason, and the choice stays
        frame.locator("#failed [name=reason]").fill("hitung ulang dengan nota baru")
        frame.locator("#failed button.danger").click()
        expect(frame.locator("td .badge.good")).to_have_count(1)
        for shadow_id in (rerun.shadow_id, waiting.shadow_id, reversal):
            led(frame, f"documents/{shadow_id}")
            expect(frame.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)
        expect(frame.locator("#summary")).to_contain_text(posted.nomer_nota)  # a reversal names what it reverses
        led(frame, f"documents/{posted.shadow_id}")
        expect(frame.locator("#summary")).to_contain_text(f"{posted.nomer_nota}-BALIK")
    for document in (first, second):
        assert live.wait_for(document.shadow_id, "COMPLETED", "FAILED")["worker_status"] == "COMPLETED"
    mirror = f"{posted.nomer_nota}-BALIK"
    assert len(live.postings(mirror)) == 1 and live.books_agree([posted.nomer_nota, mirror])
    assert live.shadow(hopeless.shadow_id)["worker_status"] == "CANCELLED"
    assert ("finance", "rerun", "sudah dihitung") in acts(live, rerun.transaksi_id)
    assert ("finance", "rerun", "sudah dihitung") in acts(live, second.transaksi_id)
    assert ("finance", "approve", "barang datang pagi") in acts(live, waiting.transaksi_id)
    assert ("finance", "drop", "hitung ulang dengan nota baru") in acts(live, hopeless.transaksi_id)
    assert any(
        (row["actor"], row["reason"]) == ("finance", "salah gudang")
        for row in live.rows("SELECT actor, reason FROM audit_log WHERE action = 'reverse' ORDER BY id DESC LIMIT 5")
    )


def test_a_failed_document_is_corrected_on_its_page_and_run_again(live: Live, open_as: Open) -> None:
    """Finance fills in what was not counted, first wrongly; an engineer authorises it, and it posts before the eyes of
    both: the page of finance stays open meanwhile."""
    document = refused(live)
    live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    with open_as("finance") as page:
        frame = framed(page, f"documents/{document.shadow_id}")
        frame.locator(f"a[href$='/documents/{document.shadow_id}/correct']").click()
        lines = frame.locator("[name=pasted]").input_value()
        assert ";4;;250" in lines
        frame.locator("[name=reason]").fill("dihitung lagi")
        frame.locator("[name=pasted]").fill(lines.replace(";4;;250", ";4;satu;250"))
        frame.locator("form.upload button[type=submit]").click()
        expect(frame.locator("#problems")).to_contain_text("qty_fisik")
        frame.locator("[name=pasted]").fill(lines.replace(";4;;250", ";4;1;250"))
        frame.locator("form.upload button[type=submit]").click()
        frame.wait_for_url(re.compile("done=corrected"))
        expect(frame.locator("#state")).to_contain_text("dihitung lagi")
        expect(frame.locator("[data-open=authorise]")).to_have_count(0)
        assert live.shadow(document.shadow_id)["worker_status"] == "FAILED"
        frame.evaluate("window.stays = true")
        with open_as("engineer") as other:
            theirs = framed(other, f"documents/{document.shadow_id}")
            expect(theirs.locator("#state")).to_contain_text("dihitung lagi")
            say(theirs, "authorise")
            for one in (theirs, frame):
                expect(one.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)
        assert frame.evaluate("window.stays"), "it refreshed itself"
    assert acts(live, document.transaksi_id) == [
        ("finance", "replace", "dihitung lagi"),
        ("engineer", "authorise", None),
        ("engineer", "rerun", "dihitung lagi"),
    ]
    assert live.books_agree([document.nomer_nota])


def test_who_made_a_document_has_no_buttons_to_decide_about_it(live: Live, open_as: Open) -> None:
    """And whoever sends the form all the same is refused."""
    lines, now = count(), datetime.now(UTC)
    snapshot = now - timedelta(hours=2)
    document = live.document(lines, snapshot_at=snapshot, diotorisasi_at=now, dibuat_oleh="finance")
    with live.connection() as conn:
        dated = (snapshot - timedelta(hours=1)).astimezone(builders.WIB).replace(tzinfo=None)
        builders.movement(
            conn, str(lines[0].kode_barang), masuk="4", nomer_nota="BELI-78", tanggal_wib=dated, created_at=now
        )
    live.publish(document.message)
    live.wait_for(document.shadow_id, "WAITING", "FAILED", "COMPLETED")
    with open_as("finance") as page:
        page.goto("/everest/approvals")
        question = page.locator(f"#q{document.shadow_id}")
        expect(question).to_be_visible()
        expect(question.locator("[data-open]")).to_have_count(0)
        answer = page.evaluate(
            """async (path) => {
                const token = (await (await fetch("/everest/submit")).text()).match(/name="token" value="([^"]+)"/)[1];
                return (await fetch(path, {method: "POST", body: new URLSearchParams({token, reason: "ya"})})).status;
            }""",
            f"/everest/approvals/{document.shadow_id}/approve",
        )
    assert answer in (403, 409)
    assert live.shadow(document.shadow_id)["worker_status"] == "WAITING"
