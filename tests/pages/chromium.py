"""The pages in a real Chromium without the stack: served on a free port; who is logged in is said by a header."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

START_SECONDS, PATIENCE_MS = 60, 60_000

Open = Callable[..., AbstractContextManager[Page]]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("no Chromium: install the Debian package chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def watched(page: Page, site: str) -> list[str]:
    """What no page may do, as it happens, also in a frame of it: a script that fails, something asked for that is not
    of this site, something that the policy of the page had to stop, a modal box, a window of its own."""
    seen: list[str] = []

    def box(dialog: Dialog) -> None:
        seen.append(f"a box: {dialog.message}")
        dialog.dismiss()

    def asked(request: Request) -> None:
        if request.url.startswith(("http", "ws")) and not request.url.startswith(f"{site}/"):
            seen.append(f"from elsewhere: {request.url}")

    def said(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            seen.append(message.text)

    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("request", asked)
    page.on("console", said)
    page.on("dialog", box)
    page.on("popup", lambda window: seen.append(f"a window: {window.url}"))
    return seen


@pytest.fixture
def address(app: FastAPI) -> Iterator[str]:
    """Where the application of this test is served."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline, "the pages did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(START_SECONDS)


@pytest.fixture
def open_as(chromium: Any, address: str) -> Open:
    """A page of a browser in which this person is logged in; what no page may do (`watched`) fails the test."""

    @contextmanager
    def opened(who: str, **options: Any) -> Iterator[Page]:
        context = chromium.new_context(base_url=address, extra_http_headers={"x-person": who}, **options)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        wrong = watched(page, address)
        yield page
        context.close()
        assert wrong == []

    return opened
