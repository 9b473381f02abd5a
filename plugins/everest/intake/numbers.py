"""The next transaksi_id: from the counter of table `transaksi`, for documents of ours and for their reversals."""

from __future__ import annotations

from everest.errors import Conflict
from everest.opname.workflow import POST_OPNAME
from everest.store.database import Connection, last_insert_id, load_queries
from everest.words import say

_QUERIES = load_queries("intake")

NUMBERS_TRIED = 200
"""Numbers of our counter that may turn out to be another program's before a person has to move the counter."""


def next_number(conn: Connection, nomer_nota: str, jenis: str, gudang_kode: str | None) -> int:
    """Writes the accounting document and returns its number. jenis: 'OPNAME' or 'PEMBALIKAN'. Raises Conflict when
    the counter runs through numbers that another program gave itself."""
    for _ in range(NUMBERS_TRIED):
        _QUERIES.before_number(conn)
        _QUERIES.insert_accounting_document(
            conn, transaksi_id=None, nomer_nota=nomer_nota, jenis=jenis, gudang_kode=gudang_kode
        )
        number = last_insert_id(conn)
        key = POST_OPNAME.key({"transaksi_id": number})
        taken = _QUERIES.id_is_taken(conn, transaksi_id=number, workflow=POST_OPNAME.name, idempotency_key=key)
        if not taken:
            return number
        _QUERIES.back_before_number(conn)
    raise Conflict(say("en", "refused.counter", n=NUMBERS_TRIED, last=number))
