"""The variance table of a document of 20,000 lines in a real Chromium: sorted, searched and paged by what a person
presses, the order right, and no more of it on the page than a page of it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from everest.pages.document_tabs import LINES_PER_PAGE
from everest.settings import MysqlUrl
from tests.builders import Line
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.posted import walked

__all__ = ["address", "chromium", "open_as"]

MANY = 20_000
STEP = 7_919
"""Prime to MANY: amounts go round in an order that is not that of the lines."""


def amount(n: int) -> int:
    """What line n differs by: each amount once, half of them below zero."""
    return n * STEP % MANY - MANY // 2


def shown(page: Page) -> list[int]:
    """The lines that stand on the page, from the top."""
    ids = page.locator("tbody tr[id^=line-]").evaluate_all("(all) => all.map((one) => one.id)")
    return [int(one.removeprefix("line-")) for one in ids]


def test_20000_lines_are_sorted_searched_and_paged(open_as: Open, database: MysqlUrl, connection: Any) -> None:
    lines = [Line(f"BRG-{n:05d}", str(MANY), str(MANY + amount(n)), "10") for n in range(1, MANY + 1)]
    document = walked(database, connection, *lines)
    numbers = range(1, MANY + 1)
    by = {
        "difference": sorted(numbers, key=lambda n: -amount(n)),
        "surplus": sorted(numbers, key=lambda n: (-max(amount(n), 0), n)),
        "shortage": sorted(numbers, key=lambda n: (-max(-amount(n), 0), n)),
        "item": list(numbers),
    }
    size, last = LINES_PER_PAGE, f"**skip={MANY - LINES_PER_PAGE}**"
    with open_as("analyst") as page:
        page.goto(f"/documents/{document.shadow_id}?tab=lines")
        for name, order in by.items():
            heading = page.locator(f"thead a[href*='sort={name}']")
            heading.click()
            page.wait_for_url(f"**sort={name}**")
            assert shown(page) == order[:size], name
            page.locator("#lines .pager [rel=next]").click()
            page.wait_for_url(f"**skip={size}**")
            assert shown(page) == order[size : 2 * size], name
            page.get_by_role("link", name="Akhir").click()
            page.wait_for_url(last)
            assert shown(page) == order[-size:], name
        page.locator("thead a[href*='sort=difference']").click()
        page.wait_for_url("**sort=difference**")
        page.locator("thead a[href*='sort=difference']").click()
        page.wait_for_url("**order=asc**")
        assert shown(page) == by["difference"][: -size - 1 : -1]
        page.locator("[name=search]").fill("RG-0199")
        page.locator("form.filters button[type=submit]").click()
        page.wait_for_url("**search=RG-0199**")
        found = [n for n in reversed(by["difference"]) if "RG-0199" in f"BRG-{n:05d}"]
        assert shown(page) == found and len(found) == 10
        page.locator("[name=search]").fill("tiada")
        page.locator("form.filters button[type=submit]").click()
        expect(page.locator("#lines .empty")).to_be_visible()
