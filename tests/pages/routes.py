"""Every route of the pages, with an address that leads there."""

from __future__ import annotations

import re

from fastapi.routing import APIRoute

from everest.pages.access import RoleMapping
from everest.pages.app import create_app
from everest.pages.guard import GuardedRoute
from everest.pages.settings import PageSettings
from everest.settings import MysqlUrl, Settings
from tests.pages.conftest import by_header

ROUTES = create_app(PageSettings(MysqlUrl("", 0, "", "", ""), Settings(), RoleMapping({}, {}), b""), by_header).routes


def doors() -> list[tuple[str, GuardedRoute]]:
    return [(method, route) for route in ROUTES if isinstance(route, GuardedRoute) for method in sorted(route.methods)]


def address(route: APIRoute) -> str:
    return re.sub(r"\{[^}]*\}", "1", route.path)
