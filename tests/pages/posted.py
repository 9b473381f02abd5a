"""Documents that went through their steps, for pages that show what came of it."""

from __future__ import annotations

import csv
import io
import itertools
from contextlib import closing
from typing import Any

import openpyxl

from everest import reversal
from everest.opname.workflow import REVERSE_OPNAME
from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker

# Downwards: a number above the table's counter moves it, and the next document would meet the number of a reversal.
_transaksi_ids = itertools.count(930_000, -1)


def walked(database: MysqlUrl, conn: Any, *lines: builders.Line, ends: str = "COMPLETED", **header: Any) -> Any:
    """A document after its steps, in the status in which they leave it."""
    found = builders.document(conn, lines or builders.EXAMPLE, transaksi_id=next(_transaksi_ids), **header)
    with closing(Walker(database)) as walker:
        assert walker.post(found.shadow_id) == ends, builders.shadow(conn, found.shadow_id)["response"]
    return found


def asked_back(database: MysqlUrl, nota: str, who: str = "dewi", reason: str = "salah rak") -> reversal.Requested:
    """A reversal on its way."""
    with closing(Walker(database, definition=REVERSE_OPNAME)) as walker, walker.database.transaction() as tx:
        return reversal.request(tx, nota, who, reason)


def taken_back(database: MysqlUrl, nota: str) -> reversal.Requested:
    """A posted reversal."""
    asked = asked_back(database, nota)
    with closing(Walker(database, definition=REVERSE_OPNAME)) as walker:
        assert walker.post(asked.shadow_id) == "COMPLETED"
    return asked


def csv_rows(content: bytes) -> list[dict[str, str]]:
    """A file as Excel with Indonesian settings reads it."""
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig")), delimiter=";"))


def xlsx_rows(content: bytes) -> list[dict[str, Any]]:
    """Sheet 1 of a workbook."""
    book: Any = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
    headings, *rows = book.worksheets[0].iter_rows(values_only=True)
    return [dict(zip(headings, row, strict=True)) for row in rows]
