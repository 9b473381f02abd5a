"""Dokumen: the list, one document, and what people may do to it. Nothing is decided here; the rows and functions do."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from everest import approvals, reports, reversal
from everest.intake.lookup import answer_in, errors_in
from everest.pages import actions, document_tabs, downloads, lists, params, store, view
from everest.pages.access import Permission, Person
from everest.pages.guard import GuardedRoute, form, needs, person
from everest.pages.settings import PageSettings
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from ingest_consumer import by_hand

QUERIES = document_tabs.QUERIES
DRAFTS = load_queries("drafts")
router = APIRouter(route_class=GuardedRoute)

STATUSES = ("PENDING", "PROCESSING", "WAITING", "FAILED", "COMPLETED", "CANCELLED")
FILTERS = ("status", "stuck", "nota", "gudang", "since", "until", "min", "max")
PAGE = 50
MAX_REASON = 500

TABS = tuple(document_tabs.TABS)
STAMPED = ("summary", "lines", "journal", "card")
"""Tabs that look the same as long as nobody touched the document."""
Part = Literal["lines", "journal", "card", "history", "problems"]


def home(request: Request) -> Response:
    """Everybody begins with the documents, those who only submit with the form's own list."""
    return RedirectResponse(view.base_of(request) + "/documents", 303)


@router.get("/documents")
@needs(Permission.READ_OWN)
def documents(request: Request) -> Response:
    """Filters stand in the URL, so that a view can be shared; so does the place, so that it stays when news come. The
    numbers on the cards are of the same filters: choosing one shows so many documents."""
    settings: PageSettings = request.app.state.settings
    who = person(request)
    stuck_before = _stuck_before(settings)
    filters, narrowed = filters_of(request, who), narrowed_by(request, stuck_before)
    before = params.number(request, "before", params.THE_END)
    is_filtered = any(value is not None for value in filters.values())
    with store.transaction(request) as tx:
        if is_filtered:
            rows = list(QUERIES.count_found_by_status(tx.conn, stuck_before=stuck_before, **filters))
            stuck = sum(int(row["stuck"]) for row in rows)
        else:
            others = {row["worker_status"]: row["n"] for row in QUERIES.count_others_by_status(tx.conn)}
            rows = [
                {**row, "n": row["n"] - others.get(row["worker_status"], 0)} for row in QUERIES.count_by_status(tx.conn)
            ]
            untouched = QUERIES.oldest_untouched(tx.conn)
            for row in rows:
                if row["worker_status"] == "PENDING" and untouched is not None:
                    row["oldest_at"] = min(row["oldest_at"] or untouched, untouched)
            stuck = QUERIES.count_stuck(tx.conn, stuck_before=stuck_before)
        found = []
        if rows:  # nothing is not looked for a second time
            found = list(QUERIES.page_of_documents(tx.conn, before_id=before, size=PAGE + 1, **filters, **narrowed))
        warehouses = list(QUERIES.warehouses(tx.conn))
        waiting = DRAFTS.count_open_drafts(tx.conn, own=filters["own"])
    ignored = params.ignored(request, {"min": filters["amount_min"], "max": filters["amount_max"]})
    ignored += params.ignored(request, {"since": filters["opname_since"], "until": filters["opname_until"]})
    ranges = {
        "report.empty_range": ("opname_since", "opname_until"),
        "documents.empty_amounts": ("amount_min", "amount_max"),
    }
    return view.page(
        request,
        "documents.html",
        rows=found[:PAGE],
        older=found[PAGE - 1]["shadow_id"] if len(found) > PAGE else None,
        is_first=before == params.THE_END,
        counts={row["worker_status"]: row for row in rows},
        drafts=waiting,
        statuses=STATUSES,
        stuck=stuck,
        is_stuck=narrowed["stuck_before"] is not None,
        stuck_minutes=int(settings.stuck_after.total_seconds() // 60),
        warehouses=warehouses,
        query=request.query_params,
        ignored=ignored,
        backwards=[key for key, (low, high) in ranges.items() if params.is_backwards(filters[low], filters[high])],
        is_filtered=bool(ignored)
        or any(value is not None for name, value in (filters | narrowed).items() if name != "own"),
        is_own=filters["own"] is not None,
        listed={name: value for name, value in request.query_params.items() if name in FILTERS},
    )


def filters_of(request: Request, who: Person) -> dict[str, Any]:
    """Which documents, whatever became of them. own: those who may see no others see their own."""
    return {
        "nota": params.prefix(params.text(request, "nota")),
        "gudang_kode": params.text(request, "gudang"),
        "opname_since": params.day(request, "since"),
        "opname_until": params.day(request, "until"),
        "amount_min": params.amount(request, "min"),
        "amount_max": params.amount(request, "max"),
        "own": None if who.may(Permission.READ) else who.name,
    }


def narrowed_by(request: Request, stuck_before: datetime) -> dict[str, Any]:
    """Which of them: what the cards choose."""
    is_stuck = params.choice(request, "stuck", ("1",)) is not None
    return {
        "status": params.choice(request, "status", STATUSES),
        "stuck_before": stuck_before if is_stuck else None,
    }


def _stuck_before(settings: PageSettings) -> datetime:
    return (datetime.now(UTC) - settings.stuck_after).replace(tzinfo=None)


@router.get("/documents.{form}")
@needs(Permission.READ_OWN)
def documents_file(request: Request, form: downloads.Format) -> Response:
    """The list with the same filters, whole, as a spreadsheet opens it."""
    wanted = filters_of(request, person(request))
    wanted |= narrowed_by(request, _stuck_before(request.app.state.settings))
    with store.transaction(request) as tx:
        rows = list(QUERIES.page_of_documents(tx.conn, before_id=params.THE_END, size=lists.MAX_ROWS + 1, **wanted))
    return downloads.as_file(
        lists.documents(lists.bounded(rows), view.language_of(request)), form, view.language_of(request), "documents"
    )


@router.get("/documents/{shadow_id}")
@needs(Permission.READ_OWN)
def document(request: Request, shadow_id: int) -> Response:
    tab = params.choice(request, "tab", TABS) or "summary"
    with store.transaction(request) as tx:
        who = person(request)
        found = visible(tx, who, shadow_id)
        allowed = actions.of_document(tx, found, who)
        stamp = _stamp(request, found, allowed) if tab in STAMPED else None
        if stamp is not None and request.headers.get("if-none-match") == stamp:
            return view.unchanged(stamp)
        found["is_computed"] = _is_computed(tx, found)
        values: dict[str, Any] = {"doc": found, "tab": tab, "tabs": TABS, "has_file": has_file, "allowed": allowed}
        values |= document_tabs.TABS[tab](request, tx, found)
        values["question"] = approvals.of_job(tx, shadow_id) if who.may(Permission.READ) else None
    answer = view.page(request, "document.html", **values)
    if stamp is not None:
        answer.headers["ETag"] = stamp
    return answer


def _is_computed(tx: UnitOfWork, doc: dict[str, Any]) -> bool:
    """Whether the computed lines are those of the document as it stands. One that was corrected has those of the
    attempt before, until the next one begins."""
    if doc["posting_id"] is not None or not doc["values_count"]:
        return bool(doc["values_count"])
    return not QUERIES.lines_changed(tx.conn, transaksi_id=doc["transaksi_id"], header_id=doc["header_id"] or 0)


def _minute() -> int:
    return int(time.time()) // 60


def _stamp(request: Request, doc: dict[str, Any], allowed: actions.Actions) -> str | None:
    """Of what this address would show. The page asks every few seconds, and hints and sums of 20,000 lines are work: as
    long as nobody touched the document they are drawn once a minute, for the ages. None while it is at work."""
    if doc["worker_status"] in ("PENDING", "PROCESSING"):
        return None
    who = person(request)
    changes = (doc["updated_at"], doc["worker_status"], doc["n"], doc["posting_id"], doc["dibalik_oleh_id"])
    buttons = (sorted(allowed.offered), sorted(allowed.why_not.items()), allowed.undoing, allowed.correction)
    seen = (who.name, sorted(role.value for role in who.roles), view.language_of(request), view.asset_version())
    told = (seen, _minute(), doc["shadow_id"], str(request.query_params), changes, buttons)
    return '"' + hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:32] + '"'


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
        by_hand.rerun(tx.conn, shadow_id, person(request).name, reason)
    return view.back(request, f"/documents/{shadow_id}", "rerun")


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
    """All lines of the document with their variance, or all of its journal, stock card, history or problems, as a
    spreadsheet opens it. Of this document and no other: another one may have been posted under its nota."""
    with store.transaction(request) as tx:
        doc = visible(tx, person(request), shadow_id)
        told = document_tabs.told(tx, doc, document_tabs.HISTORY_DEPTH) if part == "history" else []
    if not has_file(doc, part):
        raise HTTPException(404, "missing")
    language, name = view.language_of(request), f"{part}-{doc['nomer_nota']}"
    if part == "problems":
        return downloads.as_file(lists.problems(doc["problems"], language), form, language, name)
    if part == "history":
        return downloads.as_file(lists.history(told, language), form, language, name)
    filters = reports.Filters(transaksi_id=doc["transaksi_id"])
    return downloads.download(request, f"document-{part}", filters, form, language, name)


def has_file(doc: dict[str, Any], part: str) -> bool:
    """Whether there is anything to put into it: lines as soon as they were sent, books when they are posted. A reversal
    has its lines with its posting."""
    if part in ("problems", "history"):
        return part == "history" or bool(doc["problems"])
    return doc["posting_id"] is not None or (part == "lines" and doc["header_id"] is not None)


def visible(tx: UnitOfWork, who: Person, shadow_id: int) -> dict[str, Any]:
    """A document that this person may see; what they may not see does not exist for them. Raises HTTPException 404."""
    row = QUERIES.document(tx.conn, shadow_id=shadow_id)
    if row is None or not (who.may(Permission.READ) or who.is_called(row["dibuat_oleh"])):
        raise HTTPException(404, "missing")
    response = answer_in(row["response"])
    row["message"] = str(response.get("message") or row["error"] or "")
    row["told"] = {**response, "message": row["message"]}
    row["problems"] = errors_in(response)
    row["facts"] = response
    return dict(row)
