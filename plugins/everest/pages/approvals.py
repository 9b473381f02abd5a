"""Persetujuan: what waits for a person, with the evidence, and the answer: documents, then runs of other modules."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from everest import approvals
from everest.pages import store, view
from everest.pages.access import Permission
from everest.pages.dead_letters import QUERIES
from everest.pages.guard import GuardedRoute, form, needs, person
from everest.workflow import codec

router = APIRouter(route_class=GuardedRoute)

SHOWN = 100
MOVEMENTS_SHOWN = 50


@router.get("/approvals")
@needs(Permission.READ)
def waiting(request: Request) -> Response:
    with store.transaction(request) as tx:
        documents = approvals.pending(tx, SHOWN)
        others = [_told(row) for row in QUERIES.waiting_workflows(tx.conn, size=SHOWN)]
    who = person(request).name.casefold().strip()
    barred = {one.shadow_id for one in documents if who in {name.casefold().strip() for name in one.not_by}}
    return view.page(
        request, "approvals.html", documents=documents, others=others, barred=barred, movements_shown=MOVEMENTS_SHOWN
    )


@router.post("/approvals/{shadow_id}/approve")
@needs(Permission.ACT)
def approve(request: Request, shadow_id: int) -> Response:
    """Yes to exactly the question that this person saw."""
    with store.transaction(request) as tx:
        approvals.approve(tx, f"#{shadow_id}", person(request).name, *_answer(request))
    return view.back(request, f"/documents/{shadow_id}", "approved")


@router.post("/approvals/{shadow_id}/reject")
@needs(Permission.ACT)
def reject(request: Request, shadow_id: int) -> Response:
    """No: the document fails with 403."""
    with store.transaction(request) as tx:
        approvals.reject(tx, f"#{shadow_id}", person(request).name, *_answer(request))
    return view.back(request, f"/documents/{shadow_id}", "rejected")


def _answer(request: Request) -> tuple[str, int | None]:
    return str(form(request).get("reason", "")), sequence_of(request)


def sequence_of(request: Request) -> int | None:
    """The number of the question that the form was about. One that is none is no question of ours."""
    given = str(form(request).get("sequence", ""))
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 10 else -1


def _told(row: dict[str, Any]) -> dict[str, Any]:
    found = codec.loads(row["waiting"]) or {}
    return {**row, "waiting": found, "kind": found.get("kind"), "sequence": found.get("sequence")}
