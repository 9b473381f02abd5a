from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from stack import manager
from stack.layout import Layout, StackError
from tests.acceptance import guest
from tests.acceptance.listed import Listed, listed_dags
from tests.acceptance.live import Live


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
