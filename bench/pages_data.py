"""The schema that the pages are measured on: 100,000 documents, and four more that are large or wait.

Most of it is written in bulk by pages.sql, since what is measured is reading. The large documents and those that wait
for an approval go through the product's own steps: their rows are what a page really meets.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from bench import documents
from everest.bootstrap import database
from everest.errors import EverestError
from everest.intake import drafts
from everest.intake.submission import Submission
from everest.intake.submit import Submitted
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.unit_of_work import Database
from everest.workflow import engine, runner

QUERIES = store.load_queries(Path(__file__).with_name("pages.sql"))
BULK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ten", ()),
    ("numbers", ("documents",)),
    ("warehouses", ()),
    ("headers", ("documents", "today")),
    *((name, ()) for name in ["details", "transactions", "computed", "runs", "jobs", "events", "acts", "postings"]),
    *((name, ()) for name in ("drop_values_of_failed", "journal", "cards", "movements")),
    ("drafts", ("documents", "today")),
    ("draft_lines", ("documents",)),
    ("limit_of_waiting", ()),
)
"""Statements of pages.sql in their order, and what each takes."""
DOCUMENTS_A_DAY, ONE_IN_SO_MANY_FAILED = 140, 200
"""As pages.sql has them."""

WAITING = 20
WAITING_WAREHOUSE = "GD-40"


@dataclass(frozen=True)
class Filled:
    """Jobs of the documents that a page is opened for. draft, large_draft: a transaksi_id. small: posted, three lines.
    large_waiting: for a person, with a reason for each line. first_day, today: of the counts."""

    documents: int
    first_day: date
    today: date
    large: int
    large_failed: int
    small: int
    failed: int
    draft: int
    large_draft: int
    large_waiting: int


def fill(url: MysqlUrl, count: int, lines: int) -> Filled:
    """count documents of three lines, one in 200 of them failed; and four of so many lines: posted, refused, waiting
    and a draft. Raises RuntimeError when something else stands there afterwards."""
    documents.add_warehouses(url)
    with closing(store.connect(url)) as conn:
        with store.transaction(conn):
            QUERIES.make_numbers(conn)
        today = datetime.now(UTC).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
        given = {"documents": count, "today": today}
        for name, takes in BULK:
            with store.transaction(conn):
                getattr(QUERIES, name)(conn, **{key: given[key] for key in takes})
    units = database(url)
    try:
        large, large_failed = _posted(units, url, "BENCH-BESAR", lines), _refused(units, url, "BENCH-DITOLAK", lines)
        for number in range(WAITING):
            _waits(units, url, f"BENCH-TUNGGU-{number}", number)
        large_waiting = _waits(units, url, "BENCH-TUNGGU-BESAR", 3, lines)
        large_draft = drafts.keep(units.transaction, _at_waiting("BENCH-DRAF-BESAR", 4, lines), "gudang")
    finally:
        units.close()
    with closing(store.connect(url)) as conn:
        with conn.cursor() as cursor:
            cursor.execute(f"ANALYZE TABLE {', '.join(row['name'] for row in QUERIES.known(conn))}")
            cursor.fetchall()
        found = (QUERIES.number_of_documents(conn), number_of_lines(conn, large.transaksi_id))
    if found != (count + 3 + WAITING, lines):
        raise RuntimeError(f"the pages' schema holds {found}")
    first = (today - timedelta(days=(count - 1) // DOCUMENTS_A_DAY)).date()
    failed = count - count % ONE_IN_SO_MANY_FAILED
    return Filled(
        count,
        first,
        today.date(),
        large.shadow_id,
        large_failed.shadow_id,
        count - 1,
        failed,
        draft=count + 7,
        large_draft=large_draft,
        large_waiting=large_waiting.shadow_id,
    )


def number_of_lines(conn: store.Connection, transaksi_id: int) -> int:
    return int(QUERIES.number_of_lines(conn, transaksi_id=transaksi_id))


def _stored(url: MysqlUrl, nota: str, lines: int, seed: int) -> Submitted:
    return documents.store_document(url, documents.submission(nota, documents.lines(lines, seed)))


def _posted(units: Database, url: MysqlUrl, nota: str, lines: int) -> Submitted:
    stored = _stored(url, nota, lines, 1)
    with units.transaction() as tx:
        ticket = engine.take_over(tx, POST_OPNAME, stored.shadow_id)
    runner.run_to_end(POST_OPNAME, ticket, units.transaction)
    return stored


def _refused(units: Database, url: MysqlUrl, nota: str, lines: int) -> Submitted:
    stored = _stored(url, nota, lines, 2)
    with units.transaction() as tx:
        QUERIES.uncount(tx.conn, transaksi_id=stored.transaksi_id)
        ticket = engine.take_over(tx, POST_OPNAME, stored.shadow_id)
    try:
        runner.run_to_end(POST_OPNAME, ticket, units.transaction)
    except EverestError as refusal:
        if refusal.code != 422:
            raise
    return stored


def _at_waiting(nota: str, seed: int, lines: int = 1) -> Submission:
    return documents.submission(nota, documents.lines(lines, seed, prefix=nota, warehouses=[WAITING_WAREHOUSE]))


def _waits(units: Database, url: MysqlUrl, nota: str, seed: int, lines: int = 1) -> Submitted:
    stored = documents.store_document(url, _at_waiting(nota, seed, lines))
    with units.transaction() as tx:
        ticket = engine.take_over(tx, POST_OPNAME, stored.shadow_id)
    runner.run_to_end(POST_OPNAME, ticket, units.transaction)
    return stored
