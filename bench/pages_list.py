"""Which pages are opened: each with the filters, tabs and orders that ask something else of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bench.pages_data import Filled
from everest import reports
from everest.reports.catalogue import A_YEAR

OUTSIDE = frozenset(
    {"/", "/assets/{version}/{name}", "/documents/of/{transaksi_id}", "/reports/document", "/submit/template.{form}"}
)
"""Redirects, and files that ask the database nothing."""

Page = tuple[str, str, str]
"""What a reader of the results calls it, its address, and who opens it."""

OF_ONE = ("stock-card", "trace")
"""Reports about a nota or an item."""
BY_YEAR = [key for key, definition in reports.REPORTS.items() if definition.longest_days is not None]
"""Reports whose page shows a year at a time (decision 0063); their files have everything."""


@dataclass(frozen=True)
class Group:
    """A line of the results. is_promised: a person at a screen waits for these; others are files that are saved."""

    id: str
    what: str
    pages: Sequence[Page]
    is_promised: bool = True


def groups(filled: Filled) -> list[Group]:
    return [
        Group("documents", "the list of documents, by filter", _list(filled)),
        Group("document", "one document, each of its parts", _document(filled)),
        Group("reports", "reports as they open, and filtered", _reports(filled)),
        Group("all", "reports asked for everything, and for what was before the last year", _all(filled)),
        Group("decide", "what waits for a person, of 20,000 lines", _decide(filled)),
        Group("others", "the other pages", _others(filled)),
        Group("previews", "what a posting would do, by its steps", _previews(filled)),
        Group(
            "files",
            "whole files: a document of 20,000 lines, a month of documents, reports about everything",
            _files(filled),
            False,
        ),
    ]


def _list(filled: Filled) -> list[Page]:
    middle, today = filled.documents // 2, filled.today
    asked = {
        "newest": "",
        "middle": f"before={middle}",
        "last": "before=40",
        "failed": "status=FAILED",
        "completed": "status=COMPLETED",
        "queued (none)": "status=PENDING",
        "nota": "nota=SO-2",
        "no such nota": "nota=TIDAK-ADA",
        "warehouse": "gudang=GD-03",
        "rare warehouse": "gudang=GD-40",
        "no such warehouse": "gudang=XX",
        "a week": f"since={today - timedelta(days=90):%Y-%m-%d}&until={today - timedelta(days=84):%Y-%m-%d}",
        "the first day": f"until={filled.first_day:%Y-%m-%d}",
        "days without any": f"since={today + timedelta(days=30):%Y-%m-%d}",
        "long ago": "until=2001-01-01",
        "amounts": "min=100000&max=200000",
        "no such amount": "min=999999999999",
        "stuck": "stuck=1",
        "several": f"status=FAILED&gudang=GD-03&since={filled.first_day:%Y-%m-%d}&until={today:%Y-%m-%d}",
    }
    found = [(name, f"/documents?{query}", "finance") for name, query in asked.items()]
    return [*found, ("a clerk's own", "/documents", "warehouse")]


def _document(filled: Filled) -> list[Page]:
    large, failed, small = (f"/documents/{job}" for job in (filled.large, filled.large_failed, filled.small))
    asked = {
        "20,000 lines": large,
        "lines": f"{large}?tab=lines",
        "lines by item": f"{large}?tab=lines&sort=item",
        "lines by surplus": f"{large}?tab=lines&sort=surplus&variance=1",
        "lines by reason": f"{large}?tab=lines&sort=reason&order=desc",
        "last lines": f"{large}?tab=lines&sort=shortage&skip=19950",
        "lines found": f"{large}?tab=lines&search=999",
        "journal": f"{large}?tab=journal",
        "stock card": f"{large}?tab=card",
        "history": f"{large}?tab=history",
        "20,000 problems": failed,
        "lines with problems": f"{failed}?tab=lines",
        "lines with problems alone": f"{failed}?tab=lines&flawed=1",
        "history of problems": f"{failed}?tab=history",
        "a small one": small,
        "its lines": f"{small}?tab=lines",
        "a failed one": f"/documents/{filled.failed}",
        "its correction": f"/documents/{filled.failed}/correct",
        "correction of 20,000 lines": f"{failed}/correct",
    }
    return [(name, path, "finance") for name, path in asked.items()]


def _reports(filled: Filled) -> list[Page]:
    opened = [
        (key, f"/reports?report={key}&since={_since(filled, key)}") for key in reports.REPORTS if key not in OF_ONE
    ]
    found = [
        *opened,
        *((f"{name}, a warehouse", f"{path}&gudang_kode=GD-03") for name, path in opened),
        ("variance of an item", f"/reports?report=variance&since={_since(filled, '')}&kode_barang=BRG-00042"),
        ("journal of an account", f"/reports?report=journal&since={_since(filled, '')}&kode_akun=7010150"),
        ("variance of a reason", f"/reports?report=variance&since={_since(filled, '')}&alasan=rusak"),
        ("variance of no group", f"/reports?report=variance&since={_since(filled, '')}&kelompok="),
        *(
            (f"{key} of a large one", f"/reports?report={key}&nomer_nota=BENCH-BESAR")
            for key in (*OF_ONE, "late-movements", "variance")
        ),
        ("stock card of an item", "/reports?report=stock-card&since=&kode_barang=BRG-00042"),
        ("stock card of a warehouse", "/reports?report=stock-card&since=&gudang_kode=GD-03"),
    ]
    return [(name, path, "analyst") for name, path in found]


def _all(filled: Filled) -> list[Page]:
    """What is shown a year at a time, once more for the year before, as the page's own link asks for it."""
    long_ago = filled.today - timedelta(days=A_YEAR)
    found = [(key, f"/reports?report={key}&since=") for key in reports.REPORTS if key not in OF_ONE]
    found += [(f"{key}, the year before", f"/reports?report={key}&since=&until={long_ago:%Y-%m-%d}") for key in BY_YEAR]
    return [(name, path, "analyst") for name, path in found]


def _since(filled: Filled, key: str) -> str:
    """As a report opens: the last year by month, else the present month and the one before."""
    return f"{filled.today - timedelta(days=350 if key == 'month' else 61):%Y-%m-%d}"


def _decide(filled: Filled) -> list[Page]:
    draft, waiting = f"/drafts/{filled.large_draft}", f"/documents/{filled.large_waiting}"
    asked = {
        "approvals": "/approvals",
        "drafts": "/drafts",
        "a draft": draft,
        "lines of a draft by item": f"{draft}?sort=item&order=desc",
        "lines of a draft found": f"{draft}?search=999",
        "a document": waiting,
        "its lines with a reason": f"{waiting}?tab=lines",
        "its history": f"{waiting}?tab=history",
    }
    return [(name, path, "finance") for name, path in asked.items()]


def _others(filled: Filled) -> list[Page]:
    asked = {
        "submit": "/submit",
        "drafts": "/drafts",
        "a draft": f"/drafts/{filled.draft}",
        "approvals": "/approvals",
        "dead letters": "/dead-letters",
        "dead letters of a nota": "/dead-letters?nota=SO-2",
        "workflows": "/workflows",
        "failed workflows": "/workflows?status=failed",
        "completed workflows": "/workflows?status=completed",
        "no workflows": "/workflows?status=paused",
        "other workflows": "/workflows?workflow=lain",
        "a workflow": f"/workflows/{filled.small}",
        "health": "/health",
    }
    return [(name, path, "finance") for name, path in asked.items()]


def _previews(filled: Filled) -> list[Page]:
    asked = {
        "of 20,000 lines": f"/documents/{filled.large}/preview",
        "of a failed one": f"/documents/{filled.failed}/preview",
        "of a draft": f"/drafts/{filled.draft}/preview",
        "of a draft of 20,000 lines": f"/drafts/{filled.large_draft}/preview",
        "of one that waits": f"/documents/{filled.large_waiting}/preview",
    }
    return [(name, path, "finance") for name, path in asked.items()]


def _files(filled: Filled) -> list[Page]:
    since, until = (filled.today - timedelta(days=days) for days in (60, 30))
    month = f"since={since:%Y-%m-%d}&until={until:%Y-%m-%d}"
    asked = {
        "document CSV": f"/documents/{filled.large}/lines.csv",
        "document Excel": f"/documents/{filled.large}/lines.xlsx",
        "lines as sent": f"/documents/{filled.large}/sent.csv",
        "documents CSV": f"/documents.csv?{month}",
        "dead letters CSV": "/dead-letters.csv",
        "broken messages CSV": "/dead-letters/broken.csv",
        "report CSV": f"/reports/item.csv?{month}",
        "report Excel": f"/reports/item.xlsx?{month}",
        **{f"{key} CSV, everything": f"/reports/{key}.csv?since=" for key in BY_YEAR},
    }
    return [(name, path, "finance") for name, path in asked.items()]
