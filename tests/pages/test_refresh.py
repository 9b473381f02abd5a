"""What a page does by itself in the browser: it brings news without taking focus or place of whoever reads, says what
changed to those who hear it, and shows how far a file is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from everest.pages import view
from everest.settings import MysqlUrl
from everest.workflow.builder import workflow
from tests import builders
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.conftest import Be
from tests.pages.eyes import refreshed
from tests.pages.forms import kept
from tests.pages.posted import csv_rows
from tests.pages.standing import failed, run, waiting
from tests.workflow.world import MysqlWorld

__all__ = ["address", "chromium", "open_as"]
TEMPLATES = Path(view.__file__).parent / "templates"


def focused(page: Page) -> Any:
    return page.evaluate("document.activeElement.dataset.open || document.activeElement.id")


def test_a_button_keeps_the_focus_when_news_come(open_as: Open, connection: Any, database: MysqlUrl) -> None:
    """Its region was drawn again; the button is the same one."""
    first = waiting(connection, database)
    with open_as("finance") as page:
        page.goto("/approvals")
        button = page.locator(f"[data-open=reject{first.shadow_id}]")
        button.focus()
        page.evaluate("document.activeElement.dataset.mine = 'yes'")
        second = waiting(connection, database)
        run(connection, "UPDATE workflow_runs SET updated_at = updated_at - INTERVAL 2 DAY")
        refreshed(page)
        expect(page.locator(f"#q{second.shadow_id}")).to_be_visible()
        assert focused(page) == f"reject{first.shadow_id}"
        page.keyboard.press("Enter")
        expect(page.locator(f"#reject{first.shadow_id}")).to_be_visible()
        page.locator("dialog[open] [name=reason]").fill("barang rusak")
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator("#state .badge.failed, #state .badge.processing, #state .badge.pending")).to_be_visible()


def test_a_dialog_that_was_opened_asks_about_what_its_reader_saw(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    """News wait until it is closed, and the page says of what moment it is."""
    first = waiting(connection, database)
    with open_as("finance") as page:
        page.goto("/approvals")
        page.locator(f"[data-open=approve{first.shadow_id}]").click()
        asked = page.locator(f"#approve{first.shadow_id} [name=sequence]").input_value()
        moment = page.locator("#as-of").inner_text()
        run(connection, "UPDATE workflow_runs SET waiting = JSON_SET(waiting, '$.sequence', 7)")
        page.wait_for_timeout(1_100)
        refreshed(page)
        assert page.locator(f"#approve{first.shadow_id} [name=sequence]").input_value() == asked
        assert page.locator("#as-of").inner_text() == moment
        expect(page.locator("[data-live-state]")).to_contain_text("Tidak diperbarui")
        page.locator("dialog[open] [data-close]").click()
        refreshed(page)
        assert page.locator(f"#approve{first.shadow_id} [name=sequence]").input_value() == "7"
        assert page.locator("#as-of").inner_text() != moment


def test_what_stands_open_stays_open_and_gets_its_news(open_as: Open, connection: Any) -> None:
    document = failed(connection)
    with open_as("analyst") as page:
        page.goto(f"/documents/{document.shadow_id}")
        page.evaluate("""() => {
            const shown = document.createElement("details");
            shown.open = true;
            document.querySelector("#summary").prepend(shown);
        }""")
        page.evaluate("""() => {
            const fresh = document.implementation.createHTMLDocument();
            fresh.body.innerHTML = '<div id="summary" data-live><details><b>baru</b></details></div>';
            draw(fresh);
        }""")
        assert page.locator("#summary details").get_attribute("open") is not None
        expect(page.locator("#summary details b")).to_have_text("baru")


def test_rows_that_move_take_the_focus_with_them_and_rows_that_go_leave_it_in_place(
    open_as: Open, connection: Any
) -> None:
    documents = [failed(connection) for _ in range(4)]
    with open_as("finance") as page:
        page.goto("/documents?status=FAILED")
        page.locator("#rows tbody a", has_text=documents[1].nomer_nota).focus()
        newest = failed(connection)
        run(
            connection, "UPDATE rabbit_publish_shadow SET worker_status='COMPLETED' WHERE id=%s", documents[2].shadow_id
        )
        refreshed(page)
        shown = page.locator("#rows tbody a").all_inner_texts()
        assert shown == [one.nomer_nota for one in (newest, documents[3], documents[1], documents[0])]
        assert page.evaluate("document.activeElement.textContent") == documents[1].nomer_nota
        run(
            connection, "UPDATE rabbit_publish_shadow SET worker_status='COMPLETED' WHERE id=%s", documents[1].shadow_id
        )
        refreshed(page)
        assert focused(page) == "rows"  # not the top of the page


def test_a_change_of_status_is_said_once_and_an_age_never(open_as: Open, connection: Any) -> None:
    """To those who do not see it."""
    document = failed(connection)
    with open_as("finance") as page:
        page.goto(f"/documents/{document.shadow_id}")
        said = page.locator("#said[role=status]")
        run(connection, "UPDATE rabbit_publish_shadow SET worker_at = UTC_TIMESTAMP() - INTERVAL 1 HOUR, n = 3")
        refreshed(page)
        expect(said).to_have_text("")
        run(connection, "UPDATE rabbit_publish_shadow SET worker_status='COMPLETED', error_code=NULL, error=NULL,"
            " response=NULL WHERE id=%s", document.shadow_id)  # fmt: skip
        refreshed(page)
        expect(said).to_have_text("Selesai")


@pytest.mark.parametrize(("status", "told"), [(401, "sudah keluar dari Airflow"), (503, "server tidak menjawab")])
def test_who_is_logged_out_is_told_so_and_not_that_the_server_is_away(
    open_as: Open, connection: Any, status: int, told: str
) -> None:
    failed(connection)

    def refuse(route: Route) -> None:
        route.fulfill(status=status, body="no")

    with open_as("finance") as page:
        page.goto("/documents")
        moment = page.locator("#as-of").inner_text()
        page.route("**/documents", refuse)
        refreshed(page)
        expect(page.locator(".live.off [data-live-state]")).to_contain_text(told)
        expect(page.locator("#said")).to_contain_text(told)
        assert page.locator("#as-of").inner_text() == moment
        page.unroute("**/documents")
        refreshed(page)
        expect(page.locator(".live:not(.off) [data-live-state]")).to_have_text("Diperbarui otomatis")


def test_a_draft_comes_to_the_questions_and_leaves_them_by_itself(open_as: Open, browser: Be, connection: Any) -> None:
    """Whoever has an empty page open sees the first one; one that somebody else decided stands there no longer."""
    builders.warehouse(connection, "GD-A")
    connection.commit()
    with open_as("finance") as page:
        page.goto("/approvals")
        heading = page.get_by_role("heading", name="Dokumen", exact=False)
        expect(page.locator("#drafts article")).to_have_count(0)
        before = heading.count()
        number = kept(browser, connection)
        refreshed(page)
        expect(page.locator("#drafts article")).to_have_count(1)
        assert heading.count() == before + 1
        browser("finance-2").submit(f"/drafts/{number}/withdraw", reason="salah rak")
        refreshed(page)
        expect(page.locator("#drafts article")).to_have_count(0)
        assert heading.count() == before


def test_a_letter_that_somebody_else_replayed_leaves_the_list_unless_something_is_chosen_in_it(
    open_as: Open, connection: Any
) -> None:
    """What is chosen stays what it was, and the page says of what moment it is."""
    first, second, third = (failed(connection) for _ in range(3))
    gone = "UPDATE rabbit_publish_shadow SET worker_status='PENDING' WHERE id=%s"
    with open_as("finance") as page:
        page.goto("/dead-letters")
        rows = page.locator("#failed tbody [type=checkbox]")
        run(connection, gone, third.shadow_id)
        refreshed(page)
        expect(rows).to_have_count(2)
        box = page.locator(f"[value='{second.shadow_id}']")
        box.check()
        box.blur()
        run(connection, gone, second.shadow_id)
        refreshed(page)
        expect(rows).to_have_count(2)
        expect(page.locator("[data-live-state]")).to_contain_text("Tidak diperbarui")
        expect(box).to_be_checked()
        box.uncheck()
        box.blur()
        refreshed(page)
        expect(rows).to_have_count(1)
        assert rows.get_attribute("value") == str(first.shadow_id)


def test_a_region_that_the_page_has_no_more_is_emptied(open_as: Open, connection: Any) -> None:
    document = failed(connection)
    with open_as("analyst") as page:
        page.goto(f"/documents/{document.shadow_id}")
        expect(page.locator("#summary")).not_to_be_empty()
        page.evaluate("draw(document.implementation.createHTMLDocument())")
        expect(page.locator("#summary")).to_be_empty()


@pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.html")), ids=lambda file: file.name)
def test_what_is_refreshed_is_a_place_that_every_look_at_the_page_has(file: Path) -> None:
    """One that stood on a page only now and then would never come to it, or never change."""
    depth = 0
    for found in re.finditer(r"{%-? *(if|for|endif|endfor)\b|data-live>|data-live (?!{)", file.read_text("utf-8")):
        if found[1] is None:
            assert depth == 0, found.string[found.start() - 60 : found.end()]
        else:
            depth += -1 if found[1].startswith("end") else 1


def test_the_state_of_a_workflow_and_what_may_be_sent_to_it_are_refreshed(open_as: Open, world: MysqlWorld) -> None:
    run_id = world.begin(workflow("muatan").wait_for_signal("truk").wait_for_signal("segel").build())
    with open_as("engineer") as page:
        page.goto(f"/workflows/{run_id}")
        assert json.loads(page.locator("#kept pre").inner_text()) == {}
        expect(page.locator("#send form")).to_be_visible()
        world.signal(run_id, "truk", {"pelat": "B 1"})
        refreshed(page)
        state = json.loads(page.locator("#kept pre").inner_text())
        assert state == world.state(run_id) and "B 1" in json.dumps(state)
        world.signal(run_id, "segel")
        refreshed(page)
        expect(page.locator("#state .badge.completed")).to_be_visible()
        expect(page.locator("#send form")).to_have_count(0)


def fill_header(page: Page, nota: str) -> None:
    page.goto("/submit")
    page.locator("[name=nomer_nota]").fill(nota)
    page.locator("[name=gudang_kode]").select_option("GD-A")
    page.locator("[name=tanggal_opname]").fill("2026-08-31")


def test_a_file_shows_how_far_it_is_and_then_what_is_wrong_with_it(open_as: Open, connection: Any) -> None:
    """The same page says it, with what was entered; a sound file leads to its draft; a double click is one draft."""
    builders.warehouse(connection, "GD-A")
    connection.commit()
    rows = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n" + "".join(f"BRG-{n};10;12;1500\n" for n in range(2_000))
    wrong = {"name": "hitung.csv", "mimeType": "text/csv", "buffer": (rows + "BRG-X;10;;1500\n").encode()}
    with open_as("warehouse") as page:
        fill_header(page, "SO-KEMAJUAN")
        expect(page.locator("[data-progress]")).to_be_hidden()
        page.locator("[name=file]").set_input_files(wrong)
        held: list[Route] = []
        page.route("**/submit", lambda route: held.append(route))
        page.locator("form.upload button[type=submit]").dblclick()
        expect(page.locator("[data-progress] progress")).to_be_visible()
        assert len(held) == 1
        held[0].continue_()
        expect(page.locator("#problems")).to_contain_text("qty_fisik")
        assert page.locator("[name=nomer_nota]").input_value() == "SO-KEMAJUAN"
        assert focused(page) == "main"
        page.unroute("**/submit")
        page.locator("[name=file]").set_input_files({**wrong, "buffer": rows.encode()})
        page.locator("form.upload button[type=submit]").dblclick()
        expect(page.locator("article", has_text="SO-KEMAJUAN")).to_have_count(1)
        expect(page.locator(".notice")).to_be_visible()


def test_all_problems_of_a_file_come_as_a_file_without_choosing_it_again(open_as: Open, connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()
    rows = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n" + "".join(f"BRG-{n};x;y;1500\n" for n in range(300))
    with open_as("warehouse") as page:
        fill_header(page, "SO-SALAH")
        page.locator("[name=file]").set_input_files(
            {"name": "hitung.csv", "mimeType": "text/csv", "buffer": rows.encode()}
        )
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("#problems")).to_be_visible()
        with page.expect_download() as download:
            page.locator("#problems button", has_text="CSV").click()
        assert download.value.suggested_filename == "problems-SO-SALAH.csv"
        assert len(csv_rows(download.value.path().read_bytes())) == 600
        expect(page.locator("#problems tbody tr")).to_have_count(500)
        page.route("**/submit/problems.xlsx", lambda route: route.abort())
        page.locator("#problems button", has_text="Excel").click()
        expect(page.locator("form.upload .unsent[role=alert]")).to_contain_text("terputus")
        page.locator("[name=file]").set_input_files(
            {"name": "hitung.csv", "mimeType": "text/csv", "buffer": rows.replace("x;y", "1;2").encode()}
        )
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("article", has_text="SO-SALAH")).to_have_count(1)


def test_a_file_that_does_not_arrive_can_be_sent_again(open_as: Open, connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()
    with open_as("warehouse") as page:
        fill_header(page, "SO-PUTUS")
        page.locator("[name=pasted]").fill("kode_barang;qty_sistem;qty_fisik;harga_pokok\nBRG-1;10;12;1500\n")
        page.route("**/submit", lambda route: route.abort())
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("form.upload .unsent[role=alert]")).to_contain_text("terputus")
        expect(page.locator("[data-progress]")).to_be_hidden()
        page.unroute("**/submit")
        page.locator("form.upload button[type=submit]").click()
        expect(page.locator("article", has_text="SO-PUTUS")).to_have_count(1)


def test_a_report_on_its_way_is_said_to_be(open_as: Open, connection: Any) -> None:
    with open_as("analyst") as page:
        page.goto("/reports?report=item")
        button = page.locator("form[data-works] button[type=submit]")
        expect(button).not_to_have_attribute("aria-busy", "true")
        # As while an answer takes its time: the page is still there.
        page.evaluate("document.addEventListener('submit', (event) => event.preventDefault())")
        button.click()
        expect(button).to_have_attribute("aria-busy", "true")
        page.evaluate("window.dispatchEvent(new Event('pageshow'))")  # back out of the browser's memory
        expect(button).not_to_have_attribute("aria-busy", "true")
