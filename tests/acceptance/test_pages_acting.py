"""What people do on the pages of the running stack, in a real Chromium, each as themselves; who did it stands in the
audit log afterwards. Their documents go through the stack at the same time."""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import openpyxl
import pytest
from playwright.sync_api import Page, expect

from tests import builders
from tests.acceptance.browsing import PATIENCE_MS, framed
from tests.acceptance.counting import count
from tests.acceptance.live import Live
from tests.acceptance.surprising import surprising
from tests.builders import Document, Line

pytestmark = pytest.mark.acceptance

Open = Callable[..., Any]


def refused(live: Live) -> Document:
    """It will fail: a line was not counted."""
    item = secrets.token_hex(5)
    document = live.document([Line(f"A-{item}", "10", "12", "1500"), Line(f"B-{item}", "4", None, "250")])
    live.publish(document.message)
    return document


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


def say(page: Page, opener: str, reason: str | None = None) -> None:
    """Opens a dialog of the page and confirms it."""
    page.locator(f"[data-open={opener}]").click()
    if reason is not None:
        page.locator("dialog[open] [name=reason]").fill(reason)
    page.locator("dialog[open] button[type=submit]").click()


def acts(live: Live, transaksi_id: int) -> list[tuple[str, str, str | None]]:
    rows = live.rows("SELECT actor, action, reason FROM audit_log WHERE transaksi_id = %s ORDER BY id", transaksi_id)
    return [(row["actor"], row["action"], row["reason"]) for row in rows]


def test_finance_reruns_approves_reverses_replays_and_drops(live: Live, open_as: Open) -> None:
    """A failed one is run again once its cause is put right, a waiting one is approved, a posted one reversed; of three
    dead letters two are replayed together and one is dropped with a reason."""
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
    with open_as("analyst") as page:
        page.goto(f"/everest/documents/{rerun.shadow_id}")
        expect(page.locator("#summary")).to_contain_text("gudang_kode")
        expect(page.locator("[data-open]")).to_have_count(0)  # who only reads has no buttons
    with open_as("finance") as page:
        page.goto(f"/everest/documents/{rerun.shadow_id}")
        say(page, "rerun", "sudah dihitung")
        page.goto("/everest/approvals")
        expect(page.locator(f"#q{waiting.shadow_id}")).to_contain_text("BELI-77")
        say(page, f"approve{waiting.shadow_id}", "barang datang pagi")
        page.goto(f"/everest/documents/{posted.shadow_id}")
        say(page, "reverse", "salah gudang")
        expect(page).to_have_url(re.compile("done=reversed"))
        reversal = int(re.findall(r"/documents/(\d+)", page.url)[0])
        page.goto("/everest/dead-letters")
        for document in (first, second):
            page.locator(f"input[name=shadow_id][value='{document.shadow_id}']").check()
        page.locator("#failed [name=reason]").fill("sudah dihitung")
        page.locator("#failed button.primary").click()
        expect(page.locator("main")).to_contain_text(second.nomer_nota)
        page.goto("/everest/dead-letters")
        page.locator(f"input[name=shadow_id][value='{hopeless.shadow_id}']").check()
        page.locator("#failed button.danger").click()
        expect(page.locator("main")).not_to_contain_text(hopeless.nomer_nota)  # it needs a reason
        page.goto("/everest/dead-letters")
        page.locator(f"input[name=shadow_id][value='{hopeless.shadow_id}']").check()
        page.locator("#failed [name=reason]").fill("hitung ulang dengan nota baru")
        page.locator("#failed button.danger").click()
        expect(page.locator("main")).to_contain_text(hopeless.nomer_nota)
        for shadow_id in (rerun.shadow_id, waiting.shadow_id, reversal):
            page.goto(f"/everest/documents/{shadow_id}")
            expect(page.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.locator("#summary")).to_contain_text(posted.nomer_nota)  # a reversal names what it reverses
        page.goto(f"/everest/documents/{posted.shadow_id}")
        expect(page.locator("#summary")).to_contain_text(f"{posted.nomer_nota}-BALIK")
    for document in (first, second):
        assert live.wait_for(document.shadow_id, "COMPLETED", "FAILED")["worker_status"] == "COMPLETED"
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
    """Finance fills in what was not counted, first wrongly; an engineer authorises it, and it posts."""
    document = refused(live)
    live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    with open_as("finance") as page:
        page.goto(f"/everest/documents/{document.shadow_id}")
        page.locator(f"a[href$='/documents/{document.shadow_id}/correct']").click()
        lines = page.locator("[name=pasted]").input_value()
        assert ";4;;250" in lines
        page.locator("[name=reason]").fill("dihitung lagi")
        page.locator("[name=pasted]").fill(lines.replace(";4;;250", ";4;satu;250"))
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("#problems")).to_contain_text("qty_fisik")
        page.locator("[name=pasted]").fill(lines.replace(";4;;250", ";4;1;250"))
        page.locator("form.upload button[type=submit]").click()
        expect(page).to_have_url(re.compile("done=corrected"))
        expect(page.locator("[data-open=authorise]")).to_have_count(0)
    assert live.shadow(document.shadow_id)["worker_status"] == "FAILED"
    with open_as("engineer") as page:
        page.goto(f"/everest/documents/{document.shadow_id}")
        expect(page.locator("#state")).to_contain_text("dihitung lagi")
        say(page, "authorise")
        expect(page.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)
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


def test_a_bar_leads_to_its_rows_and_the_files_add_up_to_the_screen(live: Live, open_as: Open) -> None:
    """In Airflow's frame, to the cent: what the table says, what the CSV file holds, and what the workbook holds."""
    gudang = f"GD-BAR-{secrets.token_hex(3)}"
    document = live.document(
        [Line(f"X-{gudang}", "10", "12.5", "1500.55"), Line(f"Y-{gudang}", "9", "2", "250.01")], gudang_kode=gudang
    )
    live.publish(document.message)
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    with open_as("analyst") as page:
        frame = framed(page, "reports?report=warehouse&since=")
        frame.locator("select[name=gudang_kode]").select_option(gudang)
        frame.locator("form.filters button[type=submit]").click()
        frame.locator(".chart a").first.click()
        expect(frame.locator("tbody")).to_contain_text(document.nomer_nota)
        assert "report=variance" in frame.url and gudang in frame.url  # the view can be shared
        shown = [one.strip() for one in frame.locator("tfoot td").all_inner_texts()]
        with page.expect_download() as began:
            frame.locator("a[download]", has_text="CSV").click()
        csv = began.value.path().read_text("utf-8-sig")
        with page.expect_download() as began:
            frame.locator("a[download]", has_text="Excel").click()
        sheet = openpyxl.load_workbook(io.BytesIO(began.value.path().read_bytes())).worksheets[0]
    amounts = {Decimal(re.sub(r"[^\d,-]", "", one).replace(",", ".")) for one in shown if one.startswith(("Rp", "-Rp"))}
    (sums,) = live.rows(
        "SELECT SUM(nilai_debet) AS lebih, SUM(nilai_kredit) AS kurang FROM transaksi_values WHERE gudang_kode = %s",
        gudang,
    )
    assert {sums["lebih"], sums["kurang"], sums["lebih"] - sums["kurang"]} == amounts
    for amount in (sums["lebih"], sums["kurang"]):
        assert f"{amount:.2f}".replace(".", ",") in csv.replace(".", "")
        cells = [cell.value for row in sheet.iter_rows() for cell in row if isinstance(cell.value, int | float)]
        assert any(Decimal(str(value)) == amount for value in cells)


def test_an_engineer_pauses_resumes_and_cancels_a_workflow(live: Live, open_as: Open) -> None:
    document = surprising(live)
    live.wait_for(document.shadow_id, "WAITING", "FAILED", "COMPLETED")
    run = live.shadow(document.shadow_id)["workflow_id"]
    with open_as("finance") as page:
        page.goto(f"/everest/workflows/{run}")
        expect(page.locator("#state [data-open]")).to_have_count(0)
    with open_as("engineer") as page:
        page.goto(f"/everest/workflows/{run}")
        say(page, "pause", "audit")
        expect(page.locator("#state .badge.paused")).to_be_visible()
        say(page, "resume")
        expect(page.locator("#state .badge.waiting_for_signal")).to_be_visible()
        say(page, "cancel", "salah dokumen")
        expect(page.locator("#state .badge.cancelled")).to_be_visible()
    rows = live.rows("SELECT actor, action FROM audit_log WHERE workflow_id = %s", run)
    told = {(row["actor"], row["action"]) for row in rows}
    assert {("engineer", "pause"), ("engineer", "resume"), ("engineer", "cancel")} <= told


def test_news_come_by_themselves_and_the_reader_stays_where_they_are(live: Live, open_as: Open) -> None:
    """Scroll, focus and what is being typed survive the refresh."""
    for _ in range(3):
        live.document(count())
    with open_as("finance", viewport={"width": 1000, "height": 500}) as page:
        page.goto("/everest/documents")
        page.locator("[name=nota]").fill("SO-SEDANG")
        page.locator("#rows tbody a").nth(1).focus()
        focused = page.evaluate("document.activeElement.getAttribute('href')")
        page.evaluate("window.scrollTo(0, 240)")
        fresh = live.document(count())
        expect(page.locator("#rows")).to_contain_text(fresh.nomer_nota, timeout=PATIENCE_MS)
        assert page.evaluate("document.activeElement.getAttribute('href')") == focused
        assert page.evaluate("window.scrollY") == 240
        assert page.locator("[name=nota]").input_value() == "SO-SEDANG"
