"""What people read on the pages of the running stack, in a real Chromium: who may do nothing, views that are shared,
reports to the cent, and news that come by themselves."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import expect

from tests import builders
from tests.acceptance.browsing import PATIENCE_MS, form_token, led, opened
from tests.acceptance.counting import acts, count, refused
from tests.acceptance.live import Live
from tests.acceptance.surprising import surprising
from tests.builders import Line
from tests.pages.posted import csv_rows, xlsx_rows

pytestmark = pytest.mark.acceptance

Open = Callable[..., Any]
SIDES = {"surplus": "Nilai lebih", "shortage": "Nilai kurang"}
"""The two kinds of bar, and what their columns are called."""
ACTS = "[data-open], form[method=post] button, form[method=post] input:not([type=hidden])"
"""What somebody could press or fill in to change something."""
READ_BY_ALL = (
    "documents",
    "drafts",
    "approvals",
    "reports?report=warehouse&since=",
    "dead-letters",
    "workflows",
    "health",
)


def test_an_analyst_sees_everything_and_can_do_nothing(live: Live, open_as: Open) -> None:
    """From Airflow's menu on: no button of any page acts. What they send all the same is refused, and so is what
    another site sends in the name of finance, with a token that finance were given."""
    failed, waiting = refused(live), surprising(live)
    live.wait_for(failed.shadow_id, "FAILED", "COMPLETED")
    live.wait_for(waiting.shadow_id, "WAITING", "FAILED", "COMPLETED")
    run = live.shadow(waiting.shadow_id)["workflow_id"]
    before = [live.shadow(one.shadow_id) for one in (failed, waiting)]
    paths = (*READ_BY_ALL, f"documents/{failed.shadow_id}", f"documents/{waiting.shadow_id}", f"workflows/{run}")
    acting = (
        f"documents/{failed.shadow_id}/rerun",
        f"approvals/{waiting.shadow_id}/approve",
        f"workflows/{run}/cancel",
    )
    with open_as("finance") as theirs:
        page_of_form = theirs.request.get(f"/everest/documents/{failed.shadow_id}").text()
        token = form_token(page_of_form)
        for path in acting:
            foreign = {"Origin": "http://127.0.0.2:8080"}
            sent = theirs.request.post(f"/everest/{path}", form={"token": token, "reason": "ya"}, headers=foreign)
            assert sent.status == 403, path
    with open_as("analyst") as page:
        frame = opened(page, "Dokumen")
        expect(frame.locator("#rows")).to_contain_text(failed.nomer_nota)
        for path in paths:
            led(frame, path)
            expect(frame.locator("h1")).to_be_visible()
            expect(frame.locator(ACTS)).to_have_count(0)
        for path in acting:
            status = frame.evaluate(
                "async ([path, token]) => (await fetch(path, {method: 'POST',"
                " body: new URLSearchParams({token, reason: 'ya'})})).status",
                [f"/everest/{path}", token],
            )
            assert status == 403, path
        expect(frame.locator("nav a[href$='/submit']")).to_have_count(0)
    assert [live.shadow(one.shadow_id) for one in (failed, waiting)] == before
    assert acts(live, failed.transaksi_id) == acts(live, waiting.transaksi_id) == []


def amount(text: str) -> Decimal:
    """Of what a page or a file in Indonesian says."""
    return Decimal(re.sub(r"[^\d,-]", "", text.rpartition(":")[2]).replace(",", "."))


def test_a_view_is_shared_by_its_address_and_a_bar_is_its_rows_and_its_files(live: Live, open_as: Open) -> None:
    """From Airflow's menu, in its frame. Period and warehouse are chosen in the form and stand in the address, which
    shows somebody else the same. The rows behind a bar add up to it, to the cent, on the page and in both files."""
    gudang = f"GD-BAR-{secrets.token_hex(3)}"
    document = live.document(
        [Line(f"X-{gudang}", "10", "12.5", "1500.55"), Line(f"Y-{gudang}", "9", "2", "250.01"),
         Line(f"Z-{gudang}", "0", "3", "0.37")], gudang_kode=gudang,
    )  # fmt: skip
    live.publish(document.message)
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    today = datetime.now(builders.WIB).date()
    since = today - timedelta(days=2)
    with open_as("analyst") as page:
        frame = opened(page, "Laporan")
        frame.locator("select[name=report]").select_option("warehouse")
        frame.locator("[name=since]").fill(str(since))
        frame.locator("[name=until]").fill(str(today))
        frame.locator("select[name=gudang_kode]").select_option(gudang)
        frame.locator("form.filters button[type=submit]").click()
        frame.wait_for_url(re.compile("report=warehouse"))
        expect(frame.locator("tbody tr")).to_have_count(1)
        for part in ("report=warehouse", f"since={since}", f"until={today}", f"gudang_kode={gudang}"):
            assert part in frame.url
        with open_as("finance") as other:
            other.goto(frame.url)
            assert other.locator("main").inner_text() == frame.locator("main").inner_text()
        bars = {side: amount(frame.locator(f".chart .wide a.{side} title").text_content() or "") for side in SIDES}
        frame.locator(".chart .wide a.surplus").click()
        frame.wait_for_url(re.compile("report=variance"))
        headings = frame.locator("thead th").all_inner_texts()
        rows = [dict(zip(headings, row.locator("td").all_inner_texts(), strict=True))
                for row in frame.locator("tbody tr").all()]  # fmt: skip
        totals = dict(zip(headings, frame.locator("tfoot td").all_inner_texts(), strict=True))
        assert {row["Nomor nota"] for row in rows} == {document.nomer_nota} and len(rows) == 3
        with page.expect_download() as began:
            frame.locator("a[download]", has_text="CSV").click()
        in_csv = csv_rows(began.value.path().read_bytes())
        with page.expect_download() as began:
            frame.locator("a[download]", has_text="Excel").click()
        in_xlsx = xlsx_rows(began.value.path().read_bytes())
    (sums,) = live.rows(
        "SELECT SUM(nilai_debet) AS lebih, SUM(nilai_kredit) AS kurang FROM transaksi_values WHERE gudang_kode = %s",
        gudang,
    )
    for side, heading, due in (
        ("surplus", SIDES["surplus"], sums["lebih"]),
        ("shortage", SIDES["shortage"], sums["kurang"]),
    ):
        assert abs(bars[side]) == due == sum(amount(row[heading]) for row in rows) == amount(totals[heading])
        for lines, last in ((in_csv[:-1], in_csv[-1]), (in_xlsx[:-1], in_xlsx[-1])):
            read = [amount(str(row[heading]).replace(".", ",")) for row in (*lines, last)]
            assert (sum(read[:-1]), read[-1], len(lines)) == (due, due, 3)


def test_news_come_by_themselves_and_the_reader_stays_where_they_are(live: Live, open_as: Open) -> None:
    """In Airflow's frame. Scroll, focus and what is being typed survive the refresh."""
    for _ in range(3):
        live.document(count())
    with open_as("finance", viewport={"width": 1000, "height": 500}) as page:
        frame = opened(page, "Dokumen")
        frame.locator("[name=nota]").fill("SO-SEDANG")
        frame.locator("#rows tbody a").nth(1).focus()
        focused = frame.evaluate("document.activeElement.getAttribute('href')")
        frame.evaluate("window.scrollTo(0, 240)")
        fresh = live.document(count())
        expect(frame.locator("#rows")).to_contain_text(fresh.nomer_nota, timeout=PATIENCE_MS)
        assert frame.evaluate("document.activeElement.getAttribute('href')") == focused
        assert frame.evaluate("window.scrollY") == 240
        assert frame.locator("[name=nota]").input_value() == "SO-SEDANG"
