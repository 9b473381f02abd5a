"""Draf: counts that wait for a second person, what authorising each would send to the books, and the two answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everest.intake import drafts, weighing
from everest.pages import params, second_look, store, view
from everest.pages.access import Permission, Person
from everest.pages.guard import GuardedRoute, form, needs, person
from everest.reports.arithmetic import computed
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork

router = APIRouter(route_class=GuardedRoute)

ACCOUNTS = load_queries("preview")

PAGE = 50
LINES_SHOWN = 100
SAID = 200
"""Problems, reasons or hints of one draft on its page."""
SORTS = ("line", "item", "surplus", "shortage")


@router.get("/drafts")
@needs(Permission.READ_OWN)
def waiting(request: Request) -> Response:
    """Those who may only submit see their own."""
    after = params.number(request, "after", 0)
    with store.transaction(request) as tx:
        found = page_of_drafts(tx, person(request), PAGE, after)
    return view.page(request, "drafts.html", **found, after=after)


def page_of_drafts(tx: UnitOfWork, who: Person, size: int, after_id: int = 0) -> dict[str, Any]:
    """What a list of them shows: the drafts that this person may see, how many there are, and where the list goes on.
    Whose they are is answered here, so that pages and forms say the same."""
    own = None if who.may(Permission.READ) else who.name
    rows = list(drafts.QUERIES.open_drafts(tx.conn, own=own, after_id=after_id, size=size + 1))
    return {
        "drafts": [{**row, "is_own": who.is_called(row["dibuat_oleh"])} for row in rows[:size]],
        "drafts_waiting": drafts.QUERIES.count_open_drafts(tx.conn, own=own)["n"],
        "more": rows[size - 1]["id"] if len(rows) > size else None,
        "is_open_to_own": tx.settings.allow_self_approval,
    }


@router.get("/drafts/{transaksi_id}")
@needs(Permission.READ_OWN)
def draft(request: Request, transaksi_id: int) -> Response:
    """What a second person is asked to authorise: the money, what speaks against it, and all of its lines."""
    who, skip = person(request), params.number(request, "skip", 0, most=1_000_000)
    sort = params.choice(request, "sort", SORTS) or "line"
    only_variance = params.choice(request, "variance", ("1",)) is not None
    with store.transaction(request) as tx:
        found = visible(tx, who, transaksi_id)
        wanted = {
            "header_id": found["id"],
            "search": params.containing(params.text(request, "search")),
            "only_variance": only_variance,
        }
        rows = list(drafts.QUERIES.draft_lines(tx.conn, sort=sort, size=LINES_SHOWN, skip=skip, **wanted))
        total = drafts.QUERIES.count_draft_lines(tx.conn, **wanted)["baris"]
        everything = {"header_id": found["id"], "search": None, "only_variance": False}
        counted = drafts.QUERIES.count_draft_lines(tx.conn, **everything)
        is_waiting = found["otorisasi_level"] == drafts.FIRST_LEVEL
        looked = {**found, "posting_id": None, "header_id": found["id"], "diotorisasi_oleh": None}
        weighed = weighing.weigh(tx, transaksi_id, who.name) if is_waiting else None
        codes = sorted({row.kode_akun for row in weighed.journal}) if weighed else []
        names = ACCOUNTS.account_names(tx.conn, codes=codes) if codes else ()
        values: dict[str, Any] = {
            "weighed": weighed,
            "account_names": {row["kode_akun"]: row["nama"] for row in names},
            "smells": second_look.smells(looked, counted) if is_waiting else [],
            "hints": second_look.line_hints(tx, looked) if is_waiting else [],
            "is_open_to_own": tx.settings.allow_self_approval,
        }
    return view.page(
        request,
        "draft.html",
        draft={**found, "is_own": who.is_called(found["dibuat_oleh"])},
        is_waiting=is_waiting,
        counted=counted,
        lines=[{**row, **computed(row["qty_sistem"], row["qty_fisik"], row["harga_pokok"])._asdict()} for row in rows],
        total=total,
        skip=skip,
        size=LINES_SHOWN,
        sort=sort,
        sorts=SORTS,
        said=SAID,
        query=request.query_params,
        **values,
    )


@router.post("/drafts/{transaksi_id}/authorise")
@needs(Permission.ACT)
def authorise(request: Request, transaksi_id: int) -> Response:
    with store.transaction(request) as tx:
        sent = drafts.authorise(tx, transaksi_id, person(request).name)
    return view.back(request, f"/documents/{sent.shadow_id}", "authorised")


@router.post("/drafts/{transaksi_id}/withdraw")
@needs(Permission.SUBMIT)
def withdraw(request: Request, transaksi_id: int) -> Response:
    """By whoever submitted it, or by finance."""
    who = person(request)
    with store.transaction(request) as tx:
        found = drafts.QUERIES.draft(tx.conn, transaksi_id=transaksi_id)
        if found is None or not (who.may(Permission.ACT) or who.is_called(found["dibuat_oleh"])):
            raise HTTPException(404, "missing")
        drafts.withdraw(tx, transaksi_id, who.name, str(form(request).get("reason", "")))
    return view.back(request, "/drafts", "withdrawn")


def visible(tx: UnitOfWork, who: Person, transaksi_id: int) -> dict[str, Any]:
    """What somebody may not see does not exist for them. Raises HTTPException 404."""
    found: dict[str, Any] | None = drafts.QUERIES.draft(tx.conn, transaksi_id=transaksi_id)
    if found is None or not (who.may(Permission.READ) or who.is_called(found["dibuat_oleh"])):
        raise HTTPException(404, "missing")
    return found
