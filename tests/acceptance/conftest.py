from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page

from stack import manager
from stack.layout import Layout, StackError
from tests import builders
from tests.acceptance import guest
from tests.acceptance.browsing import PATIENCE_MS, token_of
from tests.acceptance.listed import Listed, listed_dags
from tests.acceptance.live import Live
from tests.pages.chromium import chromium, watched

__all__ = ["chromium"]


@pytest.fixture(scope="session")
def live(servers: Mapping[str, str]) -> Iterator[Live]:
    """The stack of this checkout, running whole. Fails, never skips, when it is not. Dead letters that the tests make
    do not stay."""
    layout = Layout.here()
    try:
        states = manager.states(layout)
    except StackError as problem:
        pytest.fail(f"the stack does not run: {problem}")
    down = [name for name, state in states.items() if not state.is_running]
    if down:
        pytest.fail(f"not running: {', '.join(down)}; `make up` starts them, `make logs` says why they stopped")
    guest.remove_left_files()
    root = str(layout.root)
    stack = Live({**servers, "PYTHONPATH": f"{root}:{root}/plugins"})
    known = {letter["letter"] for letter in stack.dead_letters()}
    yield stack
    stack.give_up_letters(known)


@pytest.fixture(autouse=True)
def _own_connection_settings(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVEREST_MYSQL_URL", live.env["EVEREST_MYSQL_URL"])


@pytest.fixture(scope="package")
def listed(live: Live) -> Iterator[Listed]:
    """The workflows of the numbered lists, those that need nobody's help under way."""
    with listed_dags(live) as everything:
        everything.begin_what_needs_no_help()
        yield everything


@pytest.fixture
def month(live: Live) -> str:
    """A month that no closing has had: each is closed once."""
    with live.connection() as conn:
        builders.warehouse(conn, "GD-A")
    for _ in range(100):
        text = f"20{random.randint(10, 99)}-{random.randint(1, 12):02d}"
        if not live.rows("SELECT id FROM workflow_runs WHERE idempotency_key = %s", text):
            return text
    raise AssertionError("no month left")


@pytest.fixture
def open_as(chromium: Any, live: Live) -> Callable[..., Any]:
    @contextmanager
    def opened(who: str | None, **options: Any) -> Iterator[Page]:
        """None: nobody is logged in yet."""
        base = live.env["EVEREST_AIRFLOW_URL"]
        context = chromium.new_context(base_url=base, **options)
        if who is not None:
            context.add_cookies([{"name": "_token", "value": token_of(live, who), "url": base}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        wrong = watched(page, base)
        yield page
        context.close()
        assert wrong == []

    return opened
