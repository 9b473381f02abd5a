from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everest import reports, reversal
from everest.opname.workflow import REVERSE_OPNAME
from everest.reports import Filters, Report
from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker

# Downwards: a number above the table's counter moves it, and the next document would meet the number of a reversal.
_transaksi_ids = itertools.count(900_000, -1)

Read = Callable[..., tuple[list[dict[str, Any]], Report]]


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    walker = Walker(database)
    yield walker
    walker.close()


@pytest.fixture
def read(walker: Walker) -> Read:
    """Rows of a report by column name, and the report with its totals: those of the rows that passed. Where the server
    can add up ahead of them, it has to come to the same, whatever a test asks for."""

    def read(key: str, **filters: Any) -> tuple[list[dict[str, Any]], Report]:
        with walker.database.transaction() as tx, reports.opened(tx, key, Filters(**filters)) as report:
            names = [column.name for column in report.columns]
            ahead = (report.row_count, report.totals) if report.add_up() else None
            rows = [dict(zip(names, row, strict=True)) for row in report.rows()]
            assert ahead in (None, (report.row_count, report.totals)), key
            return rows, report

    return read


@pytest.fixture
def post(walker: Walker, connection: Any) -> Callable[..., builders.Document]:
    """A document that is posted."""

    def post(*lines: builders.Line, **header: Any) -> builders.Document:
        document = builders.document(connection, lines or builders.EXAMPLE, transaksi_id=next(_transaksi_ids), **header)
        assert walker.post(document.shadow_id) == "COMPLETED", builders.shadow(connection, document.shadow_id)[
            "response"
        ]
        return document

    return post


@pytest.fixture
def reverse(database: MysqlUrl) -> Iterator[Callable[[str], str]]:
    """Takes a posted nota back, today; the nota of the reversal."""
    backwards = Walker(database, definition=REVERSE_OPNAME)

    def reverse(nota: str) -> str:
        with backwards.database.transaction() as tx:
            requested = reversal.request(tx, nota, "dewi", "salah rak")
        assert backwards.post(requested.shadow_id) == "COMPLETED"
        return requested.nomer_nota

    yield reverse
    backwards.close()
