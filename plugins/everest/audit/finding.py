"""What an audit finds, and how it walks: one short statement after another, each in a transaction of its own.

A window bounds what one statement reads, so an audit of five million rows is many small reads. No lock is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from everest.audit.settings import AuditSettings
from everest.errors import EverestError
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.words import say
from ingest_consumer.airflow_api import AirflowApi

QUERIES = load_queries("audit")

SECTION = "finding"
"""Of the catalogue."""
MAX_KEY = 200
MAX_PESAN = 1000


class NotChecked(EverestError):
    """This invariant could not be looked at; that is no proof that it holds."""

    retryable = True


@dataclass(frozen=True)
class Finding:
    """One row, or one group of rows, that breaks an invariant. key: the same in every audit for the same fault.
    pesan: the sentence people read (Indonesian). detail: the row's columns as text; with them and the name of its
    statement, which the key begins with, a page tells the sentence in its reader's language (`kept`)."""

    key: str
    pesan: str
    detail: Mapping[str, str | None]


@dataclass(frozen=True)
class Auditor:
    """What a check has at hand. since: only postings made since then (aware), where an invariant is about postings.
    airflow, count_letters: None where the site does not say how to reach them. notes: what a check left out."""

    open: Callable[[], AbstractContextManager[UnitOfWork]]
    settings: AuditSettings
    since: datetime | None = None
    airflow: AirflowApi | None = None
    count_letters: Callable[[], int] | None = None
    notes: list[str] = field(default_factory=list)


Check = Callable[[Auditor], Iterator[Finding]]


@dataclass(frozen=True)
class Window:
    """A table walked in pieces. next_query: gives the end of a piece. size: its rows. of_postings: `since` counts."""

    next_query: str
    size: int
    start: int | str = 0
    of_postings: bool = False


POSTINGS = Window("next_posting", 200, of_postings=True)
"""Some postings have 20,000 stock-card rows."""
JOURNAL = Window("next_journal_row", 50_000)
STOCK_CARD = Window("next_stock_card_row", 50_000)
JOBS = Window("next_job", 50_000)
ITEMS = Window("next_item", 20_000, start="")


def walked(query: str, window: Window, names: tuple[str, ...]) -> Check:
    """A check by one statement, window by window. names: columns that make the finding's key. What a row says stands
    in the catalogue under the name of the statement, with holes for its columns."""

    def check(auditor: Auditor) -> Iterator[Finding]:
        for row in walked_rows(auditor, query, window):
            yield finding(query, row, names)

    return check


def walked_rows(auditor: Auditor, query: str, window: Window, **parameters: Any) -> Iterator[dict[str, Any]]:
    """The rows that a statement returns, window by window."""
    after = _start(auditor, window)
    while True:
        with auditor.open() as tx:
            upto = getattr(QUERIES, window.next_query)(tx.conn, after=after, size=window.size)
            if upto is None:
                return
            rows = list(getattr(QUERIES, query)(tx.conn, after=after, upto=upto, **parameters))
        yield from rows
        after = upto


def _start(auditor: Auditor, window: Window) -> int | str:
    if not window.of_postings or auditor.since is None:
        return window.start
    with auditor.open() as tx:
        since = auditor.since.astimezone(UTC).replace(tzinfo=None)
        return int(QUERIES.before_posting_of(tx.conn, since=since))


def paged(auditor: Auditor, query: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    """The rows of a statement over jobs of one status, page by page."""
    after = 0
    while True:
        with auditor.open() as tx:
            rows = list(getattr(QUERIES, query)(tx.conn, after=after, size=auditor.settings.page, **parameters))
        yield from rows
        if len(rows) < auditor.settings.page:
            return
        after = rows[-1]["shadow_id"]


def finding(query: str, row: Mapping[str, Any], names: tuple[str, ...]) -> Finding:
    texts = {name: text(value) for name, value in row.items()}
    key = ":".join((query, *(texts[name] or "" for name in names)))
    if len(key) > MAX_KEY:
        key = f"{query}:{hashlib.sha256(key.encode()).hexdigest()}"
    return Finding(key, str(say("id", f"{SECTION}.{query}", **_shown(texts)))[:MAX_PESAN], texts)


def kept(key: str, pesan: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    """A finding that a row holds, as a page tells it: its sentence, with what makes it anew."""
    return {"message": pesan, "key": f"{SECTION}.{key.partition(':')[0]}", "values": _shown(detail)}


def _shown(texts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "-" if value is None else value for name, value in texts.items()}


def text(value: Any) -> str | None:
    """A column as people and JSON read it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
