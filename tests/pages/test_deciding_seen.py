"""Decisions in a real browser: somebody answers what another module asks, and refuses a document on its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import expect

from closing_example.workflow import MONTHLY_CLOSING
from everest import bootstrap
from everest.settings import MysqlUrl
from everest.workflow.builder import workflow
from everest.workflow.fields import Field
from tests import builders
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.eyes import refreshed
from tests.pages.standing import waiting
from tests.workflow.world import MysqlWorld

__all__ = ["address", "chromium", "open_as"]


@pytest.fixture
def world(database: MysqlUrl) -> Iterator[MysqlWorld]:
    with closing(MysqlWorld(database)) as found:
        found.database.move_clock(datetime.now(UTC) - found.now)  # the pages take the time from the server
        yield found


def test_a_person_decides_about_the_closing_of_a_month(open_as: Open, connection: Any, world: MysqlWorld) -> None:
    """Two people say yes, the reviewer once no and then yes; each answers where the question is shown."""
    assert bootstrap.deployed(MONTHLY_CLOSING.name, MONTHLY_CLOSING.version) is not None
    builders.warehouse(connection, "GD-A")
    connection.commit()
    run = world.begin(MONTHLY_CLOSING, {"bulan": "2026-08"}, "2026-08")

    with open_as("finance") as page:
        for names, button, reason in (
            ("kepala_gudang", "primary", "rak cocok"),
            ("keuangan", "primary", "angka cocok"),
            ("tinjauan", "danger", "kurang rinci"),
            ("tinjauan", "primary", "cukup"),
        ):
            page.goto("/approvals")
            question = page.locator("article", has=page.locator(f"a[href='/workflows/{run}']"))
            expect(question).to_contain_text(names)
            expect(question).to_contain_text("2026-08")
            question.locator("[name=reason]").fill(reason)
            question.locator(f"button.{button}").click()
            expect(page.locator(".notice")).to_be_visible()
            world.pass_time(timedelta(minutes=1))
        page.goto(f"/workflows/{run}")
        expect(page.locator("#state .badge.completed")).to_be_visible()
        expect(page.locator("#signals")).to_contain_text("tinjauan")

    assert world.state(run)["laporan"]["catatan"] == "kurang rinci"
    said = world.rows("SELECT actor, action, reason FROM audit_log WHERE workflow_id = %s AND actor = 'finance'", run)
    assert [(row["action"], row["reason"]) for row in said] == [
        ("approve", "rak cocok"),
        ("approve", "angka cocok"),
        ("reject", "kurang rinci"),
        ("approve", "cukup"),
    ]


def test_a_person_fills_in_what_another_module_asks_for(
    open_as: Open, world: MysqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser itself asks for what is missing; a number that is none is told at its field; then the run goes on."""
    asked = [Field("usd", "number", "Kurs USD"), Field("pada", "date"), Field("bank", "choice", choices=("BI", "BCA"))]
    rates = workflow("rates").wait_for_input("kurs", fields=asked, result_key="kurs").build()
    monkeypatch.setattr(bootstrap, "deployed", lambda *named: rates)
    run = world.begin(rates)
    with open_as("finance") as page:
        page.goto("/approvals")
        form = page.locator(f"form[action$='/workflows/{run}/input']")
        form.locator("[name='field.usd']").fill("mahal")
        form.locator("button").click()
        expect(page).to_have_url(re.compile("/approvals"))  # a date and a bank are missing
        form.locator("[name='field.pada']").fill("2026-08-31")
        form.locator("[name='field.bank']").select_option("BI")
        form.locator("button").click()
        expect(page.locator("[name='field.usd'][aria-invalid=true]")).to_be_visible()
        refreshed(page)  # nobody types just then; what was sent and is wrong still stands there
        expect(page.locator("[name='field.usd'][aria-invalid=true]")).to_have_value("mahal")
        page.locator("[name='field.usd']").fill("16250,50")
        page.locator("[name='field.pada']").fill("2026-08-31")
        page.locator("[name='field.bank']").select_option("BI")
        page.locator(f"form[action$='/workflows/{run}/input'] button").click()
        expect(page.locator(".notice")).to_be_visible()
        world.pass_time(timedelta(minutes=1))
        page.goto(f"/workflows/{run}")
        expect(page.locator("#state .badge.completed")).to_be_visible()
    assert world.state(run)["kurs"] == {"usd": Decimal("16250.50"), "pada": date(2026, 8, 31), "bank": "BI"}


def test_a_document_is_rejected_with_a_reason_on_its_own_page(
    open_as: Open, connection: Any, database: MysqlUrl
) -> None:
    document = waiting(connection, database)
    with open_as("finance") as page:
        page.goto(f"/documents/{document.shadow_id}")
        expect(page.locator("#question")).to_contain_text("melebihi batas dokumen")
        page.locator(f"[data-open=reject{document.shadow_id}]").click()
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator("dialog[open]")).to_be_visible()  # the browser asks for the reason
        page.locator("dialog[open] [name=reason]").fill("rak B salah")
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator(".notice")).to_contain_text("Ditolak")
        expect(page.locator("#question article")).to_have_count(0)
    connection.commit()
    (row,) = builders.rows(connection, "SELECT actor, action, reason FROM audit_log WHERE action = 'reject'")
    assert tuple(row.values()) == ("finance", "reject", "rak B salah")
