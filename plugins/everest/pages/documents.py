"""Dokumen: the list, one document, and what people may do to it. Nothing is decided here; the rows and functions do."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from everest import attempts, preview, reports, reversal
from everest.errors import DatabaseError, EverestError
from everest.opname.count import check_document
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.pages import charts, downloads, params, second_look, store, view
from everest.pages.access import Permission, Person
from everest.pages.guard import GuardedRoute, form, needs, person
from everest.pages.settings import PageSettings
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from ingest_consumer import shadow

QUERIES = load_queries("pages_documents")
router = APIRouter(route_class=GuardedRoute)

STATUSES = ("PENDING", "PROCESSING", "WAITING", "FAILED", "COMPLETED", "CANCELLED")
PAGE = 50
LINES_PER_PAGE = 50
PROBLEMS_SHOWN = 200
HISTORY = 100
HINTS_SHOWN = 50
CHANGES_SHOWN = 50
NO_RIGHTS = frozenset({1142, 1143})
"""A preview writes before it rolls back; the pages' own account (sql/grants.sql) may not write the books."""
CHART_BARS = 10
PREVIEW_CARDS = 200
MAX_REASON = 500

TABS = ("summary", "lines", "journal", "card", "history")
SORTS = ("line", "item", "surplus", "shortage")
Part = Literal["lines", "journal", "card"]


def home(request: Request) -> Response:
    """Everybody begins with the documents, those who only submit with the form's own list."""
    return RedirectResponse(view.base_of(request) + "/documents", 303)


@router.get("/documents")
@needs(Permission.READ_OWN)
def documents(request: Request) -> Response:
    """Filters stand in the URL, so that a view can be shared; so does the place, so that it stays when news come."""
    settings: PageSettings = request.app.state.settings
    who = person(request)
    own = None if who.may(Permission.READ) else who.name
    stuck_before = (datetime.now(UTC) - settings.stuck_after).replace(tzinfo=None)
    is_stuck = params.choice(request, "stuck", ("1",)) is not None
    chosen = {
        "status": params.choice(request, "status", STATUSES),
        "nota": params.prefix(params.text(request, "nota")),
        "gudang_kode": params.text(request, "gudang"),
        "opname_since": params.day(request, "since"),
        "opname_until": params.day(request, "until"),
        "amount_min": params.amount(request, "min"),
        "amount_max": params.amount(request, "max"),
        "own": own,
        "stuck_before": stuck_before if is_stuck else None,
    }
    with store.transaction(request) as tx:
        before = params.number(request, "before", params.THE_END)
        found = list(QUERIES.page_of_documents(tx.conn, before_id=before, size=PAGE + 1, **chosen))
        rows = QUERIES.count_own_by_status(tx.conn, own=own) if own else QUERIES.count_by_status(tx.conn)
        counts = {row["worker_status"]: row for row in rows}
        stuck = 0 if own else QUERIES.count_stuck(tx.conn, stuck_before=stuck_before)
        warehouses = list(QUERIES.warehouses(tx.conn))
    return view.page(
        request,
        "documents.html",
        rows=found[:PAGE],
        older=found[PAGE - 1]["shadow_id"] if len(found) > PAGE else None,
        is_first=before == params.THE_END,
        counts=counts,
        statuses=STATUSES,
        stuck=stuck,
        is_stuck=is_stuck,
        stuck_minutes=int(settings.stuck_after.total_seconds() // 60),
        warehouses=warehouses,
        query=request.query_params,
        is_filtered=any(value is not None for name, value in chosen.items() if name != "own"),
        is_own=own is not None,
    )


@router.get("/documents/{shadow_id}")
@needs(Permission.READ_OWN)
def document(request: Request, shadow_id: int) -> Response:
    tab = params.choice(request, "tab", TABS) or "summary"
    with store.transaction(request) as tx:
        found = visible(tx, person(request), shadow_id)
        stamp = _stamp(request, found) if tab == "summary" else None
        if stamp is not None and request.headers.get("if-none-match") == stamp:
            return view.unchanged(stamp)
        values: dict[str, Any] = {"doc": found, "tab": tab, "tabs": TABS, "has_file": has_file}
        values |= _TAB[tab](request, tx, found)
    answer = view.page(request, "document.html", **values)
    if stamp is not None:
        answer.headers["ETag"] = stamp
    return answer


def _minute() -> int:
    return int(time.time()) // 60


def _stamp(request: Request, doc: dict[str, Any]) -> str | None:
    """Of what a summary would show. The page asks every few seconds, and hints and sums of 20,000 lines are work: as
    long as nobody touched the document they are drawn once a minute, for the ages. None while it is at work."""
    if doc["worker_status"] in ("PENDING", "PROCESSING"):
        return None
    who = person(request)
    changes = (doc["updated_at"], doc["worker_status"], doc["n"], doc["posting_id"], doc["dibalik_oleh_id"])
    seen = (who.name, sorted(role.value for role in who.roles), view.language_of(request), view.asset_version())
    return '"' + hashlib.sha256(repr((seen, _minute(), doc["shadow_id"], changes)).encode()).hexdigest()[:32] + '"'


@router.get("/documents/of/{transaksi_id}")
@needs(Permission.READ_OWN)
def document_of(request: Request, transaksi_id: int) -> Response:
    """By the number of the accounting document, for links that know no job."""
    with store.transaction(request) as tx:
        shadow_id = QUERIES.job_of(tx.conn, transaksi_id=transaksi_id)
        if shadow_id is None:
            raise HTTPException(404, "missing")
        visible(tx, person(request), shadow_id)
    return RedirectResponse(f"{view.base_of(request)}/documents/{shadow_id}", 303)


@router.post("/documents/{shadow_id}/rerun")
@needs(Permission.ACT)
def rerun(request: Request, shadow_id: int) -> Response:
    """The one primitive behind every rerun: the next DAG run is announced at the pointer."""
    reason = str(form(request).get("reason", "")).strip()[:MAX_REASON] or None
    with store.transaction(request) as tx:
        visible(tx, person(request), shadow_id)
        shadow.rerun(tx.conn, shadow_id, person(request).name, reason)
    return view.back(request, f"/documents/{shadow_id}", "rerun")


@router.post("/documents/{shadow_id}/preview")
@needs(Permission.ACT)
def look_ahead(request: Request, shadow_id: int) -> Response:
    """What posting it would do now. A POST, because it takes a posting's locks; nothing stays of it."""
    with closing(store.database(request)) as found:
        with found.transaction() as tx:
            doc = visible(tx, person(request), shadow_id)
        try:
            told = preview.preview(found.transaction, f"#{shadow_id}")
        except DatabaseError as refused:
            if refused.number not in NO_RIGHTS:
                raise
            with found.transaction() as tx:
                return _instead_of_a_preview(request, tx, doc)
    return view.page(request, "preview.html", doc=doc, told=told, cards_shown=PREVIEW_CARDS)


def _instead_of_a_preview(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> Response:
    """What an account that only reads the books can tell about a posting to come: what the rules of posting object to.
    Who may write them gets the whole preview from the command that is named here."""
    header = tx.books.document(doc["transaksi_id"])
    problems = [] if header is None else check_document(tx.books, header, tx.books.lines(header))
    command = f"python -m everest preview '#{doc['shadow_id']}'"
    shown = problems[:PROBLEMS_SHOWN]
    return view.page(
        request, "preview_instead.html", doc=doc, command=command, problems=shown, total=len(problems), header=header
    )


@router.post("/documents/{shadow_id}/reverse")
@needs(Permission.ACT)
def reverse(request: Request, shadow_id: int) -> Response:
    """Sends the reversal on its way, and goes to it."""
    with store.transaction(request) as tx:
        visible(tx, person(request), shadow_id)
        asked = reversal.request(tx, f"#{shadow_id}", person(request).name, str(form(request).get("reason", "")))
    return view.back(request, f"/documents/{asked.shadow_id}", "reversed")


@router.get("/documents/{shadow_id}/{part}.{form}")
@needs(Permission.READ_OWN)
def part_file(request: Request, shadow_id: int, part: Part, form: downloads.Format) -> Response:
    """All lines of the document with their variance, or all of its journal or stock card, as a spreadsheet opens it.
    Of this document and no other: another one may have been posted under its nota."""
    with store.transaction(request) as tx:
        doc = visible(tx, person(request), shadow_id)
    if not has_file(doc, part):
        raise HTTPException(404, "missing")
    filters, name = reports.Filters(transaksi_id=doc["transaksi_id"]), f"{part}-{doc['nomer_nota']}"
    return downloads.download(request, f"document-{part}", filters, form, view.language_of(request), name)


def has_file(doc: dict[str, Any], part: str) -> bool:
    """Whether there is anything to put into it: lines as soon as they were sent, books when they are posted. A reversal
    has its lines with its posting."""
    return doc["posting_id"] is not None or (part == "lines" and doc["header_id"] is not None)


def visible(tx: UnitOfWork, who: Person, shadow_id: int) -> dict[str, Any]:
    """A document that this person may see; what they may not see does not exist for them. Raises HTTPException 404."""
    row = QUERIES.document(tx.conn, shadow_id=shadow_id)
    if row is None or not (who.may(Permission.READ) or row["dibuat_oleh"] == who.name):
        raise HTTPException(404, "missing")
    response = _decoded(row["response"])
    row["message"] = str(response.get("message") or row["error"] or "")
    errors = response.get("errors")
    row["problems"] = [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    row["facts"] = response
    return dict(row)


def _decoded(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# -------------------------------------------------------------------------------------------------------- the tabs


def _summary(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    sums = QUERIES.value_summary(tx.conn, transaksi_id=doc["transaksi_id"])
    lines = {"transaksi_id": doc["transaksi_id"], "search": None, "only_variance": True, "size": CHART_BARS, "skip": 0}
    surplus = [row for row in QUERIES.values_by_surplus(tx.conn, **lines) if row["nilai_debet"]]
    shortage = [row for row in QUERIES.values_by_shortage(tx.conn, **lines) if row["nilai_kredit"]]
    address = f"{view.base_of(request)}/documents/{doc['shadow_id']}?tab=lines&search="
    return {
        "sums": sums,
        "task": _task_of(doc["current_step"]),
        "staged": QUERIES.count_staged(tx.conn, header_id=doc["header_id"] or 0, search=None),
        "chart": charts.largest(surplus, shortage, address, view.language_of(request)),
        "problems": doc["problems"][:PROBLEMS_SHOWN],
        "smells": second_look.smells(doc, sums),
        "hints": (found := second_look.line_hints(tx, doc))[:HINTS_SHOWN],
        "hint_count": len(found),
    }


def _task_of(step: str | None) -> str | None:
    """The Airflow task whose log tells about a document's current step."""
    for definition in (POST_OPNAME, REVERSE_OPNAME):
        if step in [one.name for one in definition.steps]:
            return definition.task_of(str(step))
    return step


def _lines(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    """Computed lines; before they are computed, the lines as they were sent."""
    sort = params.choice(request, "sort", SORTS) or "line"
    skip = params.number(request, "skip", 0, most=1_000_000)
    search = params.containing(params.text(request, "search"))
    only_variance = params.choice(request, "variance", ("1",)) is not None
    wanted: dict[str, Any] = {"transaksi_id": doc["transaksi_id"], "search": search, "only_variance": only_variance}
    is_computed = QUERIES.count_values(tx.conn, transaksi_id=doc["transaksi_id"], search=None, only_variance=False) > 0
    if is_computed:
        total = QUERIES.count_values(tx.conn, **wanted)
        query = getattr(QUERIES, f"values_by_{sort}")
        rows = list(query(tx.conn, size=LINES_PER_PAGE, skip=skip, **wanted))
    else:
        staged = {"header_id": doc["header_id"] or 0, "search": search}
        total = QUERIES.count_staged(tx.conn, **staged)
        rows = list(QUERIES.staged_lines(tx.conn, size=LINES_PER_PAGE, skip=skip, **staged))
    return {
        "lines": rows,
        "total": total,
        "skip": skip,
        "size": LINES_PER_PAGE,
        "sort": sort,
        "sorts": SORTS if is_computed else ("line",),
        "is_computed": is_computed,
        "query": request.query_params,
        "flawed": {one.get("baris") for one in doc["problems"]},
    }


def _journal(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    return {"journal": list(QUERIES.journal_of(tx.conn, posting_id=doc["posting_id"] or 0))}


def _card(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    after = params.number(request, "after", 0)
    rows = list(
        QUERIES.stock_card_of(tx.conn, posting_id=doc["posting_id"] or 0, after_id=after, size=LINES_PER_PAGE + 1)
    )
    more = rows[LINES_PER_PAGE - 1]["id"] if len(rows) > LINES_PER_PAGE else None
    return {"card": rows[:LINES_PER_PAGE], "more": more, "after": after}


def _history(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    """What happened, newest first: events of the run, people's actions, attempts that ended."""
    told: list[dict[str, Any]] = []
    if doc["workflow_id"] is not None:
        for row in QUERIES.events_of(tx.conn, workflow_id=doc["workflow_id"], size=HISTORY):
            told.append({"at": row["created_at"], "kind": "event", "what": row["event"], **row})
    for row in QUERIES.audit_of(tx.conn, transaksi_id=doc["transaksi_id"], size=HISTORY):
        told.append({"at": row["created_at"], "kind": "action", "what": row["action"], **row})
    told.sort(key=lambda one: one["at"], reverse=True)
    try:
        tried = attempts.history(tx, f"#{doc['shadow_id']}")
    except EverestError as refusal:
        if refusal.code >= 500:
            raise
        tried = None  # a job whose document was never stored
    return {"told": told[:HISTORY], "tried": tried, "most": CHANGES_SHOWN}


_TAB = {"summary": _summary, "lines": _lines, "journal": _journal, "card": _card, "history": _history}
