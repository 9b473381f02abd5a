"""Hostile names as a real Chromium draws them, on every page at a desk and on a phone: as text. No script runs, no box
opens, nothing is asked for elsewhere (`watched`), and no page has to be moved sideways."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from everest.settings import MysqlUrl
from tests import builders
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.conftest import Be
from tests.pages.eyes import DESK, PHONE, too_wide
from tests.pages.forms import HEADER
from tests.pages.poisoned import NAMES, addresses, filled, poison

__all__ = ["address", "chromium", "open_as"]

NOT_PAGES = (".{form}", ".csv", ".xlsx", "/documents/of/{transaksi_id}", "/reports/document")
MARKUP = "<script>alert(1)</script>"
PIECES = {MARKUP: "<script>al", "xxx": "x" * 30}
"""What must be read of each name, as it stands; some pages show 40 characters of it."""


def parts(page: Page) -> list[str]:
    """Where it is too wide, by its window."""
    found = []
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        found += [f"{page.url} at {width}" for width in too_wide(page)]
    return found


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_what_rows_hold_is_drawn_as_text(
    open_as: Open, browser: Be, database: MysqlUrl, connection: Any, name: str
) -> None:
    places = filled(browser, database, connection)
    poison(connection, name)
    (shown,) = (text for piece, text in PIECES.items() if piece in name)
    wrong, silent, drawn = [], [], 0
    with open_as("engineer") as page:
        for route, path in addresses(places):
            if route.endswith(NOT_PAGES):
                continue
            answer = page.goto(path)
            assert answer is not None and answer.status in (200, 409), path
            drawn += answer.status == 200
            wrong += parts(page)
            if answer.status == 200 and shown not in page.locator("body").inner_text():
                silent.append(path)
    assert (wrong, silent) == ([], []) and drawn > 30


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
