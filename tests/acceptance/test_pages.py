"""The pages in a real Chromium, inside Airflow's own frame, each person with their own login."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable
from typing import Any

import httpx
import openpyxl
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests import builders
from tests.acceptance.browsing import PATIENCE_MS, ours, token_of
from tests.acceptance.live import Live, until

WRONG = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n{item};10;;1500,00\n"
COLUMNS = {"kode_barang": 1, "qty_sistem": 10, "qty_fisik": 12, "harga_pokok": 1500}


def choose(page: Page, *names: str) -> None:
    """From Airflow's own menus, one below the other."""
    page.get_by_role("button", name=names[0], exact=True).click()
    for name in names[1:]:
        page.locator("[role^=menuitem]", has_text=name).click()


def filled_in(template: bytes, item: str) -> dict[str, Any]:
    """The empty sheet of the page, with one line that somebody counted."""
    book = openpyxl.load_workbook(io.BytesIO(template))
    sheet = book.worksheets[0]
    titles = [str(cell.value) for cell in sheet[1]]
    values = {**COLUMNS, "kode_barang": item}
    for name, value in values.items():
        sheet.cell(2, titles.index(name) + 1, value)
    content = io.BytesIO()
    book.save(content)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    return {"name": "hitung.xlsx", "mimeType": kind, "buffer": content.getvalue()}


def serious(page: Page) -> list[Any]:
    found = Axe().run(page).response["violations"]
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_a_count_goes_from_a_clerk_over_finance_into_the_books(live: Live, open_as: Callable[..., Any]) -> None:
    """All of it in Airflow's frame. Mistakes are shown and nothing is stored; the filled-in sheet of the page waits for
    finance, who watch it complete, save its lines, and go on to its run in Airflow itself."""
    mark = secrets.token_hex(4)
    nota = f"SO-HAL-{mark}"
    with live.connection() as conn:
        builders.warehouse(conn, "GD-HAL")
    with open_as("warehouse") as page:
        page.goto("/plugin/everest-submit")
        frame = ours(page)
        frame.locator("[name=nomer_nota]").fill(nota)
        frame.locator("[name=gudang_kode]").select_option("GD-HAL")
        frame.locator("[name=tanggal_opname]").fill("2026-08-31")
        frame.locator("[name=pasted]").fill(WRONG.format(item=mark))
        frame.locator("form.upload button[type=submit]").click()
        expect(frame.locator("#problems")).to_contain_text("qty_fisik")
        with page.expect_download() as began:
            frame.locator("a[href$='template.xlsx']").click()
        frame.locator("[name=pasted]").fill("")
        frame.locator("[name=file]").set_input_files([filled_in(began.value.path().read_bytes(), mark)])
        frame.locator("form.upload button[type=submit]").dblclick()
        expect(frame.locator("article", has_text=nota)).to_have_count(1)
    with open_as("finance") as page:
        page.goto("/")
        choose(page, "Plugins", "Stok Opname", "Dokumen")
        frame = ours(page)
        frame.goto("/everest/drafts")
        frame.locator("article", has_text=nota).locator("h2 a").click()
        expect(frame.locator("#weighed")).to_contain_text("Rp")  # the money stands there before the name is given
        frame.locator("[data-open=authorise]").click()
        frame.locator("dialog[open] button[type=submit]").click()
        expect(frame.locator("h1")).to_have_text(nota)
        expect(frame.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)  # it refreshes by itself
        choose(page, "User", "Appearance", "Dark Mode")
        expect(frame.locator("html[data-theme=dark]")).to_be_attached()
        assert serious(page) == []  # of Airflow's page with ours in it
        with page.expect_download() as began:
            frame.locator("#state a[href$='lines.csv']").click()
        assert mark in began.value.path().read_text("utf-8-sig")
        run = live.rows("SELECT dag_run_id FROM rabbit_publish_shadow WHERE nomer_nota = %s", nota)[0]["dag_run_id"]
        frame.locator(".tabs a[href*=journal]").click()
        expect(frame.locator("tbody tr")).to_have_count(2)
        frame.locator(".tabs a").first.click()
        frame.locator("a[data-airflow][href*='/runs/']").first.click()
        page.wait_for_url(f"**/dags/opname_posting/runs/*{run[-12:]}*")  # the whole window, not the frame


def test_airflow_decides_who_somebody_is(live: Live) -> None:
    """Over HTTP, with the real login: nobody without one, nobody with a forged one, and each role at its own doors."""
    base = live.env["EVEREST_AIRFLOW_URL"] + "/everest"

    def status(path: str, token: str | None) -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(base + path, headers=headers, trust_env=False, timeout=30).status_code

    until("the pages", lambda: status("/documents", token_of(live, "finance")) == 200)
    assert status("/documents", None) == 401
    assert status("/documents", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.") == 401
    expected = {"analyst": (200, 200, 403), "finance": (200, 200, 200), "warehouse": (200, 403, 200)}
    for who, (documents, reports, submit) in expected.items():
        token = token_of(live, who)
        assert (status("/documents", token), status("/reports?since=", token), status("/submit", token)) == (
            documents,
            reports,
            submit,
        )
