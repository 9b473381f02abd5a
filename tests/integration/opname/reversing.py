"""Asking for a reversal and walking it, as the tests of reversals do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal as D
from typing import Any

from everest import reversal
from everest.reversal import Requested
from tests import builders
from tests.builders import Document, Line
from tests.integration.opname.walk import Walker

Backwards = Callable[..., Walker]


# Downwards: a number above the table's counter moves it, and the next document would meet the number of a reversal.
_transaksi_ids = itertools.count(900_000, -1)


def counted(connection: Any, lines: Sequence[Line] = builders.EXAMPLE, **header: Any) -> Document:
    return builders.document(connection, lines, **{"transaksi_id": next(_transaksi_ids), **header})


def posted(walker: Walker, connection: Any, *lines: Line, **header: Any) -> Document:
    document = counted(connection, lines or builders.EXAMPLE, **header)
    assert walker.post(document.shadow_id) == "COMPLETED"
    return document


def ask(walker: Walker, nota: str, who: str = "dewi", reason: str = "salah rak") -> Requested:
    with walker.database.transaction() as tx:
        return reversal.request(tx, nota, who, reason)


def reverse(walker: Walker, nota: str, who: str = "dewi", reason: str = "salah rak") -> Requested:
    requested = ask(walker, nota, who, reason)
    assert walker.post(requested.shadow_id) == "COMPLETED"
    return requested


def whole_books(connection: Any, posting_id: int | None = None) -> list[dict[str, Any]]:
    """Every column of every row that belongs to a posting (all postings when none is named)."""
    where = "posting_id IS NOT NULL" if posting_id is None else f"posting_id = {posting_id}"
    found = builders.rows(connection, f"SELECT * FROM jurnal WHERE {where} ORDER BY id")
    found += builders.rows(connection, f"SELECT * FROM kartu_stok WHERE {where} ORDER BY id")
    sets = "TRUE" if posting_id is None else f"id = {posting_id}"
    return found + builders.rows(connection, f"SELECT * FROM posting_sets WHERE {sets} ORDER BY id")


def per_account(connection: Any) -> dict[str, D]:
    found = builders.rows(connection, "SELECT kode_akun, SUM(debet - kredit) AS sisa FROM jurnal GROUP BY kode_akun")
    return {row["kode_akun"]: row["sisa"] for row in found}
