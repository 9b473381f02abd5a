"""What Airflow is to the pages: who logs in and out there, who is let through at each door, and the frame."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import jwt
import pytest
from playwright.sync_api import Locator, Page, expect

from everest.pages import formats
from everest.pages.access import Permission, Role
from everest.pages.navigation import PAGES, PREFIX
from stack import manager
from stack.layout import Layout
from stack.programs import Stack
from tests import builders
from tests.acceptance.browsing import (
    PATIENCE_MS,
    form_token,
    framed,
    led,
    log_in,
    log_out,
    opened,
    steadily,
    token_by,
    token_of,
)
from tests.acceptance.counting import DEAD_LETTER_QUEUE, QUEUE, refused
from tests.acceptance.live import Live
from tests.pages.eyes import PHONE, serious, too_wide
from tests.pages.posted import csv_rows, xlsx_rows
from tests.pages.routes import address, doors

pytestmark = pytest.mark.acceptance

Open = Callable[..., Any]
COLUMNS = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n"
STRANGER = "everest_operator"
"""Airflow knows it, as a viewer; in our roles nobody mentions it."""


def test_a_count_outlives_that_whoever_enters_it_is_logged_out_of_airflow(live: Live, open_as: Open) -> None:
    """Finance log in by Airflow's own form and paste a count, first a wrong one. They log out in another tab: what they
    entered stays, nothing is stored, and once they are back the same form sends it. A page that stands open says by
    itself that they left."""
    mark = secrets.token_hex(4)
    nota, line = f"SO-MASUK-{mark}", f"{mark};10;12;1500\n"
    with live.connection() as conn:
        builders.warehouse(conn, "GD-HAL")
    with open_as(None) as page:
        log_in(page, live, "finance")
        frame = opened(page, "Kirim opname")
        expect(frame.locator(".who")).to_contain_text("finance")
        frame.locator("[name=nomer_nota]").fill(nota)
        frame.locator("[name=gudang_kode]").select_option("GD-HAL")
        frame.locator("[name=tanggal_opname]").fill("2026-08-31")
        send = frame.locator("form.upload button[type=submit]")
        frame.locator("[name=pasted]").fill(f"{COLUMNS}{line}{mark};satu;2;3\n")
        send.click()
        expect(frame.locator("#problems")).to_contain_text("qty_sistem")
        frame.locator("[name=pasted]").fill(COLUMNS + line)
        other = page.context.new_page()
        other.goto("/")
        log_out(other)
        send.click()
        expect(frame.locator(".unsent")).to_contain_text("masuklah ke Airflow di tab lain", timeout=PATIENCE_MS)
        assert live.rows("SELECT 1 FROM so_headers_staging WHERE nomer_nota = %s", nota) == []
        log_in(other, live, "finance")
        send.click()
        expect(frame.locator("article", has_text=nota)).to_have_count(1)
        log_out(other)
        expect(frame.locator("main")).to_contain_text("sudah keluar dari Airflow", timeout=PATIENCE_MS)
    assert len(live.rows("SELECT 1 FROM so_headers_staging WHERE nomer_nota = %s", nota)) == 1


def expired(live: Live, token: str, seconds: int) -> str:
    """The same login, signed as Airflow signs it, that ended so long ago."""
    secret = Stack.open(Layout.here()).credentials.airflow_jwt
    claims = jwt.decode(token, options={"verify_signature": False})
    return jwt.encode({**claims, "exp": int(time.time()) - seconds}, secret, jwt.get_unverified_header(token)["alg"])


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as opened_ones:
        yield opened_ones


def test_every_door_knows_by_airflows_login_who_may_pass(live: Live, clients: ExitStack) -> None:
    """By the cookie that a browser sends, taken from the list of routes: nobody without a login or with a false or old
    one, nobody without the role, also somebody whom only Airflow knows. Whoever has the role cannot be made to act by
    another site, even with a token that the pages gave them, nor without such a token."""
    site = live.env["EVEREST_AIRFLOW_URL"]
    finance = token_of(live, "finance")
    head, body, _ = finance.split(".")
    roles: dict[str, Role | None] = {role.value: role for role in Role}
    tokens = {who: token_of(live, who) for who in roles}
    admin, stranger = live.env["EVEREST_AIRFLOW_USER"], Stack.open(Layout.here()).passwords()[STRANGER]
    roles |= {"admin": Role.ENGINEER, "stranger": None}
    tokens["admin"] = token_by(live, admin, live.env["EVEREST_AIRFLOW_PASSWORD"])
    tokens["stranger"] = token_by(live, STRANGER, stranger)
    nobody = {"nobody": "", "forged": f"{head}.{body}.{'A' * 43}", "late": expired(live, finance, 3600)}
    people = {
        who: clients.enter_context(
            httpx.Client(base_url=site + PREFIX, cookies={"_token": token}, trust_env=False, timeout=60)
        )
        for who, token in {**nobody, **tokens}.items()
    }
    assert people["finance"].get("/documents").status_code == 200
    acted = "SELECT COUNT(*) AS n FROM audit_log WHERE actor IN ('admin', 'finance', 'engineer', 'warehouse')"
    before = live.rows(acted)
    given = {
        who: form_token(people[who].get("/submit").text) for who, role in roles.items() if may(role, Permission.SUBMIT)
    }
    for method, route in doors():
        path = address(route)
        for who in people:
            role, token = roles.get(who), given.get(who, given["finance"])

            def ask(origin: str | None, token: str, who: str = who, path: str = path, method: str = method) -> Any:
                headers = {} if origin is None or method == "GET" else {"origin": origin}
                data = None if method == "GET" else {"token": token, "reason": "ya"}
                answer = people[who].request(method, path, headers=headers, data=data)
                assert "default-src 'none'" in answer.headers["content-security-policy"], path
                assert answer.headers["x-frame-options"] == "SAMEORIGIN", path
                return answer

            if who in nobody:
                assert ask(site, token).status_code == 401, (who, path)
            elif not may(role, route.permission):
                assert ask(site, token).status_code == 403, (who, path)
            elif method == "GET":
                assert ask(None, "").status_code in (200, 303, 404, 409, 422), (who, path)
            else:
                for origin, sent, why in (
                    ("http://evil.example", token, "tidak datang dari halaman kami"),
                    (None, token, "tidak datang dari halaman kami"),
                    (site, "", "Formulir ini sudah kedaluwarsa"),
                ):
                    answer = ask(origin, sent)
                    assert answer.status_code == 403 and why in answer.text, (who, path, origin)
    assert live.rows(acted) == before


def may(role: Role | None, permission: Permission) -> bool:
    return role is not None and permission in role.permissions


def test_every_file_arrives_out_of_airflows_frame(live: Live, open_as: Open) -> None:
    """Links, and the answers to a form that is sent for its problems alone: after a paste, and after a file."""
    document, nota = refused(live), f"SO-{secrets.token_hex(4)}"
    live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    flawed = COLUMNS + "".join(f"X-{n};satu;2;3\n" for n in range(700))
    with live.connection() as conn:
        builders.warehouse(conn, "GD-HAL")
    with open_as("finance") as page:
        frame = opened(page, "Dokumen")
        for path in (
            "documents",
            f"documents/{document.shadow_id}",
            "reports?report=warehouse&since=",
            "dead-letters",
            "submit",
        ):
            led(frame, path)
            links = frame.locator("a[download]:visible")
            assert links.count() >= 2, path
            for link in links.all():
                arrived(page, link)
        frame.locator("[name=nomer_nota]").fill(nota)
        frame.locator("[name=gudang_kode]").select_option("GD-HAL")
        frame.locator("[name=tanggal_opname]").fill("2026-08-31")
        for field in ("pasted", "file"):
            file: Any = {"name": "hitung.csv", "mimeType": "text/csv", "buffer": flawed.encode()}
            frame.locator("[name=pasted]").fill(flawed if field == "pasted" else "")
            if field == "file":
                frame.locator("[name=file]").set_input_files(file)
            frame.locator("form.upload button[type=submit].primary").click()
            expect(frame.locator("#problems")).to_contain_text("dan 200 masalah lagi")
            buttons = frame.locator("#problems button")
            content = [arrived(page, button) for button in buttons.all()]
            assert [len(csv_rows(content[0])), len(xlsx_rows(content[1]))] == [700, 700], field
            # The page stands as it was; the next answer shall bring its own.
            frame.locator("#problems").evaluate("(old) => old.remove()")
    assert live.rows("SELECT 1 FROM so_headers_staging WHERE nomer_nota = %s", nota) == []


def arrived(page: Page, what: Locator) -> bytes:
    with page.expect_download() as began:
        what.click()
    content = began.value.path().read_bytes()
    assert began.value.failure() is None and content and began.value.suggested_filename.endswith((".csv", ".xlsx"))
    return content


def test_each_page_fits_a_phone_in_airflows_frame_and_stays_in_the_language_that_was_chosen(open_as: Open) -> None:
    """In the dark, and looked at by axe in the frame itself; then back, with the filter that was chosen."""
    with open_as("finance", viewport=PHONE, color_scheme="dark") as page:
        frame = framed(page, "documents")
        allowed = page.locator("iframe").get_attribute("sandbox") or ""
        assert set(allowed.split()) == {"allow-scripts", "allow-same-origin", "allow-forms", "allow-downloads"}
        language = frame.locator("html")
        frame.locator(".who a", has_text="English").click()
        expect(language).to_have_attribute("lang", "en")
        for _, path, _ in PAGES:
            frame.locator(f"header nav a[href$='{PREFIX}{path}']").click()
            frame.wait_for_url(re.compile(rf"{PREFIX}{path}(\?|$)"))  # a report says which
            assert language.get_attribute("lang") == "en", path
            assert steadily(lambda: (too_wide(frame), serious(frame))) == ([], []), path
        frame.locator(f"header nav a[href$='{PREFIX}/documents']").click()
        frame.locator("[name=nota]").fill("SO-")
        frame.locator("form.filters button[type=submit]").click()
        frame.wait_for_url("**nota=SO-*")
        assert language.get_attribute("lang") == "en"
        frame.locator(".who a", has_text="Bahasa Indonesia").click()
        expect(language).to_have_attribute("lang", "id")
        assert frame.locator("[name=nota]").input_value() == "SO-"
        frame.locator(f"header nav a[href$='{PREFIX}/health']").click()
        expect(frame.locator("h1")).to_have_text("Kesehatan")


@contextmanager
def stopped(role: str) -> Iterator[None]:
    """As `make down` stops a program."""
    layout = Layout.here()
    of_it = [one for one in Stack.open(layout).programs if one.role == role]
    try:
        for program in of_it:
            manager.stop_program(layout, program)
        yield
    finally:
        for program in of_it:
            manager.start_program(layout, program)


def test_health_tells_the_brokers_own_numbers_and_who_stopped(live: Live, open_as: Open) -> None:
    """Without being loaded again: what works is good; a relay that stops is the first thing on the page, with what to
    do; and good once it is back."""
    document = refused(live)
    live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    with open_as("analyst") as page:
        frame = opened(page, "Kesehatan")
        checks = frame.locator("ul.checks > li")

        def good(name: str) -> Any:
            return checks.filter(has=frame.get_by_text(name, exact=True)).locator(".badge.good")

        for name in ("Consumer", "Relay", "Reconciler", "Antrean RabbitMQ", "Pesan yang harus berangkat"):
            expect(good(name)).to_be_visible()
        with live.channel() as channel:
            consumers = channel.queue_declare(QUEUE, passive=True).method.consumer_count
            letters = channel.queue_declare(DEAD_LETTER_QUEUE, passive=True).method.message_count
        assert consumers and letters
        for name, number in (("Pekerja di antrean", consumers), ("Surat di antrean mati", letters)):
            card = frame.locator("ul.cards li", has_text=name).locator("strong")
            expect(card).to_have_text(formats.whole(number), timeout=PATIENCE_MS)
        with stopped("relay"):
            first = checks.first
            expect(first.locator("b")).to_have_text("Relay", timeout=PATIENCE_MS)
            expect(first.locator(".badge.bad")).to_be_visible()
            expect(first).to_contain_text("make logs P=relay")
        expect(good("Relay")).to_be_visible(timeout=PATIENCE_MS)
