"""Kirim opname: a file or pasted rows become a draft, or the list of everything that is wrong with them.

Nothing is stored before all of it is sound. The form carries a token of its own, so a double click is one draft. What
is stored waits for another person (`pages.drafts`).
"""

from __future__ import annotations

import secrets
from contextlib import closing

from fastapi import APIRouter, Request
from starlette.responses import Response

from everest.intake import drafts
from everest.intake.cells import FileProblem
from everest.intake.check import domain_problems
from everest.intake.files import FileDocument, FileRefused, FileUnreadable
from everest.intake.template import COLUMNS, template_csv, template_xlsx
from everest.pages import downloads, store, view
from everest.pages.access import Permission
from everest.pages.documents import QUERIES as DOCUMENTS
from everest.pages.guard import GuardedRoute, needs, person
from everest.pages.turns import Crowd
from everest.pages.uploads import DECIMALS, PROBLEMS_SHOWN, TURNS, given_in, has_file, problems_file, read_upload
from everest.store.unit_of_work import Database

router = APIRouter(route_class=GuardedRoute)

FIELDS = ("nomer_nota", "gudang_kode", "tanggal_opname", "tanggal_posting")


@router.get("/submit")
@needs(Permission.SUBMIT)
def blank(request: Request) -> Response:
    return _page(request, {"submit_token": secrets.token_hex(16), "decimal": "id"})


@router.get("/submit/template.{form}")
@needs(Permission.SUBMIT)
def template(request: Request, form: downloads.Format) -> Response:
    """The titles alone; in the workbook the columns of codes are text already."""
    content = template_csv() if form == "csv" else template_xlsx()
    headers = {"Content-Disposition": f'attachment; filename="opname.{form}"'}
    return Response(content, media_type=downloads.TYPES[form], headers=headers)


@router.post("/submit")
@needs(Permission.SUBMIT)
def submit(request: Request) -> Response:
    """Everything wrong at once, and nothing stored; or a draft."""
    given, who = given_in(request, *FIELDS, "submit_token"), person(request).name
    if has_file(request) and given["pasted"].strip():
        return _page(request, given, why="both")
    with closing(store.database(request)) as database:
        try:
            with TURNS.one():
                found, problems = _judged(request, database, given)
        except Crowd:
            return _page(request, given, why="crowd", status=503)
        except FileUnreadable:
            return _page(request, given, why="unreadable")
        if found is None or problems:
            return _page(request, given, problems)
        transaksi_id = drafts.keep(database.transaction, found.submission, who)
    return view.back(request, "/drafts", "kept", new=transaksi_id)


@router.post("/submit/problems.{form}")
@needs(Permission.SUBMIT)
def problems(request: Request, form: downloads.Format) -> Response:
    """The same form again, for everything that is wrong with it as a file. Stores nothing, whatever it holds."""
    given = given_in(request, *FIELDS, "submit_token")
    with closing(store.database(request)) as database:
        try:
            with TURNS.one():
                _, found = _judged(request, database, given)
                return problems_file(request, found, form, given["nomer_nota"])
        except Crowd:
            return _page(request, given, why="crowd", status=503)
        except FileUnreadable:
            return _page(request, given, why="unreadable")


def _judged(
    request: Request, database: Database, given: dict[str, str]
) -> tuple[FileDocument | None, list[FileProblem]]:
    """What was sent (None: it can't be made out) and everything that is wrong with it. Raises FileUnreadable."""
    try:
        found = _read(request, given)
    except FileRefused as refused:
        return None, list(refused.problems)
    with database.transaction() as tx:
        wrong = domain_problems(tx, found.submission, drafts.authority_of(person(request).name))
    return found, [found.placed(one) for one in wrong]


def _read(request: Request, given: dict[str, str]) -> FileDocument:
    token = given["submit_token"][:64]
    header: dict[str, str | None] = {name: given[name] or None for name in FIELDS}
    # A token of the form's own: the same content sent on purpose a second time is another matter than a double click.
    header["submit_token"] = f"halaman-{token}" if token else None
    return read_upload(request, given, header)


def _page(
    request: Request,
    given: dict[str, str],
    problems: list[FileProblem] | None = None,
    why: str | None = None,
    status: int = 422,
) -> Response:
    with store.transaction(request) as tx:
        warehouses = list(DOCUMENTS.warehouses(tx.conn))
    return view.page(
        request,
        "submit.html",
        status if problems or why else 200,
        given=given,
        problems=(problems or [])[:PROBLEMS_SHOWN],
        total=len(problems or []),
        why=why,
        warehouses=warehouses,
        decimals=DECIMALS,
        columns=";".join(COLUMNS),
    )
