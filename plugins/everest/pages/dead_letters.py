"""Surat mati: what failed with a fault, why, and the two ways out. No AMQP is spoken here: a row tells of its letter.

Running a document again, or dropping it, changes its row in one transaction; the letter itself is taken out of the
queue within a minute, when the document has ended. Broken messages are shown and dropped by the rows that the relay
makes of them (ingest_consumer/broken_letters.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everest.pages import broker, downloads, lists, params, store, telling, view
from everest.pages.access import Permission
from everest.pages.guard import GuardedRoute, form, needs, person
from everest.store.database import load_queries
from ingest_consumer import by_hand, shadow
from ingest_consumer.errors import RerunRefused

QUERIES = load_queries("pages_operations")
router = APIRouter(route_class=GuardedRoute)

PAGE = 50
MAX_AT_ONCE = 200
MAX_REASON = 500


@dataclass(frozen=True)
class Choice:
    """A row as its box names it: number is what the form sends; is_open: whether it can still be chosen."""

    number: int
    name: str | int
    is_open: bool = True


@router.get("/dead-letters")
@needs(Permission.READ)
def dead_letters(request: Request) -> Response:
    nota = params.prefix(params.text(request, "nota"))
    before = params.number(request, "before", params.THE_END)
    with store.transaction(request) as tx:
        rows = list(QUERIES.page_of_letters(tx.conn, before_id=before, nota=nota, size=PAGE + 1))
        total = QUERIES.count_letters(tx.conn)
        after = params.number(request, "after", 0)
        broken = list(QUERIES.broken_letters(tx.conn, after_id=after, size=PAGE + 1))
        broken_total = int(QUERIES.count_broken_letters(tx.conn))
    for row in rows:
        row["choice"] = Choice(row["shadow_id"], row["nomer_nota"] or row["shadow_id"])
    for row in broken:
        row["choice"] = Choice(row["id"], row["letter"], is_open=row["dropped_at"] is None)
        row["why"] = telling.decoded(row["reason"])
    queue = broker.look(request.app.state.settings.broker)
    return view.page(
        request,
        "dead_letters.html",
        rows=rows[:PAGE],
        older=rows[PAGE - 1]["shadow_id"] if len(rows) > PAGE else None,
        is_first=before == params.THE_END,
        total=total,
        broken=broken[:PAGE],
        more_broken=broken[PAGE - 1]["id"] if len(broken) > PAGE else None,
        broken_skipped=after > 0,
        broken_total=broken_total,
        in_queue=queue.letters,
        query=request.query_params,
    )


@router.get("/dead-letters.{form}")
@needs(Permission.READ)
def letters_file(request: Request, form: downloads.Format) -> Response:
    """The list with the same filter, whole, as a spreadsheet opens it."""
    nota = params.prefix(params.text(request, "nota"))
    with store.transaction(request) as tx:
        rows = list(QUERIES.page_of_letters(tx.conn, before_id=params.THE_END, nota=nota, size=lists.MAX_ROWS + 1))
    language = view.language_of(request)
    return downloads.as_file(lists.letters(lists.bounded(rows), language), form, language, "dead-letters")


@router.get("/dead-letters/broken.{form}")
@needs(Permission.READ)
def broken_file(request: Request, form: downloads.Format) -> Response:
    """All broken messages that lie in the queue, as far as they have a row."""
    with store.transaction(request) as tx:
        rows = list(QUERIES.broken_letters(tx.conn, after_id=0, size=lists.MAX_ROWS + 1))
    language = view.language_of(request)
    return downloads.as_file(lists.broken_letters(lists.bounded(rows), language), form, language, "broken-messages")


@router.post("/dead-letters/replay")
@needs(Permission.ACT)
def replay(request: Request) -> Response:
    """Runs the chosen ones again, each in a transaction of its own."""
    who, reason = person(request).name, _reason(request)

    def again(conn: Any, shadow_id: int) -> str:
        by_hand.rerun(conn, shadow_id, who, reason)
        return "replayed"

    return _each(request, again)


@router.post("/dead-letters/drop")
@needs(Permission.ACT)
def drop(request: Request) -> Response:
    """Cancels the chosen documents for good (499); needs a reason."""
    who, reason = person(request).name, _reason(request)
    if reason is None:
        raise HTTPException(422, "reason")

    def cancel(conn: Any, shadow_id: int) -> str:
        return "dropped" if by_hand.cancel_dropped(conn, shadow_id, who, reason) else "not_failed"

    return _each(request, cancel)


@router.post("/dead-letters/drop-broken")
@needs(Permission.ACT)
def drop_broken(request: Request) -> Response:
    """Has chosen broken messages taken out of the queue, all copies of each; needs a reason."""
    who, reason = person(request).name, _reason(request)
    if reason is None:
        raise HTTPException(422, "reason")
    told = []
    for letter_id in _chosen(request, "letter_id"):
        with store.transaction(request) as tx:
            found = QUERIES.broken_letter(tx.conn, letter_id=letter_id)
            dropped = found and QUERIES.drop_broken_letter(tx.conn, letter_id=letter_id, actor=who[:100])
            if dropped:
                after = {"letter": found["letter"], "reason": found["reason"], "copies": found["copies"]}
                shadow.audit(tx.conn, who, "drop_broken_letter", None, reason, after)
        name = found["letter"] if found else f"#{letter_id}"
        told.append({"name": name, "outcome": "dropped_broken" if dropped else "broken_gone", "words": None})
    return view.page(request, "dead_letters_done.html", told=told)


def _reason(request: Request) -> str | None:
    return str(form(request).get("reason", "")).strip()[:MAX_REASON] or None


def _chosen(request: Request, name: str) -> list[int]:
    given = [str(one) for one in form(request).getlist(name)]
    chosen = list(dict.fromkeys(int(one) for one in given if one.isascii() and one.isdecimal() and len(one) < 19))
    if not chosen:
        raise HTTPException(422, "nothing_chosen")
    return chosen[:MAX_AT_ONCE]


def _each(request: Request, act: Callable[[Any, int], str]) -> Response:
    """One answer for many: what became of each."""
    told = []
    for shadow_id in _chosen(request, "shadow_id"):
        try:
            with store.transaction(request) as tx:
                named = QUERIES.named(tx.conn, shadow_id=shadow_id) or {"name": f"#{shadow_id}"}
                outcome, words = act(tx.conn, shadow_id), None
        except RerunRefused as refusal:
            outcome, words = "refused", telling.of_error(refusal)
        told.append({"shadow_id": shadow_id, **named, "outcome": outcome, "words": words})
    return view.page(request, "dead_letters_done.html", told=told)
