"""From values to HTML: templates that escape everything, texts from the catalogue, headers that close every door."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match

from everest.pages import formats, telling, tokens, words
from everest.pages.access import Permission, Person
from everest.pages.navigation import PAGES, PREFIX
from everest.pages.words import Language

HERE = Path(__file__).parent
LANGUAGE_COOKIE = "everest_language"
AS_OF = "X-As-Of"
"""Header of a refresh that found nothing new."""
NOTICE = "done"
"""Query parameter that names what a form has just done, so that the page after it can say so."""


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A whole page for whoever the guard let in (or nobody, on a page about a problem). Who may not fetch our style, as
    everything of ours asks for a login, gets it inside the page; there is nothing then that a script would do."""
    language = language_of(request)
    who: Person | None = getattr(request.state, "person", None)
    base = base_of(request)

    def t(key: str, **holes: Any) -> str:
        return words.text(language, key, **holes)

    def word(section: str, value: Any) -> str:
        """The text of a value that rows hold (a status, an event); the value itself when there is none."""
        key = f"{section}.{value}"
        return words.text(language, key) if words.has(key) else formats.shown(value)

    def url(path: str, **query: Any) -> str:
        """A link inside the pages; parameters that are None stay out."""
        kept = {name: value for name, value in query.items() if value not in (None, "", False)}
        return base + path + ("?" + urlencode(kept) if kept else "")

    def here(**changes: Any) -> str:
        """This page with other query parameters; None takes one away. An empty one stays: it may mean everything."""
        query = {name: value for name, value in request.query_params.items() if name not in (NOTICE, "lang")}
        kept = {name: value for name, value in {**query, **changes}.items() if value is not None}
        return url(quote(_page_of(request))) + ("?" + urlencode(kept) if kept else "")

    units = {name: t(f"unit.{name}") for name in ("second", "minute", "hour", "day")}
    settings = request.app.state.settings
    is_bare = who is None or not who.may(Permission.ENTER)
    html = (
        environment()
        .get_template(template)
        .render(
            request=request,
            t=t,
            word=word,
            url=url,
            here=here,
            language=language,
            other_language="en" if language == "id" else "id",
            person=who,
            may=lambda name: who is not None and who.may(Permission[name]),
            menu=[(key, path) for key, path, asks in PAGES if who is not None and who.may(asks)],
            airflow=base.removesuffix(PREFIX),
            assets=asset_version(),
            style=style() if is_bare else None,
            token=tokens.sign(settings.secret, who) if who else "",
            now=datetime.now(UTC),
            age=lambda span: formats.age(span, units),
            since=lambda instant: formats.age(_since(instant), units),
            notice=_notice(request, language),
            tell_said=lambda pesan: telling.said(language, pesan),
            tell=lambda kept, limit=formats.MAX_SHOWN: telling.html(language, kept, limit),
            **values,
        )
    )
    answer = HTMLResponse(html, status)
    close_doors(answer, style_hash() if is_bare else "'self'")
    if request.query_params.get("lang") in words.LANGUAGES:
        answer.set_cookie(
            LANGUAGE_COOKIE, language, max_age=365 * 86400, path=base or "/", samesite="lax", httponly=True
        )
    return answer


def unchanged(stamp: str) -> Response:
    """Nothing that the browser shows would look different; only the moment of which it is true."""
    return Response(status_code=304, headers={"ETag": stamp, AS_OF: formats.wib(datetime.now(UTC))})


def problem_page(
    request: Request, status: int, why: str | None, number: str | None = None, refusal: Exception | None = None
) -> Response:
    """What a browser is told when something is not as it should be: a sentence, and at most a number. why: the key of
    the sentence; None, or one that has none: that of the status. refusal: an error of ours that says more."""
    keys = (f"problem.{why}", f"problem.{status}", "problem.other")
    key = next(key for key in keys if words.has(key))
    told = telling.of_error(refusal) if refusal is not None else None
    return page(request, "problem.html", status, code=status, title_key=key, told=told, number=number)


def back(request: Request, path: str, done: str, **query: Any) -> Response:
    """After a form: the page that shows its effect, and a sentence about it. 303, so that reloading sends nothing."""
    kept = {name: value for name, value in query.items() if value not in (None, "")}
    return RedirectResponse(base_of(request) + path + "?" + urlencode({**kept, NOTICE: done}), 303)


def base_of(request: Request) -> str:
    """Where the pages are mounted, with whatever path a proxy put in front."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def language_of(request: Request) -> Language:
    return words.language_of(request.query_params.get("lang"), request.cookies.get(LANGUAGE_COOKIE))


@lru_cache(maxsize=1)
def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for name in ("rupiah", "quantity", "whole", "wib", "day", "wall", "iso", "shown", "as_json"):
        found.filters[name] = getattr(formats, name)
    return found


@lru_cache(maxsize=1)
def asset_version() -> str:
    """Changes with the style and the script, so that a browser never mixes old and new."""
    digest = hashlib.sha256()
    for file in sorted((HERE / "static").iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=1)
def style() -> Markup:
    """The style of all pages, as an element of a page holds it."""
    return Markup((HERE / "static" / "style.css").read_text(encoding="utf-8"))  # our own file  # nosec B704


@lru_cache(maxsize=1)
def style_hash() -> str:
    """What a Content-Security-Policy calls exactly that style, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()}'"


def close_doors(answer: Response, styles: str = "'self'") -> Response:
    """Nothing from elsewhere, nothing inline but a style of ours that is named by its hash, no frame but Airflow's."""
    answer.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src {styles}; script-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
    )
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "same-origin"
    answer.headers["X-Frame-Options"] = "SAMEORIGIN"
    answer.headers.setdefault("Cache-Control", "no-store")
    return answer


def _page_of(request: Request) -> str:
    """The page that is shown: of the answer to a form, the one that has it, as its own address opens nothing."""
    base = base_of(request)
    path = request.url.path.removeprefix(base)
    while request.method not in ("GET", "HEAD") and path != "/":
        scope = {**request.scope, "method": "GET", "path": base + path}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            break
        path = path.rsplit("/", 1)[0] or "/"
    return path


def _notice(request: Request, language: Language) -> str | None:
    key = f"done.{request.query_params.get(NOTICE, '')}"
    return words.text(language, key) if words.has(key) else None


def _since(instant: datetime | None) -> timedelta | None:
    if instant is None:
        return None
    return datetime.now(UTC) - (instant if instant.tzinfo else instant.replace(tzinfo=UTC))
