"""Persetujuan: what waits for a person, with the evidence, and the answer: documents, then runs of other modules."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from everest import approvals
from everest.pages import drafts, params, questions, store, view
from everest.pages.access import Permission
from everest.pages.guard import GuardedRoute, form, needs, person

router = APIRouter(route_class=GuardedRoute)

PAGE = 50
"""Documents, and workflows, on one page."""
DRAFTS_SHOWN = 20
REASONS_SHOWN = 20
MOVEMENTS_SHOWN = 50
"""Here; the document's own page has all that are kept."""


@router.get("/approvals")
@needs(Permission.READ)
def waiting(request: Request) -> Response:
    """Drafts for their second person, documents, workflows: each with the person's own part in it."""
    after, others_after = params.number(request, "after", 0), params.number(request, "others", 0)
    with store.transaction(request) as tx:
        documents, more = approvals.page(tx, PAGE, after)
        found = drafts.page_of_drafts(tx, person(request), DRAFTS_SHOWN)
        others, more_others = questions.page_of_questions(tx, PAGE, others_after)
    return view.page(
        request,
        "approvals.html",
        documents=documents,
        more_documents=more,
        after=after,
        others=[one for one in others if one.kind in questions.OF_PEOPLE],
        programs=[one for one in others if one.kind not in questions.OF_PEOPLE],
        more_others=more_others,
        others_after=others_after,
        flaws=None,
        given=None,
        reasons_shown=REASONS_SHOWN,
        movements_shown=MOVEMENTS_SHOWN,
        **found,
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
    return number_in(request, "sequence")


def number_in(request: Request, name: str) -> int:
    """Of what the form was about; -1, which nothing has, for none."""
    given = str(form(request).get(name, ""))
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 19 else -1
