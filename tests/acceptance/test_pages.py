"""The pages in a real Chromium, inside Airflow's own frame, each person with their own login."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect, sync_playwright

from tests.acceptance.live import Live, until

PATIENCE_MS = 60_000
PATHS = ["documents", "submit", "drafts", "approvals", "reports", "dead-letters", "workflows", "health"]
WRONG = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n{item};10;;1500,00\n"
SOUND = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n{item};10;12;1500,00\n"


def token_of(live: Live, who: str) -> str:
    password = live.env[f"EVEREST_LOGIN_{who.upper()}"]
    url = live.env["EVEREST_AIRFLOW_URL"] + "/auth/token"
    answer = httpx.post(url, json={"username": who, "password": password}, trust_env=False, timeout=30)
    return str(answer.json()["access_token"])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("no Chromium: install the Debian package chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_as(chromium: Any, live: Live) -> Callable[..., Any]:
    @contextmanager
    def opened(who: str, **options: Any) -> Iterator[Page]:
        base = live.env["EVEREST_AIRFLOW_URL"]
        context = chromium.new_context(base_url=base, **options)
        context.add_cookies([{"name": "_token", "value": token_of(live, who), "url": base}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        context.close()
        assert errors == []

    return opened


def test_a_count_goes_from_a_clerk_over_finance_into_the_books(live: Live, open_as: Callable[..., Any]) -> None:
    """Mistakes are shown and nothing is stored; once put right it waits for finance, who watch it complete."""
    mark = secrets.token_hex(4)
    nota = f"SO-HAL-{mark}"
    with open_as("warehouse") as page:
        page.goto("/plugin/everest-submit")
        frame = page.frame_locator("iframe")
        frame.locator("[name=nomer_nota]").fill(nota)
        frame.locator("[name=gudang_kode]").select_option(index=1)
        frame.locator("[name=tanggal_opname]").fill("2026-08-31")
        frame.locator("[name=pasted]").fill(WRONG.format(item=mark))
        frame.locator("form.upload button[type=submit]").click()
        expect(frame.locator("#problems")).to_contain_text("qty_fisik")
        frame.locator("[name=pasted]").fill(SOUND.format(item=mark))
        frame.locator("form.upload button[type=submit]").dblclick()
        expect(frame.locator("article", has_text=nota)).to_have_count(1)
    with open_as("finance") as page:
        page.goto("/plugin/everest-documents")
        frame = page.frame_locator("iframe")
        page.goto("/everest/drafts")
        page.locator("article", has_text=nota).locator("h2 a").click()
        expect(page.locator("#weighed")).to_contain_text("Rp")  # the money stands there before the name is given
        page.locator("[data-open=authorise]").click()
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator("h1")).to_have_text(nota)
        expect(page.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)  # it refreshes by itself
        page.goto(page.url.split("?")[0] + "?tab=journal")
        expect(page.locator("tbody tr")).to_have_count(2)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(live: Live, open_as: Callable[..., Any], theme: str) -> None:
    with open_as("engineer", color_scheme=theme) as page:
        for path in PATHS:
            page.goto(f"/everest/{path}?lang={'en' if theme == 'dark' else 'id'}")
            found = Axe().run(page).response["violations"]
            serious = [
                (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], path


def test_every_page_fits_a_phone(live: Live, open_as: Callable[..., Any]) -> None:
    with open_as("engineer", viewport={"width": 390, "height": 844}) as page:
        for path in PATHS:
            page.goto(f"/everest/{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


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
