"""Forms in the hands of people in a hurry: the login ends while somebody types, two decide at once, the server is slow
or away, somebody goes back, or sends far too much. What was typed stays; what was done is done once."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from everest.pages import guard
from everest.settings import MysqlUrl
from tests import builders
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.forms import SOUND
from tests.pages.standing import failed, waiting

__all__ = ["address", "chromium", "open_as"]


def log_out(page: Page) -> None:
    page.context.set_extra_http_headers({})


def log_in(page: Page, who: str) -> None:
    page.context.set_extra_http_headers({"x-person": who})


def drafts_of(connection: Any, nota: str) -> int:
    connection.commit()
    return len(builders.rows(connection, "SELECT 1 FROM so_headers_staging WHERE nomer_nota = %s", nota))


def fill_in(page: Page, nota: str, pasted: str = SOUND) -> None:
    page.goto("/submit")
    page.locator("[name=nomer_nota]").fill(nota)
    page.locator("[name=gudang_kode]").select_option("GD-A")
    page.locator("[name=tanggal_opname]").fill("2026-08-31")
    page.locator("[name=pasted]").fill(pasted)


def test_a_login_that_ends_in_the_middle_of_a_form_costs_nobody_what_they_typed(open_as: Open, connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    document = failed(connection)
    with open_as("finance") as page:
        fill_in(page, "SO-HABIS")
        log_out(page)
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator(".unsent[role=alert]")).to_contain_text("tab lain")
        assert page.locator("[name=pasted]").input_value() == SOUND
        assert drafts_of(connection, "SO-HABIS") == 0
        log_in(page, "finance")
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("article", has_text="SO-HABIS")).to_have_count(1)
        page.goto(f"/documents/{document.shadow_id}")
        page.locator("[data-open=rerun]").click()
        page.locator("dialog[open] [name=reason]").fill("sudah dihitung lagi")
        log_out(page)
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator("dialog[open] .unsent")).to_contain_text("tab lain")
        log_in(page, "finance")
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator(".notice")).to_be_visible()
    assert drafts_of(connection, "SO-HABIS") == 1
    (said,) = builders.rows(connection, "SELECT actor, reason FROM audit_log WHERE action = 'rerun'")
    assert tuple(said.values()) == ("finance", "sudah dihitung lagi")


def test_of_two_tabs_that_decide_one_question_the_second_is_told_in_its_dialog(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    """And sees how things stand as soon as it closes it."""
    one = waiting(connection, database)
    with open_as("finance") as first:
        second = first.context.new_page()
        for page, answer in ((first, "approve"), (second, "reject")):
            page.goto(f"/documents/{one.shadow_id}")
            page.locator(f"[data-open={answer}{one.shadow_id}]").click()
            page.locator("dialog[open] [name=reason]").fill(f"tab {answer}")
        first.locator("dialog[open] button[type=submit]").dblclick()
        expect(first.locator(".notice")).to_contain_text("Disetujui")
        second.locator("dialog[open] button[type=submit]").click()
        expect(second.locator("dialog[open] .unsent")).to_be_visible()
        assert second.locator("dialog[open] [name=reason]").input_value() == "tab reject"
        second.locator("dialog[open] [data-close]").click()
        second.evaluate("async () => tell(await look())")
        expect(second.locator("#question article")).to_have_count(0)
        expect(second.locator(".live:not(.off) [data-live-state]")).to_have_text("Diperbarui otomatis")
    connection.commit()
    rows = builders.rows(connection, "SELECT action, reason FROM audit_log WHERE action IN ('approve', 'reject')")
    assert [tuple(row.values()) for row in rows] == [("approve", "tab approve")]


def test_who_goes_back_after_sending_sends_no_second_draft(open_as: Open, connection: Any) -> None:
    """The browser brings back the lines and not the nota, so a click on the form sends nothing."""
    builders.warehouse(connection, "GD-A")
    connection.commit()
    with open_as("warehouse") as page:
        fill_in(page, "SO-MUNDUR")
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator(".notice")).to_be_visible()
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.method))
        page.go_back()
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("[name=nomer_nota]:invalid")).to_be_focused()
        assert set(sent) == {"GET"}
    assert drafts_of(connection, "SO-MUNDUR") == 1


def test_a_slow_answer_is_waited_for_and_a_second_click_sends_nothing(open_as: Open, connection: Any) -> None:
    document = failed(connection)
    held: list[Route] = []
    with open_as("finance") as page:
        page.goto(f"/documents/{document.shadow_id}")
        page.route("**/rerun", lambda route: held.append(route))
        page.locator("[data-open=rerun]").click()
        button = page.locator("dialog[open] button[type=submit]")
        button.dblclick()
        button.click()
        expect(page.locator("dialog[open] button[type=submit][aria-busy]")).to_be_visible()
        assert len(held) == 1
        held[0].continue_()
        expect(page.locator(".notice")).to_be_visible()
    (said,) = builders.rows(connection, "SELECT COUNT(*) AS n FROM audit_log WHERE action = 'rerun'")
    assert said["n"] == 1


def test_a_paste_that_is_far_too_large_is_told_and_stays(
    open_as: Open, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused by its length, before it is read."""
    monkeypatch.setattr(guard, "MAX_BODY_BYTES", 1_000_000)
    builders.warehouse(connection, "GD-A")
    connection.commit()
    with open_as("warehouse") as page:
        fill_in(page, "SO-BESAR", "x")
        page.evaluate("document.querySelector('[name=pasted]').value = 'BRG-1;10;12;1500\\n'.repeat(200000)")
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator(".unsent[role=alert]")).to_contain_text("terlalu besar")
        assert page.evaluate("document.querySelector('[name=pasted]').value.length") == 17 * 200_000
    assert drafts_of(connection, "SO-BESAR") == 0
