"""Pratinjau: the rows that posting a document or a draft would write, before anybody reruns, approves or authorises it.

Read anew for each page of the stock card: it is true for the moment at which it was drawn. One of 20,000 lines takes
0.3 s of CPU, a connection and 15 MB, and the pages share one process with Airflow's: no more than two are at work, the
others wait their turn, and not for long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everest import preview
from everest.intake.drafts import FIRST_LEVEL
from everest.pages import documents, drafts, params, store, view
from everest.pages.access import Permission
from everest.pages.document_tabs import PROBLEMS_SHOWN
from everest.pages.guard import GuardedRoute, needs, person
from everest.pages.turns import Crowd, Turns
from everest.preview import Preview

router = APIRouter(route_class=GuardedRoute)

CARDS_SHOWN = 100
"""Stock-card rows of one page."""

TURNS = Turns(at_once=2, wait_s=15)


@router.get("/documents/{shadow_id}/preview")
@needs(Permission.READ_OWN)
def of_document(request: Request, shadow_id: int) -> Response:
    """Whoever sees the document may look; a reversal has one as well."""
    with _turn(), store.snapshot(request) as tx:
        documents.visible(tx, person(request), shadow_id)
        told = preview.preview(tx, f"#{shadow_id}")
    return _page(request, told, f"/documents/{shadow_id}")


@router.get("/drafts/{transaksi_id}/preview")
@needs(Permission.READ_OWN)
def of_draft(request: Request, transaksi_id: int) -> Response:
    """As if another person authorised it now. Raises HTTPException 404 for what is no draft (any more)."""
    with _turn(), store.snapshot(request) as tx:
        found = drafts.visible(tx, person(request), transaksi_id)
        if found["otorisasi_level"] != FIRST_LEVEL:
            raise HTTPException(404, "missing")
        told = preview.of_draft(tx, transaksi_id)
    return _page(request, told, f"/drafts/{transaksi_id}")


@contextmanager
def _turn() -> Iterator[None]:
    """Raises HTTPException 503 when nobody else gets ready."""
    try:
        with TURNS.one():
            yield
    except Crowd:
        raise HTTPException(503, "crowd") from None


def _page(request: Request, told: Preview, back: str) -> Response:
    """back: the page that leads here."""
    total = len(told.stock_card)
    skip = min(params.number(request, "skip", 0, most=1_000_000), max(total - 1, 0) // CARDS_SHOWN * CARDS_SHOWN)
    return view.page(
        request,
        "preview.html",
        told=told,
        back=back,
        card=told.stock_card[skip : skip + CARDS_SHOWN],
        skip=skip,
        size=CARDS_SHOWN,
        total=total,
        shown=PROBLEMS_SHOWN,
    )
