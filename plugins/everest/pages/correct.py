"""Koreksi: the lines of a FAILED document are replaced from its page; another person's authorisation runs it again.

All problems are shown in place and nothing is stored before all of it is sound, as on Kirim opname; the old lines are
kept (`everest.intake.replace`). What a correction is and who may authorise it: `everest.intake.corrections`.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everest.intake import corrections, drafts
from everest.intake.cells import FileProblem
from everest.intake.check import domain_problems
from everest.intake.files import FileDocument, FileRefused, FileUnreadable
from everest.intake.template import COLUMNS
from everest.pages import downloads, store, view
from everest.pages.access import Permission
from everest.pages.approvals import number_in
from everest.pages.documents import QUERIES as DOCUMENTS
from everest.pages.documents import visible
from everest.pages.guard import GuardedRoute, needs, person
from everest.pages.turns import Crowd
from everest.pages.uploads import DECIMALS, PROBLEMS_SHOWN, TURNS, given_in, has_file, problems_file, read_upload
from everest.store.unit_of_work import Database, UnitOfWork

router = APIRouter(route_class=GuardedRoute)

FIELDS = ("gudang_kode", "tanggal_opname", "tanggal_posting", "snapshot_at")
"""Of the header; an empty one stays as it is."""
LINES_IN_FORM = 500
"""More of them are corrected in a file."""


@router.get("/documents/{shadow_id}/correct")
@needs(Permission.ACT)
def blank(request: Request, shadow_id: int) -> Response:
    """The lines as they stand, ready to be changed."""
    with store.transaction(request) as tx:
        doc = _correctable(request, tx, shadow_id)
        pasted = corrections.lines_as_sent(tx, doc["header_id"], LINES_IN_FORM)
        return _page(request, tx, doc, {"decimal": "id", "pasted": pasted or ""})


@router.get("/documents/{shadow_id}/sent.csv")
@needs(Permission.READ_OWN)
def sent(request: Request, shadow_id: int) -> Response:
    """All lines as they were sent, in the form in which they can be sent back."""
    with store.transaction(request) as tx:
        doc = visible(tx, person(request), shadow_id)
        text = corrections.lines_as_sent(tx, doc["header_id"] or 0) or ""
    headers = {"Content-Disposition": f'attachment; filename="baris-{shadow_id}.csv"'}
    return Response(text.encode("utf-8-sig"), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/documents/{shadow_id}/correct")
@needs(Permission.ACT)
def correct(request: Request, shadow_id: int) -> Response:
    """Everything wrong at once, and nothing stored; or the correction."""
    given, who = given_in(request, *FIELDS, "reason"), person(request).name
    with closing(store.database(request)) as database:
        with database.transaction() as tx:
            doc = _correctable(request, tx, shadow_id)
            if not given["reason"]:
                return _page(request, tx, doc, given, why="reason")
            if has_file(request) and _is_changed(tx, doc, given["pasted"]):
                return _page(request, tx, doc, given, why="both")
        try:
            with TURNS.one():
                found, problems = _judged(request, database, doc, given)
        except (FileUnreadable, Crowd) as trouble:
            return _unread(request, database, doc, given, trouble)
        with database.transaction() as tx:
            if found is None or problems:
                return _page(request, tx, doc, given, problems)
            done = corrections.correct(tx, found.submission, who, given["reason"])
    return view.back(request, f"/documents/{shadow_id}", "corrected_rerun" if done.rerun_as else "corrected")


@router.post("/documents/{shadow_id}/correct/problems.{form}")
@needs(Permission.ACT)
def problems(request: Request, shadow_id: int, form: downloads.Format) -> Response:
    """The same form again, for everything that is wrong with it as a file. Stores nothing, whatever it holds."""
    given = given_in(request, *FIELDS, "reason")
    with closing(store.database(request)) as database:
        with database.transaction() as tx:
            doc = _correctable(request, tx, shadow_id)
        try:
            with TURNS.one():
                _, found = _judged(request, database, doc, given)
                return problems_file(request, found, form, doc["nomer_nota"])
        except (FileUnreadable, Crowd) as trouble:
            return _unread(request, database, doc, given, trouble)


@router.post("/documents/{shadow_id}/authorise")
@needs(Permission.ACT)
def authorise(request: Request, shadow_id: int) -> Response:
    """Another person's authorisation of the correction that they saw: the document runs again in the same act."""
    seen = number_in(request, "correction")
    with store.transaction(request) as tx:
        doc = visible(tx, person(request), shadow_id)
        corrections.authorise(tx, doc["transaksi_id"], shadow_id, person(request).name, seen)
    return view.back(request, f"/documents/{shadow_id}", "authorised")


def _is_changed(tx: UnitOfWork, doc: dict[str, Any], pasted: str) -> bool:
    """Whether somebody wrote into the rows that the form began with, or that it did not begin with."""
    return pasted.split() not in ([], (corrections.lines_as_sent(tx, doc["header_id"], LINES_IN_FORM) or "").split())


def _judged(
    request: Request, database: Database, doc: dict[str, Any], given: dict[str, str]
) -> tuple[FileDocument | None, list[FileProblem]]:
    """The lines that were sent (None: they can't be made out) and everything that is wrong with them. Raises
    FileUnreadable."""
    header = {name: given[name] or None for name in FIELDS}
    header |= {"nomer_nota": doc["nomer_nota"], "transaksi_id": str(doc["transaksi_id"])}
    try:
        found = read_upload(request, given, header, is_correction=True)
    except FileRefused as refused:
        return None, list(refused.problems)
    with database.transaction() as tx:
        authority = drafts.authority_of(person(request).name)
        wrong = domain_problems(tx, found.submission, authority, doc["transaksi_id"])
    return found, [found.placed(one) for one in wrong]


def _correctable(request: Request, tx: UnitOfWork, shadow_id: int) -> dict[str, Any]:
    """Raises HTTPException 404 for what this person may not see or what has no lines, 409 for what did not fail."""
    doc = visible(tx, person(request), shadow_id)
    if doc["header_id"] is None:
        raise HTTPException(404, "missing")
    if doc["worker_status"] != "FAILED" or doc["posting_id"] is not None:
        raise HTTPException(409, "not_failed")
    return doc


def _unread(
    request: Request, database: Database, doc: dict[str, Any], given: dict[str, str], trouble: FileUnreadable | Crowd
) -> Response:
    with database.transaction() as tx:
        if isinstance(trouble, Crowd):
            return _page(request, tx, doc, given, why="crowd", status=503)
        return _page(request, tx, doc, given, why="unreadable")


def _page(
    request: Request,
    tx: UnitOfWork,
    doc: dict[str, Any],
    given: dict[str, str],
    problems: list[FileProblem] | None = None,
    why: str | None = None,
    status: int = 422,
) -> Response:
    stored = tx.books.document(doc["transaksi_id"])
    return view.page(
        request,
        "correct.html",
        status if problems or why else 200,
        doc=doc,
        snapshot_at=None if stored is None else stored.snapshot_at,
        given=given,
        problems=(problems or [])[:PROBLEMS_SHOWN],
        total=len(problems or []),
        why=why,
        warehouses=list(DOCUMENTS.warehouses(tx.conn)),
        decimals=DECIMALS,
        columns=";".join(COLUMNS),
        is_open_to_own=tx.settings.allow_self_approval,
    )
