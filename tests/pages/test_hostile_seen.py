"""Hostile names as a real Chromium draws them, on every page at a desk and on a phone: as text. No script runs, no box
opens, nothing is asked for elsewhere (`watched`), and no page has to be moved sideways."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from everest.pages import view
from everest.settings import MysqlUrl
from tests import builders
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.conftest import Be
from tests.pages.eyes import DESK, PHONE, too_wide
from tests.pages.forms import HEADER
from tests.pages.poisoned import NAMES, addresses, filled, poison
from tests.pages.standing import run

__all__ = ["address", "chromium", "open_as"]

TEMPLATES = view.HERE / "templates"
NOT_PAGES = (".{form}", ".csv", ".xlsx", "/documents/of/{transaksi_id}", "/reports/document")
MARKUP = "<script>alert(1)</script>"
PIECES = {MARKUP: "<script>al", "xxx": "x" * 30}
"""What must be read of each name, as it stands; some pages show 40 characters of it."""


UNFOLD = """() => {
    document.querySelectorAll("details").forEach((one) => one.open = true);
    return [...document.querySelectorAll("dialog")].filter((one) => {
        one.showModal();
        const box = one.getBoundingClientRect(), wide = document.documentElement.scrollWidth > innerWidth;
        const is_out = wide || box.left < 0 || box.right > innerWidth || one.scrollWidth > one.clientWidth;
        one.close();
        return is_out;
    }).map((one) => one.id);
}"""
"""What its buttons do: everything that can be opened is, and which dialogs are wider than they may be."""
ASKED = re.compile(r"parts\.ask\('(\w+)'")
STANDINGS = ("status = 'paused'", "status = 'failed'", "status = 'cancelled', compensation = 'failed'")
"""In which a run has buttons of its own."""


def parts(page: Page) -> list[str]:
    """Where it is too wide, by its window: as it opens, and with everything on it unfolded."""
    found = []
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        folded = [*too_wide(page), *page.evaluate(UNFOLD)]
        found += [f"{page.url} at {one}" for one in (*folded, *too_wide(page))]
    return found


def dialogs(page: Page) -> set[str]:
    return {re.sub(r"\d+$", "", str(one.get_attribute("id"))) for one in page.locator("dialog").all()}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_what_rows_hold_is_drawn_as_text(
    open_as: Open, browser: Be, database: MysqlUrl, connection: Any, name: str
) -> None:
    places = filled(browser, database, connection)
    poison(connection, name, is_decidable=True)
    (shown,) = (text for piece, text in PIECES.items() if piece in name)
    wrong, silent, drawn = [], [], 0
    asked: set[str] = set()
    with open_as("engineer") as page:
        for path in ("/approvals", f"/documents/{places['shadow_id'][2]}"):
            page.goto(path)
            wrong += parts(page)
            asked |= dialogs(page)
        poison(connection, name)
        for route, path in addresses(places):
            if route.endswith(NOT_PAGES):
                continue
            answer = page.goto(path)
            assert answer is not None and answer.status in (200, 409), path
            drawn += answer.status == 200
            wrong += parts(page)
            asked |= dialogs(page)
            if answer.status == 200 and shown not in page.locator("body").inner_text():
                silent.append(path)
        for standing in STANDINGS:
            run(connection, f"UPDATE workflow_runs SET {standing}")
            page.goto(f"/workflows/{places['run_id'][0]}")
            wrong += parts(page)
            asked |= dialogs(page)
        for form in ("#failed", "#unreadable"):
            page.goto("/dead-letters")
            page.locator(f"{form} input[name$=_id]").first.check()
            page.locator(f"{form} [name=reason]").fill(name.replace("\0", "")[:500])
            page.locator(f"{form} button.danger").click()
            page.locator("main td .badge").wait_for()
            wrong += parts(page)
    assert (wrong, silent) == ([], []) and drawn > 30
    assert asked == {one for file in TEMPLATES.glob("*.html") for one in ASKED.findall(file.read_text("utf-8"))}


@pytest.mark.parametrize(
    "name",
    [f'"><img src=x onerror=alert(1)>{MARKUP}', "=1+1 {{ 7 * 7 }} @SUM(1)|' /C calc'!A0", "W" * 10_000],
    ids=["markup", "formulas", "long"],
)
def test_what_somebody_sends_is_drawn_as_text(open_as: Open, connection: Any, name: str) -> None:
    """A file of a hostile name, wrong in each line and with marks that turn text; then rows that are sound, their draft
    and the list of drafts."""
    builders.warehouse(connection, "GD-A")
    connection.commit()
    head = "kode_barang;qty_sistem;qty_fisik;harga_pokok;alasan\n"
    short = name[:60]
    with open_as("warehouse") as page:
        page.goto("/submit")
        page.locator("[name=nomer_nota]").fill(short)
        page.locator("[name=gudang_kode]").select_option(HEADER["gudang_kode"])
        page.locator("[name=tanggal_opname]").fill(HEADER["tanggal_opname"])
        wrong = f"{head}{cell(name + chr(0x202E))};{cell(name)};1;2;{cell(name)}\n"
        called = f"{short.replace('/', '-')}.csv"
        file: Any = {"name": called, "mimeType": "text/csv", "buffer": wrong.encode()}
        page.locator("[name=file]").set_input_files(file)
        send = page.locator("form.upload button[type=submit]")
        send.click()
        expect(page.locator("#problems")).to_contain_text("qty_sistem")
        expect(page.locator("#problems")).to_contain_text("kode_barang")
        assert parts(page) == []
        page.locator("[name=pasted]").fill(f"{head}{cell(short)};1;2;3;{cell(short)}\n")
        send.click()
        page.wait_for_url("**/drafts?*")
        expect(page.locator("main article")).to_contain_text(short)
        assert parts(page) == []
        page.locator("main article a").first.click()
        page.wait_for_url(re.compile(r"/drafts/\d+$"))
        expect(page.locator("h1")).to_contain_text(short)
        expect(page.locator("tbody").last).to_contain_text(short)
        assert parts(page) == []


def cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
