"""The pages in Airflow's frame, as a browser shows them to somebody who is logged in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import httpx
from playwright.sync_api import Error, Frame, Page

from tests.acceptance.live import Live

T = TypeVar("T")

PATIENCE_MS = 60_000
INTERRUPTED = ("interrupted by another navigation", "Execution context was destroyed")


def token_of(live: Live, who: str) -> str:
    return token_by(live, who, live.env[f"EVEREST_LOGIN_{who.upper()}"])


def token_by(live: Live, name: str, password: str) -> str:
    url = live.env["EVEREST_AIRFLOW_URL"] + "/auth/token"
    answer = httpx.post(url, json={"username": name, "password": password}, trust_env=False, timeout=30)
    return str(answer.json()["access_token"])


def form_token(page: str) -> str:
    """What stands in the forms of a page of ours."""
    return re.findall(r'name="token" value="([^"]+)"', page)[0]


def log_in(page: Page, live: Live, who: str) -> None:
    """By Airflow's own form, to which it leads whoever is nobody."""
    page.goto("/")
    page.locator("[name=username]").fill(who)
    page.locator("[name=password]").fill(live.env[f"EVEREST_LOGIN_{who.upper()}"])
    page.locator("button[type=submit]").click()
    page.get_by_role("button", name="Plugins", exact=True).wait_for()


def log_out(page: Page) -> None:
    choose(page, "User", "Logout")
    page.get_by_role("button", name="Confirm").click()
    page.locator("[name=password]").wait_for()


def choose(page: Page, *names: str) -> None:
    """From Airflow's own menus, one below the other."""
    page.get_by_role("button", name=names[0], exact=True).click()
    for name in names[1:]:
        page.locator("[role^=menuitem]", has_text=name).click()


def opened(page: Page, name: str) -> Frame:
    """A page of ours as people come to it: from Airflow's menu, in Airflow's sandboxed frame."""
    page.goto("/")
    choose(page, "Plugins", "Stok Opname", name)
    return ours(page)


def say(page: Page | Frame, opener: str, reason: str | None = None) -> None:
    """Opens a dialog of the page and confirms it."""
    page.locator(f"[data-open={opener}]").click()
    if reason is not None:
        page.locator("dialog[open] [name=reason]").fill(reason)
    page.locator("dialog[open] button[type=submit]").click()


def follow(page: Page, frame: Frame, link: str, asks: str) -> None:
    """A link of ours to Airflow's own pages takes the whole window there, and Airflow finds what it names: it gets a
    good answer from its API for `asks`."""
    with page.expect_response(lambda answer: re.search(asks, answer.url) is not None) as came:
        frame.locator(link).first.click()
    assert came.value.status == 200, came.value.url


def framed(page: Page, path: str) -> Frame:
    """A page of ours inside Airflow's, as people have it."""
    page.goto("/plugin/everest-documents")
    frame = ours(page)
    led(frame, path)
    return frame


def led(frame: Frame, path: str) -> None:
    """Leads the frame to another page of ours."""
    steadily(lambda: frame.goto(f"/everest/{path}"))


def steadily(do: Callable[[], T]) -> T:
    """Airflow's own page may load its frame anew just then; what that interrupts is done again, twice at most."""
    for _ in range(2):
        try:
            return do()
        except Error as error:
            if not any(words in error.message for words in INTERRUPTED):
                raise
    return do()


def ours(page: Page) -> Frame:
    """The frame in which Airflow shows the pages."""
    page.frame_locator("iframe").locator("#main").wait_for()
    (frame,) = (one for one in page.frames if one.parent_frame is not None)
    return frame
