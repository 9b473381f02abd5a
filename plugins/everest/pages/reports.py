"""Laporan: every report of `everest.reports` on the screen, with its chart and its files. Filters stand in the URL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from everest import reports as books
from everest.errors import DocumentMissing
from everest.opname.document import WIB
from everest.pages import charts, downloads, drill_down, formats, params, spans, store, telling, view, words
from everest.pages.access import Permission
from everest.pages.documents import QUERIES as DOCUMENTS
from everest.pages.guard import GuardedRoute, needs
from everest.pages.words import Language
from everest.reports.shape import NUMBERS, Column, Kind, labelled_as
from everest.store.database import Connection, load_queries

QUERIES = load_queries("reports")
router = APIRouter(route_class=GuardedRoute)

ROWS_SHOWN = 200
BARS = 12
MAX_NOTA = 100
MAX_TEXT = 160
"""Characters of a text that somebody wrote, in a cell; a sentence of ours is whole."""
MONTHS = {"month": 11}
"""Whole months before the present one that a report opens with; others: one."""
TEXTS = ("gudang_kode", "kode_barang", "nomer_nota", "kode_akun")
EXACT = {"alasan": 255, "kelompok": 100}
"""Filters that a bar leads to: any text that a row may hold, and how long it may be."""


@router.get("/reports")
@needs(Permission.READ)
def report(request: Request) -> Response:
    key = params.choice(request, "report", tuple(books.REPORTS)) or "month"
    if (opening := _opening(request, key)) is not None:
        return opening
    definition, asked = books.REPORTS[key], filters_of(request, key)
    language = view.language_of(request)
    rows: list[Any] = []
    totals: list[Any] = []
    count = 0
    why: str | None = None
    with store.transaction(request) as tx:
        warehouses = list(DOCUMENTS.warehouses(tx.conn))
        part = spans.part_of(definition, asked, _today(), lambda: _books_begin(tx.conn))
    filters = asked if part is None else part.of(asked)
    is_ready = not definition.needs_one_of or any(name in filters.given for name in definition.needs_one_of)
    if params.is_backwards(asked.since, asked.until):
        why = words.text(language, "report.empty_range")
    elif is_ready:
        try:
            with store.transaction(request) as tx, books.opened(tx, key, filters, ROWS_SHOWN) as opened:
                rows, totals, count = _read(opened, key)
        except DocumentMissing:
            why = words.text(language, "report.unknown_nota", nota=formats.shown(filters.nomer_nota))
        except books.ReportRefused as refused:
            why = telling.said(language, refused.message)
    columns, base = definition.columns, view.base_of(request)
    return view.page(
        request,
        "reports.html",
        key=key,
        keys=tuple(books.REPORTS),
        titles={one: books.REPORTS[one].title(language) for one in books.REPORTS},
        notes=definition.notes_in(language),
        headings=[one.headed(language) for one in columns],
        numeric=[one.kind in NUMBERS for one in columns],
        dated=[one.kind in (Kind.DATE, Kind.INSTANT) for one in columns],
        rows=[
            (_shown(columns, row, language), drill_down.documents_of_a_row(base, columns, row))
            for row in rows[:ROWS_SHOWN]
        ],
        totals=_shown(columns, totals, language) if totals else [],
        matching=_matching(columns, totals) if key == "month" else None,
        count=count,
        why=why,
        is_ready=is_ready,
        chart=_chart(base, key, columns, rows, filters, language),
        query=request.query_params,
        narrowed={name: value for name in EXACT if (value := filters.given.get(name)) is not None},
        warehouses=warehouses,
        rows_shown=ROWS_SHOWN,
        part=part,
        before=None if part is None else _before(request, key, part),
    )


@router.get("/reports/document")
@needs(Permission.READ)
def document_of_nota(request: Request) -> Response:
    """The document that a nota in a report belongs to: the posted one, else the newest of that number."""
    with store.transaction(request) as tx:
        transaksi_id = QUERIES.transaksi_of_nota(tx.conn, nomer_nota=params.exact(request, "nomer_nota", MAX_NOTA))
        job = None if transaksi_id is None else DOCUMENTS.job_of(tx.conn, transaksi_id=transaksi_id)
    if transaksi_id is None:
        raise HTTPException(404, "missing")
    path = f"/drafts/{transaksi_id}" if job is None else f"/documents/{job}"
    return RedirectResponse(view.base_of(request) + path, 303)


@router.get("/reports/{key}.{form}")
@needs(Permission.READ)
def report_file(request: Request, key: str, form: downloads.Format) -> Response:
    """The whole of it, with the same filters: every day that was asked for, also where the page shows the last ones."""
    if key not in books.REPORTS:
        raise HTTPException(404, "missing")
    return downloads.download(request, key, filters_of(request, key), form, view.language_of(request))


def _opening(request: Request, key: str) -> Response | None:
    """Who asked for no period gets the last months, in the address like any other: books grow, and nobody who opens a
    page means all of them. An empty `since` is everything."""
    query = dict(request.query_params)
    if "since" in query or query.get("until") or query.get("nomer_nota") or "since" not in books.REPORTS[key].accepts:
        return None
    today = _today()
    first = today.year * 12 + today.month - 1 - MONTHS.get(key, 1)
    since = date(first // 12, first % 12 + 1, 1)
    return RedirectResponse(
        f"{view.base_of(request)}/reports?{urlencode({**query, 'report': key, 'since': since})}", 303
    )


def _today() -> date:
    return datetime.now(WIB).date()


def _books_begin(conn: Connection) -> date | None:
    found: datetime | None = QUERIES.books_begin(conn)
    return None if found is None else found.date()


def _before(request: Request, key: str, part: spans.Part) -> str:
    """The address of the same question about what was before this part."""
    query = {name: value for name, value in request.query_params.items() if name != "lang"}
    return f"{view.base_of(request)}/reports?{urlencode({**query, 'report': key, 'until': part.before})}"


def filters_of(request: Request, key: str) -> books.Filters:
    """The filters that mean something to this report; others stay in the URL for the next one."""
    given: dict[str, Any] = {name: params.text(request, name) for name in TEXTS}
    given |= {name: params.exact(request, name, most) for name, most in EXACT.items()}
    given |= {"since": params.day(request, "since"), "until": params.day(request, "until")}
    accepted = books.REPORTS[key].accepts
    return books.Filters(**{name: value for name, value in given.items() if name in accepted})


def _read(opened: books.Report, key: str) -> tuple[list[Any], list[Any], int]:
    """Rows to show, or to draw; totals and number of all rows, not of those on the screen."""
    if opened.add_up():
        totals, count = opened.totals_row() if opened.totals else [], opened.row_count
        return list(islice(opened.rows(), ROWS_SHOWN)), totals, count
    stream = opened.rows()
    # Groups are few. What is drawn is the largest of all of them; lines of a document are many.
    rows = list(stream) if key in drill_down.CHARTED else list(islice(stream, ROWS_SHOWN))
    for _ in stream:
        pass
    if key == "item":
        rows.sort(key=_size(opened.columns), reverse=True)
    return rows, opened.totals_row() if opened.totals else [], opened.row_count


def _size(columns: tuple[Column, ...]) -> Callable[[Any], Any]:
    """What puts a row in front of others: surplus and shortage together."""
    places = {column.name: place for place, column in enumerate(columns)}
    surplus, shortage = places["nilai_lebih"], places["nilai_kurang"]
    return lambda row: row[surplus] + row[shortage]


def _matching(columns: tuple[Column, ...], totals: list[Any]) -> dict[str, Any] | None:
    """How many of the counted documents have no variance; None where nothing was counted."""
    found = dict(zip((column.name for column in columns), totals, strict=False))
    counted, matching = found.get("jumlah_dokumen"), found.get("dokumen_cocok")
    if not counted or matching is None:
        return None
    percent = (Decimal(100) * matching / counted).quantize(Decimal("0.01"))
    return {"n": matching, "all": counted, "percent": formats.percent(percent)}


def _shown(columns: tuple[Column, ...], row: Any, language: Language) -> list[str]:
    return [_cell(column, value, language) for column, value in zip(columns, row, strict=True)]


def _cell(column: Column, value: Any, language: Language) -> str:
    if value is None:
        return ""
    match column.kind:
        case Kind.MONEY | Kind.COST:
            return formats.rupiah(value)
        case Kind.QUANTITY:
            return formats.quantity(value)
        case Kind.PERCENT:
            return formats.percent(value)
        case Kind.INTEGER:
            return formats.whole(value)
        case Kind.DATE:
            return formats.day(value)
        case Kind.INSTANT:
            return formats.wall(value)
    if isinstance(value, words.Said):
        return telling.said(language, value, MAX_TEXT)
    return formats.shown(labelled_as(column.name, value, language), MAX_TEXT)


def _chart(
    base: str, key: str, columns: tuple[Column, ...], rows: list[Any], filters: books.Filters, language: Language
) -> Markup | None:
    """Surplus and shortage of what has most of both; a bar leads to its rows."""
    if key not in drill_down.CHARTED or not rows:
        return None
    places = {column.name: place for place, column in enumerate(columns)}
    surplus, shortage = places["nilai_lebih"], places["nilai_kurang"]
    largest = rows if key == "month" else sorted(rows, key=_size(columns), reverse=True)
    bars: list[tuple[str, Decimal, str, str]] = []
    for row in largest[-BARS:] if key == "month" else largest[:BARS]:
        label, link = (
            str(labelled_as(columns[0].name, row[0] or "–", language)),
            drill_down.rows_of_a_bar(base, key, row[0], filters),
        )
        sides = ((row[surplus], charts.SURPLUS), (-row[shortage], charts.SHORTAGE))
        bars += [(label, value, side, link) for value, side in sides if value]
    return charts.horizontal(bars, words.text(language, "chart.report"), language) if bars else None
