"""How large a number a document may bring along: the counter of table `transaksi` goes on behind the largest one, and
at the end of its column nobody gets a number any more. One typing error must not end all numbering."""

from __future__ import annotations

import re

from everest.store.database import Connection, load_queries

_QUERIES = load_queries("books")

NUMBERS_TO_COME = 100_000_000
"""What stays free behind it; more than all documents that there will ever be."""

EVERY_COLUMN_HOLDS = 7_000_000
"""Less than the smallest column of an adopted table counts to (MEDIUMINT), so that most documents cost no look."""

_COLUMN_TYPE = re.compile(r"(?P<size>medium|big|)int(?:eger)?\b(?:\([0-9]+\))?(?P<unsigned> unsigned)?")
_BITS = {"medium": 24, "": 32, "big": 64}


def is_safe(conn: Connection, transaksi_id: int) -> bool:
    """Whether it leaves enough of them. A number that stands in the table already does no further harm."""
    if transaksi_id <= EVERY_COLUMN_HOLDS or _QUERIES.number_stands(conn, transaksi_id=transaksi_id):
        return True
    column = _COLUMN_TYPE.match(_QUERIES.type_of_numbers(conn) or "")
    if column is None:
        return True  # no column that counts
    bits = _BITS[column["size"]] - (0 if column["unsigned"] else 1)
    largest = (1 << bits) - 1
    return transaksi_id <= largest - min(NUMBERS_TO_COME, largest // 10)
