"""The parts of a document's page: summary, lines, journal, stock card, history. Each reads what its template shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request

from everest import attempts
from everest.errors import EverestError
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.pages import charts, params, second_look, view
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork

QUERIES = load_queries("pages_documents")

LINES_PER_PAGE = 50
PROBLEMS_SHOWN = 200
HISTORY = 100
HISTORY_DEPTH = 10_000
"""Events behind which nobody pages; two lists are merged, so each is read from its beginning."""
HINTS_SHOWN = 50
CHANGES_SHOWN = 50
CHART_BARS = 10
NO_LINE = -1
"""Is no line of a document; a list in a query may not be empty."""

TEXTS = ("item", "lot", "warehouse", "unit", "reason")
SORTS = {
    name: name in TEXTS or name == "line"
    for name in (
        "line", "item", "lot", "warehouse", "unit", "book", "counted", "difference", "cost", "surplus", "shortage",
        "reason", "problem",
    )
}  # fmt: skip
"""What lines can be sorted by: the columns of the table, and what has a problem. True: the smallest first, unless
somebody says otherwise; of amounts one wants the largest first."""
COMPUTED = ("difference", "surplus", "shortage")
"""Columns that are there when the variance is computed."""


def summary(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    transaksi_id, chart = doc["transaksi_id"], None
    sums = QUERIES.value_summary(tx.conn, transaksi_id=transaksi_id if doc["is_computed"] else 0)
    if sums["baris"]:
        largest = {"transaksi_id": transaksi_id, "size": CHART_BARS}
        surplus = list(QUERIES.largest_lines(tx.conn, is_shortage=False, **largest))
        shortage = list(QUERIES.largest_lines(tx.conn, is_shortage=True, **largest))
        address = f"{view.base_of(request)}/documents/{doc['shadow_id']}?tab=lines&line="
        chart = charts.largest(surplus, shortage, address, view.language_of(request))
    return {
        "sums": sums,
        "ran_as": ran_as(tx, doc),
        "task": task_of(doc, doc["current_step"]),
        "staged": QUERIES.count_staged(tx.conn, header_id=doc["header_id"] or 0, search=None),
        "chart": chart,
        "problems": doc["problems"][:PROBLEMS_SHOWN],
        "smells": second_look.smells(doc, sums),
        "hints": (found := second_look.line_hints(tx, doc))[:HINTS_SHOWN],
        "hint_count": len(found),
    }


def ran_as(tx: UnitOfWork, doc: dict[str, Any]) -> str | None:
    """The DAG run to look at. What waits, is queued or was cancelled there names the next one, of which Airflow knows
    nothing yet: then it is the last one in which a step began."""
    if doc["workflow_id"] is None or doc["worker_status"] not in ("PENDING", "WAITING", "CANCELLED"):
        return None if doc["dag_run_id"] is None else str(doc["dag_run_id"])
    n = QUERIES.last_begun(tx.conn, workflow_id=doc["workflow_id"])
    return None if n is None else str(doc["dag_run_id"]).rpartition("__")[0] + f"__{n}"


def task_of(doc: dict[str, Any], step: str | None) -> str | None:
    """The Airflow task whose log tells about a step of the document; without one, about its end: the last task of what
    has COMPLETED."""
    for definition in (POST_OPNAME, REVERSE_OPNAME):
        names = [one.name for one in definition.steps]
        if step is None and doc["worker_status"] == "COMPLETED" and doc["dag_id"] == definition.dag_id:
            step = names[-1]
        if step in names:
            return definition.task_of(str(step))
    return step


def lines(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    """Computed lines; before they are computed, the lines as they were sent. A link may ask for one of them by its
    number, and gets the page where it stands."""
    is_computed = bool(doc["is_computed"])
    sorts = {name: rises for name, rises in SORTS.items() if is_computed or name not in COMPUTED}
    sort = params.choice(request, "sort", sorts) or "line"
    order = params.choice(request, "order", ("asc", "desc")) or ("asc" if sorts[sort] else "desc")
    skip = params.number(request, "skip", 0, most=1_000_000)
    search = params.containing(params.text(request, "search"))
    only_variance = is_computed and params.choice(request, "variance", ("1",)) is not None
    only_flawed = params.choice(request, "flawed", ("1",)) is not None
    wanted = _wanted(doc, search, only_variance, only_flawed, needs_flawed=only_flawed or sort == "problem")
    line = params.number(request, "line", 0, most=2**31 - 1)
    if line and (sort, order, search, only_variance, only_flawed) == ("line", "asc", None, False, False):
        skip = _count(tx, wanted, is_computed, line) // LINES_PER_PAGE * LINES_PER_PAGE
    total = _count(tx, wanted, is_computed)
    paged = {"sort": sort, "is_descending": order == "desc", "size": LINES_PER_PAGE, "skip": skip}
    if is_computed:
        rows = list(QUERIES.computed_lines(tx.conn, **paged, **wanted))
    else:
        rows = list(QUERIES.sorted_staged_lines(tx.conn, **paged, **wanted))
    return {
        "lines": rows,
        "total": total,
        "skip": skip,
        "size": LINES_PER_PAGE,
        "last_skip": max(total - 1, 0) // LINES_PER_PAGE * LINES_PER_PAGE,
        "sort": sort,
        "order": order,
        "sorts": sorts,
        "is_computed": is_computed,
        "query": request.query_params,
        "asked_line": line,
        "flaws": _flaws(doc, {row["baris"] for row in rows}),
        "has_flaws": bool(_flawed(doc)),
    }


def _wanted(
    doc: dict[str, Any],
    search: str | None = None,
    only_variance: bool = False,
    only_flawed: bool = False,
    needs_flawed: bool = False,
) -> dict[str, Any]:
    """Which lines. Unit and reason of a reversal's lines stand in the document that it reverses."""
    return {
        "transaksi_id": doc["transaksi_id"],
        "header_id": doc["header_id"] or (doc["is_computed"] and doc["membalik_header_id"]) or 0,
        "search": search,
        "only_variance": only_variance,
        "only_flawed": only_flawed,
        "flawed": [NO_LINE, *(_flawed(doc) if needs_flawed else ())],
    }


def _count(tx: UnitOfWork, wanted: dict[str, Any], is_computed: bool, before_line: int | None = None) -> int:
    query = QUERIES.count_computed if is_computed else QUERIES.count_sorted_staged
    return int(query(tx.conn, before_line=before_line, **wanted))


def _flawed(doc: dict[str, Any]) -> list[int]:
    """Numbers of the lines that have a problem."""
    return sorted({one["baris"] for one in doc["problems"] if isinstance(one.get("baris"), int)})


def _flaws(doc: dict[str, Any], shown: set[int]) -> dict[int, list[dict[str, Any]]]:
    """What is wrong with each of these lines."""
    found: dict[int, list[dict[str, Any]]] = {}
    for one in doc["problems"]:
        if isinstance(one.get("baris"), int) and one["baris"] in shown:
            found.setdefault(one["baris"], []).append(one)
    return found


def journal(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    return {"journal": list(QUERIES.journal_of(tx.conn, posting_id=doc["posting_id"] or 0))}


def card(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    after = params.number(request, "after", 0)
    rows = list(
        QUERIES.stock_card_of(tx.conn, posting_id=doc["posting_id"] or 0, after_id=after, size=LINES_PER_PAGE + 1)
    )
    more = rows[LINES_PER_PAGE - 1]["id"] if len(rows) > LINES_PER_PAGE else None
    return {"card": rows[:LINES_PER_PAGE], "more": more, "after": after}


def history(request: Request, tx: UnitOfWork, doc: dict[str, Any]) -> dict[str, Any]:
    """What happened, newest first: events of the run, people's actions; on the first page the attempts that ended."""
    skip = params.number(request, "skip", 0, most=HISTORY_DEPTH)
    found = told(tx, doc, skip + HISTORY + 1)
    failed_at: dict[int, str] = {}
    for one in found:
        if one["kind"] == "event" and one["event"] == "failed" and one["n"] is not None and one["step"]:
            failed_at.setdefault(one["n"], one["step"])
    tried = _tried(tx, doc) if skip == 0 else None
    return {
        "told": found[skip : skip + HISTORY],
        "newer": skip,
        "older": skip + HISTORY if len(found) > skip + HISTORY and skip + HISTORY <= HISTORY_DEPTH else None,
        "tried": tried,
        "logs": {
            one.number: task_of(doc, failed_at.get(one.n) if one.outcome == "FAILED" else None)
            for one in (tried.attempts if tried else ())
        },
        "most": CHANGES_SHOWN,
    }


def told(tx: UnitOfWork, doc: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """The newest events of the run and actions of people, so many of each, in one order."""
    found: list[dict[str, Any]] = []
    if doc["workflow_id"] is not None:
        for row in QUERIES.events_of(tx.conn, workflow_id=doc["workflow_id"], size=size):
            found.append({"at": row["created_at"], "kind": "event", "what": row["event"], **row})
    for row in QUERIES.audit_of(tx.conn, transaksi_id=doc["transaksi_id"], size=size):
        found.append({"at": row["created_at"], "kind": "action", "what": row["action"], **row})
    found.sort(key=lambda one: one["at"], reverse=True)
    return found


def _tried(tx: UnitOfWork, doc: dict[str, Any]) -> attempts.History | None:
    try:
        return attempts.history(tx, f"#{doc['shadow_id']}")
    except EverestError as refusal:
        if refusal.code >= 500:
            raise
        return None  # a job whose document was never stored


TABS: dict[str, Callable[[Request, UnitOfWork, dict[str, Any]], dict[str, Any]]] = {
    "summary": summary,
    "lines": lines,
    "journal": journal,
    "card": card,
    "history": history,
}
