"""What Airflow mounts: the pages, built when the first request comes.

Every Airflow process loads the plugins, each task process among them; FastAPI, templates and the database driver are
of no use there and would cost every task its share of a second. So only the API server, and only once, pays for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from everest.errors import SettingsError

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class Pages:
    """An ASGI application that becomes the real one. secret, base_url: of Airflow's [api] section."""

    def __init__(self, secret: str, base_url: str) -> None:
        self._secret = secret
        self._base_url = base_url
        self._app: Asgi | None = None
        self._building = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            async with self._building:
                if self._app is None:
                    # In a thread: the API server also answers the heartbeats of tasks.
                    self._app = await asyncio.to_thread(self._build)
        await self._app(scope, receive, send)

    def _build(self) -> Asgi:
        from everest.pages.app import create_app
        from everest.pages.login import airflow_login
        from everest.pages.settings import PageSettings

        try:
            settings = PageSettings.from_environment(self._secret, self._base_url)
        except SettingsError as problem:
            log.error("the pages of everest can't be shown: %s", problem.message)
            return _misconfigured
        return create_app(settings, airflow_login(settings))


async def _misconfigured(scope: Scope, receive: Receive, send: Send) -> None:
    """Which setting is wrong stands in the log, not in a browser."""
    from starlette.responses import PlainTextResponse

    await PlainTextResponse("503: see the log of the API server", 503)(scope, receive, send)
