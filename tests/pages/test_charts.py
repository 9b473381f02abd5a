"""Charts as people see them, in a real Chromium: which bars, in which order, where each leads, what its colour means;
at a desk and, without moving anything sideways, on a phone."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from everest.pages import formats
from everest.pages.document_tabs import CHART_BARS
from everest.settings import MysqlUrl
from tests.builders import Line
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.eyes import DESK, PHONE, dress, too_wide
from tests.pages.posted import walked

__all__ = ["address", "chromium", "open_as"]

LARGE = Decimal("98765432.10")
COLOUR = "(one) => getComputedStyle(one, '::before').backgroundColor"
DRAWN = """() => [...document.querySelectorAll(".chart svg")].filter((one) => one.checkVisibility()).map((svg) => ({
    bars: [...svg.querySelectorAll("a")].map((a) => ({
        title: a.querySelector("title").textContent, top: a.getBoundingClientRect().top,
        width: a.getBoundingClientRect().width, fill: getComputedStyle(a.querySelector("rect")).fill,
        side: a.getAttribute("class"), box: a.querySelector("rect").getBoundingClientRect().toJSON(),
    })),
    texts: [...svg.querySelectorAll(".axis text")].map((one) => one.getBoundingClientRect()).map(
        (one) => [one.left, one.right, one.height]),
    labels: [...svg.querySelectorAll(".axis.y text")].map((one) => one.getBoundingClientRect().toJSON()),
    values: [...svg.querySelectorAll(".axis.x text")].map((one) => one.getBoundingClientRect().toJSON()),
    box: [svg.getBoundingClientRect().left, svg.getBoundingClientRect().right],
}))"""


def counted() -> tuple[list[Line], list[str]]:
    """More lines than a chart has bars, in no order and some alike; what is drawn of them, from the top."""
    lines, surplus, shortage = [], [], []
    for n in (7, 3, 12, 0, 9, 1, 11, 4, 8, 2, 10, 6, 5):
        cost = LARGE if n == 0 else Decimal(1000 * (14 - n // 2))  # two and two alike: the first line first
        lines += [Line(f"LEBIH-{n:02d}", "10", "11", str(cost)), Line(f"KURANG-{n:02d}", "10", "9", str(cost))]
        surplus.append((-cost, len(lines) - 1, f"LEBIH-{n:02d}, lebih: {formats.rupiah(cost)}"))
        shortage.append((-cost, len(lines), f"KURANG-{n:02d}, kurang: {formats.rupiah(-cost)}"))
    largest = [*sorted(surplus)[:CHART_BARS], *reversed(sorted(shortage)[:CHART_BARS])]
    return lines, [title for _, _, title in largest]


def drawn(page: Page) -> dict[str, Any]:
    """The one picture that can be seen."""
    (found,) = page.evaluate(DRAWN)
    return dict(found)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_largest_of_both_sides_are_drawn_in_order_and_each_bar_leads_to_its_line(
    open_as: Open, database: MysqlUrl, connection: Any, size: Any
) -> None:
    lines, wanted = counted()
    document = walked(database, connection, *lines)
    with open_as("analyst", viewport=size) as page:
        page.goto(f"/documents/{document.shadow_id}")
        bars = sorted(drawn(page)["bars"], key=lambda one: one["top"])
        assert [one["title"] for one in bars] == wanted and len(wanted) == 2 * CHART_BARS
        widths = [one["width"] for one in bars]
        assert widths[:CHART_BARS] == sorted(widths[:CHART_BARS], reverse=True)
        assert widths[CHART_BARS:] == sorted(widths[CHART_BARS:])
        for title in (wanted[0], wanted[3], wanted[-1], wanted[-5]):
            page.locator(f".chart svg:visible a:has(title:text-is('{title}')) rect").click(force=True)
            item = title.split(",")[0]
            number = next(place for place, line in enumerate(lines, start=1) if line.kode_barang == item)
            page.wait_for_url(f"**line={number}#line-{number}")
            row = page.locator(f"#line-{number}:target")
            expect(row).to_be_in_viewport()
            expect(row.locator("th")).to_have_text(item)
            page.go_back()


def test_a_legend_says_which_colour_is_what_and_a_phone_needs_no_scrolling(
    open_as: Open, address: str, database: MysqlUrl, connection: Any
) -> None:
    """A document and a report whose groups have two bars each; labels are whole, legible and inside the picture."""
    broad = ("KODE-BARANG-YANG-AGAK-PANJANG-0123456789", "漢字商品名称" * 5, "W" * 40, "😀" * 20, "ش" * 40)
    lines = [*counted()[0], *(Line(kode, "0", "500", str(LARGE)) for kode in broad)]
    document = walked(database, connection, *lines)
    with open_as("analyst") as page:
        for path in (
            f"/documents/{document.shadow_id}",
            "/reports?report=reason&since=",
            "/reports?report=item&since=",
        ):
            for language, theme, size in (("id", "light", DESK), ("en", "dark", PHONE)):
                dress(page, address, language, theme, size)
                page.goto(path)
                legend = page.locator(".legend li")
                assert legend.all_inner_texts() == {"id": ["lebih", "kurang"], "en": ["surplus", "shortage"]}[language]
                colours = {one.get_attribute("class"): one.evaluate(COLOUR) for one in legend.all()}
                found = drawn(page)
                assert {one["side"]: one["fill"] for one in found["bars"]} == colours and len(
                    set(colours.values())
                ) == 2
                left, right = found["box"]
                assert too_wide(page) == [] and left >= 0 and right <= size["width"]
                assert all(left - 1 <= one[0] and one[1] <= right + 1 and one[2] >= 12 for one in found["texts"]), path
                names, values = found["labels"], sorted(found["values"], key=lambda one: one["left"])
                assert len(names) == len(found["bars"]) and len(values) >= 2, path
                assert not any(_overlap(name, bar["box"]) for name in names for bar in found["bars"]), path
                assert not any(_overlap(*pair) for pair in pairwise(values)), path


def _overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    """By more than the pixel that an edge has."""
    return all(
        min(one[end], other[end]) - max(one[begin], other[begin]) > 1
        for begin, end in (("left", "right"), ("top", "bottom"))
    )
