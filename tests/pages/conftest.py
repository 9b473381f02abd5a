"""The pages as an application of their own, on the real database; who is logged in is said by a header."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI, Request

from everest.pages.access import Person, Role, RoleMapping
from everest.pages.app import create_app
from everest.pages.settings import PageSettings
from everest.pages.tokens import sign
from everest.settings import MysqlUrl, Settings

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
