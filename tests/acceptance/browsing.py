"""The pages in Airflow's frame, as a browser shows them to somebody who is logged in."""

from __future__ import annotations

import httpx
from playwright.sync_api import Frame, Page

from tests.acceptance.live import Live

PATIENCE_MS = 60_000


def token_of(live: Live, who: str) -> str:
    password = live.env[f"EVEREST_LOGIN_{who.upper()}"]
    url = live.env["EVEREST_AIRFLOW_URL"] + "/auth/token"
    answer = httpx.post(url, json={"username": who, "password": password}, trust_env=False, timeout=30)
    return str(answer.json()["access_token"])


def framed(page: Page, path: str) -> Frame:
    """A page of ours inside Airflow's, as people have it."""
    page.goto("/plugin/everest-documents")
    frame = ours(page)
    frame.goto(f"/everest/{path}")
    return frame


def ours(page: Page) -> Frame:
    """The frame in which Airflow shows the pages."""
    page.frame_locator("iframe").locator("#main").wait_for()
    (frame,) = (one for one in page.frames if one.parent_frame is not None)
    return frame
