"""A posting that is held in the middle, and others beside it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import pytest

from everest.store.unit_of_work import Database
from tests.integration.opname.walk import Walker

BEFORE = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)


class Gate:
    """Lets a walker stop inside an open transaction until the test lets it go on."""

    def __init__(self, database: Database) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self._database = database

    def transaction(self) -> Any:
        return self._database.transaction()

    def hold(self) -> None:
        self.reached.set()
        assert self.open.wait(30)


def hold_in(walker: Walker, monkeypatch: pytest.MonkeyPatch, method: str) -> Gate:
    """The walker's next call of `books.<method>` stops after it has done its work."""
    from everest.store.books import MysqlBooks

    gate = Gate(walker.database)
    original = getattr(MysqlBooks, method)
    owner: list[int] = []

    def stopping(self: MysqlBooks, *arguments: Any, **named: Any) -> Any:
        result = original(self, *arguments, **named)
        if not owner:
            owner.append(threading.get_ident())
            gate.hold()
        return result

    monkeypatch.setattr(MysqlBooks, method, stopping)
    return gate


def is_waiting(future: Future[Any]) -> bool:
    """Blocked by a lock: not done although nothing else keeps it."""
    try:
        future.result(timeout=1)
    except TimeoutError:
        return True
    return False
