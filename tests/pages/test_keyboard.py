"""The pages without a mouse: what Tab reaches first and in which order, and where the focus goes and comes back to.

What people do goes without one: sort, filter, change the tab, submit, approve with a reason.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

from playwright.sync_api import Page, expect

from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.eyes import PHONE, refreshed
from tests.pages.posted import walked
from tests.pages.standing import broken_letter, failed, waiting

__all__ = ["address", "chromium", "open_as"]

MANY = 80
"""More presses of Tab than a page has places for them."""
SOUND = "kode_barang;qty_sistem;qty_fisik;harga_pokok\nBRG-K;10;12;1500,00\n"
PLACE = """() => { const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
    return one === document.body ? null : { top: box.top + scrollY, left: box.left, outline: style.outlineStyle,
    seen: style.visibility === "visible" && box.width > 0 && box.right > 0 && box.left < innerWidth,
    width: parseFloat(style.outlineWidth), inside: !!one.closest("main"), name: one.outerHTML.slice(0, 120),
    group: (one.closest("nav, form, tr, thead, .cards, .buttons, .who, main") || one).outerHTML.slice(0, 60) } }"""


def matches(page: Page, selector: str) -> bool:
    return bool(page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector))


def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """As somebody gets there who has no mouse."""
    for _ in range(MANY):
        page.keyboard.press(key)
        if matches(page, selector):
            return
    raise AssertionError(f"{key} never reaches {selector}")


def entered(page: Page, selector: str) -> None:
    """Goes there and presses Enter, which opens another page."""
    tab_to(page, selector)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_tab_begins_at_a_link_that_leads_past_the_menu(open_as: Open, connection: Any) -> None:
    """It is seen once it has the focus; what comes after it is in the main content."""
    failed(connection)
    with open_as("finance") as page:
        page.goto("/documents")
        skip = page.locator("a.skip")
        expect(skip).not_to_be_in_viewport()
        page.keyboard.press("Tab")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body && !!document.activeElement.closest('main')")


def test_tab_goes_down_the_page_and_whatever_has_the_focus_shows_it(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    """Once through whole pages: from the top to the bottom, no place twice, each with an outline, and back out at the
    end."""
    document = failed(connection)
    waiting(connection, database)
    for who, path in (
        ("finance", "/documents"), ("finance", f"/documents/{document.shadow_id}"), ("finance", "/approvals"),
        ("engineer", "/dead-letters"), ("warehouse", "/submit"),
    ):  # fmt: skip
        with open_as(who) as page:
            page.goto(path)
            stops = stops_of(page)
            names = [name for name, _ in groupby(stop["name"] for stop in stops)]  # a date has several places
            assert len(stops) > 10 and len(stops) < MANY, path
            assert len(names) == len(set(names)), path
            assert [one for one in stops if one["outline"] == "none" or one["width"] < 2] == [], path
            within = [stop for stop in stops if stop["inside"]]
            assert stops[-len(within) :] == within, "the content comes after the menu"
            # Downwards from group to group; within one, fields of different heights stand in a row.
            tops = [stop["top"] for stop, before in zip(within, [None, *within], strict=False)
                    if before is None or stop["group"] != before["group"]]  # fmt: skip
            assert all(later > earlier - 60 for earlier, later in pairwise(tops)), (path, tops)


def test_on_a_phone_too_whatever_has_the_focus_is_on_the_page(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    """What is drawn for a desk alone, as the headings of tables, takes no focus either."""
    document = walked(database, connection, Line("BRG-1", "10", "12", "1500"))
    failed(connection)
    for who, path in (
        ("finance", "/dead-letters"), ("finance", f"/documents/{document.shadow_id}?tab=lines"),
        ("finance", "/documents"), ("engineer", "/workflows"),
    ):  # fmt: skip
        with open_as(who, viewport=PHONE) as page:
            page.goto(path)
            stops = stops_of(page)
            assert 5 < len(stops) < MANY, path
            assert [one["name"] for one in stops if not one["seen"]] == [], path


def test_all_letters_of_a_page_are_chosen_at_once_on_a_phone_too(open_as: Open, connection: Any) -> None:
    """Those of their own list, and no other."""
    documents = [failed(connection) for _ in range(3)]
    broken_letter(connection, "halo", "a")
    with open_as("finance", viewport=PHONE) as page:
        page.goto("/dead-letters")
        page.get_by_label("Pilih semua").first.check()
        expect(page.locator("#failed tbody :checked")).to_have_count(3)
        expect(page.locator("#unreadable tbody :checked")).to_have_count(0)
        page.locator("#failed [name=shadow_id]").first.uncheck()
        page.locator("#failed [name=reason]").fill("broker kembali")
        page.locator("#failed button[type=submit]").first.click()
        expect(page.locator("#failed")).to_have_count(0)  # what came of it, instead of the list
    connection.commit()
    statuses = [builders.shadow(connection, one.shadow_id)["worker_status"] for one in documents]
    assert sorted(statuses) == ["FAILED", "PENDING", "PENDING"]


def test_a_dialog_takes_the_focus_and_gives_it_back(open_as: Open, connection: Any) -> None:
    """Tab stays inside as long as it is open; Escape closes it and nothing was sent."""
    document = failed(connection)
    with open_as("finance") as page:
        page.goto(f"/documents/{document.shadow_id}")
        tab_to(page, "[data-open=rerun]")
        dialog = page.locator("dialog#rerun")
        expect(dialog).to_be_hidden()
        page.keyboard.press("Enter")
        expect(dialog).to_be_visible()
        for _ in range(8):
            assert page.evaluate(
                "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
            )
            page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(page.locator("[data-open=rerun]")).to_be_focused()
        page.keyboard.press("Space")
        expect(dialog).to_be_visible()
        tab_to(page, "dialog [data-close]")
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        expect(page.locator("[data-open=rerun]")).to_be_focused()
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "FAILED"


def test_a_tab_a_search_and_a_column_are_chosen_without_a_mouse(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    """A column one way and, asked again, the other; the heading says which."""
    lines = [Line(f"BRG-{n}", "10", str(n), "1500") for n in (2, 3, 1)]
    document = walked(database, connection, *lines)
    link = "th a[href*='sort=item']"
    with open_as("analyst") as page:

        def items() -> list[str]:
            return [one for one in page.locator("main tbody").inner_text().split() if one.startswith("BRG-")]

        page.goto(f"/documents/{document.shadow_id}")
        entered(page, ".tabs a[href*='tab=lines']")
        expect(page.locator(".tabs a[aria-current=page]")).to_have_attribute(
            "href", f"/documents/{document.shadow_id}?tab=lines"
        )
        orders: dict[str, list[str]] = {}
        for order in ("ascending", "descending"):
            entered(page, link)
            expect(page.locator(f"th[aria-sort={order}]", has=page.locator("a[href*='sort=item']"))).to_be_visible()
            orders[order] = items()
        assert orders["ascending"] == ["BRG-1", "BRG-2", "BRG-3"]
        assert orders["descending"] == ["BRG-3", "BRG-2", "BRG-1"]
        tab_to(page, "[name=search]")
        with page.expect_navigation():
            page.keyboard.type("BRG-2")
            page.keyboard.press("Enter")
        assert items() == ["BRG-2"]


def test_a_list_is_filtered_without_a_mouse(open_as: Open, connection: Any) -> None:
    for nota in ("SO-X1", "SO-Y1"):
        failed(connection, nomer_nota=nota)
    with open_as("analyst") as page:
        page.goto("/documents")
        tab_to(page, ".filters [name=nota]")
        page.keyboard.type("SO-X")
        tab_to(page, ".filters [name=status]")
        page.keyboard.type("Gagal")
        with page.expect_navigation():
            tab_to(page, ".filters button[type=submit]")
            page.keyboard.press("Space")
        assert "nota=SO-X" in page.url and "status=FAILED" in page.url
        assert page.locator("#rows tbody th a").all_inner_texts() == ["SO-X1"]
        entered(page, "#rows tbody th a")
        expect(page.locator("h1")).to_have_text("SO-X1")


def test_a_count_is_submitted_without_a_mouse(open_as: Open, connection: Any) -> None:
    """What is missing gets the focus; what was wrong is told where the reader is."""
    builders.warehouse(connection, "GD-A")
    connection.commit()
    with open_as("warehouse") as page:
        page.goto("/submit")
        tab_to(page, "[name=nomer_nota]")
        page.keyboard.press("Enter")
        expect(page.locator("[name=nomer_nota]:invalid")).to_be_focused()
        page.keyboard.type("SO-KETIK")
        tab_to(page, "[name=gudang_kode]")
        page.keyboard.type("GD-A")
        page.keyboard.press("Tab")
        assert matches(page, "[name=tanggal_opname]")
        page.keyboard.type("08312026")
        tab_to(page, "[name=decimal]")
        page.keyboard.press("Home")
        tab_to(page, "[name=pasted]")
        page.keyboard.insert_text(SOUND.replace("1500,00", ""))
        tab_to(page, "form.upload button[type=submit]")
        page.keyboard.press("Enter")
        expect(page.locator("#problems")).to_be_visible()
        expect(page.locator("main")).to_be_focused()
        tab_to(page, "[name=pasted]")
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(SOUND)
        tab_to(page, "form.upload button[type=submit]")
        page.keyboard.press("Enter")
        expect(page.locator("article", has_text="SO-KETIK")).to_be_visible()
    (row,) = builders.rows(connection, "SELECT nomer_nota, tanggal_opname FROM so_headers_staging")
    assert (row["nomer_nota"], str(row["tanggal_opname"])) == ("SO-KETIK", "2026-08-31")


def test_a_document_is_approved_with_a_reason_without_a_mouse(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    """News that come meanwhile take the focus from nobody."""
    document = waiting(connection, database)
    button = f"[data-open=approve{document.shadow_id}]"
    with open_as("finance") as page:
        page.goto("/approvals")
        tab_to(page, button)
        other = waiting(connection, database)
        refreshed(page)
        expect(page.locator(f"#q{other.shadow_id}")).to_be_visible()
        assert matches(page, button)
        page.keyboard.press("Enter")
        if not matches(page, "dialog[open] [name=reason]"):
            tab_to(page, "dialog[open] [name=reason]")
        page.keyboard.type("rak dihitung ulang")
        tab_to(page, "dialog[open] button[type=submit]")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator(".notice")).to_be_visible()
    connection.commit()
    (said,) = builders.rows(connection, "SELECT actor, reason FROM audit_log WHERE action = 'approve'")
    assert tuple(said.values()) == ("finance", "rak dihitung ulang")
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "PENDING"
    assert builders.shadow(connection, other.shadow_id)["worker_status"] == "WAITING"


def stops_of(page: Page) -> list[dict[str, Any]]:
    """Where Tab leads, one place after the other, until it leaves the page; MANY at most."""
    stops: list[dict[str, Any]] = []
    for _ in range(MANY):
        page.keyboard.press("Tab")
        stop = page.evaluate(PLACE)
        if stop is None:
            break
        stops.append(stop)
    return stops
