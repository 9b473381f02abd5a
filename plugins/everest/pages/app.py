"""The pages as one FastAPI application, wired: who is logged in, where the books are, which routes there are."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from everest.pages import (
    approvals,
    correct,
    dead_letters,
    documents,
    drafts,
    health,
    previews,
    reports,
    submit,
    view,
    workflows,
)
from everest.pages.access import Permission
from everest.pages.guard import GuardedRoute, Login, needs
from everest.pages.settings import PageSettings

ASSETS = {"style.css": "text/css", "app.js": "text/javascript"}

router = APIRouter(route_class=GuardedRoute)


def create_app(settings: PageSettings, login: Login) -> FastAPI:
    """login: who sent a request, None for nobody."""
    # No generated documentation: it would be a route without a guard.
    app = FastAPI(title="everest", docs_url=None, redoc_url=None, openapi_url=None)
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.login = login
    for part in (
        router,
        correct.router,  # before the files of a document, whose path takes any name
        documents.router,
        previews.router,
        submit.router,
        drafts.router,
        reports.router,
        approvals.router,
        dead_letters.router,
        workflows.router,
        health.router,
    ):
        app.include_router(part)
    app.add_exception_handler(HTTPException, _refused)
    return app


@router.get("/")
@needs(Permission.ENTER)
def home(request: Request) -> Response:
    return documents.home(request)


@router.get("/assets/{version}/{name}")
@needs(Permission.ENTER)
def asset(request: Request, version: str, name: str) -> Response:
    """Style and script, from this package."""
    if name not in ASSETS:
        raise HTTPException(404, "missing")
    answer = FileResponse(view.HERE / "static" / name, media_type=ASSETS[name])
    if version == view.asset_version():
        answer.headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return answer


async def _refused(request: Request, error: Exception) -> Response:
    """An address that is none of ours: nothing about it is said to anybody."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    return view.problem_page(request, status, "missing" if status == 404 else "refused")
