"""The pages as an application of their own, on the real database; who is logged in is said by a header."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI, Request

from everest import bootstrap
from everest.pages.access import Person, Role, RoleMapping
from everest.pages.app import create_app
from everest.pages.settings import PageSettings
from everest.pages.tokens import sign
from everest.settings import MysqlUrl, Settings
from everest.workflow.definition import Definition
from tests import builders
from tests.workflow.world import MysqlWorld

with warnings.catch_warnings():
    # It would rather have another HTTP library than the one everything here uses.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

ORIGIN = "http://testserver"
SECRET = b"a secret of the tests"
PEOPLE = {role.value: Person(role.value, frozenset({role})) for role in Role} | {
    "other-clerk": Person("other-clerk", frozenset({Role.WAREHOUSE})),
    "finance-2": Person("finance-2", frozenset({Role.FINANCE})),
    "stranger": Person("stranger", frozenset()),
}


async def by_header(request: Request) -> Person | None:
    return PEOPLE.get(request.headers.get("x-person", ""))


@pytest.fixture
def app(database: MysqlUrl) -> FastAPI:
    settings = PageSettings(mysql=database, site=Settings(), roles=RoleMapping({}, {}), secret=SECRET)
    return create_app(settings, by_header)


class Browser(TestClient):
    """A client that is somebody, and sends forms as a browser does."""

    def __init__(self, app: FastAPI, who: str | None) -> None:
        headers = {"x-person": who} if who else {}
        super().__init__(app, base_url=ORIGIN, headers=headers, follow_redirects=False, raise_server_exceptions=False)
        self.who = who

    def submit(self, path: str, files: Any = None, origin: str | None = ORIGIN, **fields: Any) -> Any:
        token = sign(SECRET, PEOPLE[self.who]) if self.who in PEOPLE else ""
        headers = {} if origin is None else {"origin": origin}
        return self.post(path, data={"token": token, **fields}, files=files, headers=headers)


Be = Callable[[str | None], Browser]
"""Somebody's browser; None is logged in by nobody."""


@pytest.fixture
def browser(app: FastAPI) -> Be:
    return lambda who: Browser(app, who)


@pytest.fixture
def warehouse(connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()


@pytest.fixture
def world(database: MysqlUrl, monkeypatch: pytest.MonkeyPatch) -> Iterator[MysqlWorld]:
    """Its definitions are those that this site runs."""
    with closing(MysqlWorld(database)) as found:
        found.database.move_clock(datetime.now(UTC) - found.now)  # the pages take the time from the server

        def deployed(name: str, version: str, definition_hash: str | None = None) -> Definition | None:
            known = found.definitions.get(name)
            return known if known is not None and known.version == version else None

        monkeypatch.setattr(bootstrap, "deployed", deployed)
        yield found
