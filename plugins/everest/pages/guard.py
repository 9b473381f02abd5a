"""The one door of every route: logged in, allowed, not forged, and no trace of an error in the answer.

An endpoint declares the permission it needs with `@needs(...)`; a route without a declaration cannot be built. What
is checked happens before the body is read. Airflow's own cookie is SameSite=Lax and it has no token of its own, so
whatever changes something must also come from our own address (Origin) and carry a token that we signed.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from everest.errors import EverestError
from everest.pages import tokens, view
from everest.pages.access import Permission, Person
from everest.pages.settings import PageSettings
from ingest_consumer.errors import RerunRefused

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Callable[..., Any])
Login = Callable[[Request], Awaitable[Person | None]]
"""Who sent the request; None when nobody is logged in."""

SAFE_METHODS = frozenset({"GET", "HEAD"})
TOKEN_FIELD = "token"
MAX_BODY_BYTES = 40 * 1024 * 1024
"""The largest file the intake takes (32 MiB), and what a form adds to it."""
MAX_FIELDS = 200

_DECLARED = "__everest_permission__"


def needs(permission: Permission) -> Callable[[E], E]:
    """Declares what an endpoint asks for; stands directly above the function."""

    def declare(endpoint: E) -> E:
        setattr(endpoint, _DECLARED, permission)
        return endpoint

    return declare


class GuardedRoute(APIRoute):
    """A route that lets nobody through whom its endpoint did not mean."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **rest: Any) -> None:
        declared = getattr(endpoint, _DECLARED, None)
        if declared is None:
            raise TypeError(f"{endpoint.__name__} ({path}) declares no permission: @needs(Permission....)")
        self.permission: Permission = declared
        super().__init__(path, endpoint, **rest)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                await _admit(request, self.permission)
                return view.close_doors(await handle(request))
            except HTTPException as refusal:
                return view.problem_page(request, refusal.status_code, str(refusal.detail))
            except RequestValidationError:
                return view.problem_page(request, 404, "missing")  # an address that is no address
            except RerunRefused as refusal:
                return view.problem_page(request, 409, None, refusal=refusal)
            except EverestError as problem:
                if problem.code >= 500:
                    return _unexpected(request, problem)
                return view.problem_page(request, problem.code, None, refusal=problem)
            except Exception as error:
                return _unexpected(request, error)
            finally:
                if isinstance(fields := getattr(request.state, "form", None), FormData):
                    await fields.close()  # what was uploaded lies in a file

        return guarded


def person(request: Request) -> Person:
    """Whoever the guard let in."""
    return request.state.person  # type: ignore[no-any-return]


def form(request: Request) -> FormData:
    """The fields of an admitted POST."""
    return request.state.form  # type: ignore[no-any-return]


async def _admit(request: Request, permission: Permission) -> None:
    login: Login = request.app.state.login
    somebody = await login(request)
    if somebody is None:
        raise HTTPException(401, "login")
    request.state.person = somebody
    if not somebody.may(permission):
        raise HTTPException(403, "role")
    if request.method in SAFE_METHODS:
        return
    settings: PageSettings = request.app.state.settings
    if not _is_from_here(request, settings):
        raise HTTPException(403, "origin")
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        raise HTTPException(413, "size")
    try:
        # A pasted count arrives in one field.
        fields = await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=MAX_BODY_BYTES)
    except MultiPartException as flaw:
        raise HTTPException(400, "form") from flaw
    request.state.form = fields
    if not tokens.is_signed(settings.secret, somebody, str(fields.get(TOKEN_FIELD, ""))):
        raise HTTPException(403, "token")


def _is_from_here(request: Request, settings: PageSettings) -> bool:
    """Browsers send Origin with every POST; "null" and a missing one are refused."""
    origin = request.headers.get("origin", "")
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return False
    return origin in settings.origins or parts.netloc == request.headers.get("host")


def _unexpected(request: Request, error: Exception) -> Response:
    """The browser gets a number; what happened stands under it in the log of the API server."""
    number = secrets.token_hex(4)
    log.error("pages: error %s at %s %s", number, request.method, request.url.path, exc_info=error)
    retryable = isinstance(error, EverestError) and error.retryable
    return view.problem_page(request, 503 if retryable else 500, "busy" if retryable else "bug", number)
