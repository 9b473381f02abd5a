"""Reversals in MySQL: the domain's port on one open transaction, and the requests that stand for them.

Thousands of stock-card rows are mirrored by the database itself; they travel only to whoever looks at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from everest.opname.journal import JournalRow
from everest.opname.ports import PostingSet
from everest.opname.reversal import NEVER_CUT
from everest.opname.stock_card import CardRow
from everest.store.book_reader import every_row
from everest.store.database import Connection, last_insert_id, load_queries, typed_errors

_QUERIES = load_queries("reversal")
_ROWS = load_queries("reversal", as_tuples=True)

MAX_NAMED = 5


@dataclass(frozen=True)
class Request:
    """A reversal that somebody asked for, and where its workflow and its job stand."""

    workflow_id: int
    idempotency_key: str
    status: str
    dag_run_id: str
    shadow_id: int
    transaksi_id: int
    nomer_nota: str
    worker_status: str
    error_code: int | None
    oleh: str
    alasan: str


class ReversalReader:
    """What stands in the books of postings and their reversals, and who asked for one: no lock, no write."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def posting(self, posting_id: int) -> PostingSet | None:
        row = _QUERIES.posting(self._conn, posting_id=posting_id)
        return None if row is None else PostingSet(**row)

    def reversal_of(self, posting_id: int) -> PostingSet | None:
        row = _QUERIES.reversal_of(self._conn, posting_id=posting_id)
        return None if row is None else PostingSet(**row)

    def warehouses(self, posting_id: int) -> list[str]:
        return sorted(row["gudang_kode"] for row in _QUERIES.warehouses(self._conn, posting_id=posting_id))

    def journal(self, posting_id: int) -> tuple[JournalRow, ...]:
        return tuple(JournalRow(**row) for row in _QUERIES.journal(self._conn, posting_id=posting_id))

    def stock_card(self, posting_id: int) -> list[CardRow]:
        """The movements of a posting, in line order."""
        return [CardRow(*row) for row in every_row(_ROWS.stock_card_cursor(self._conn, posting_id=posting_id))]

    def requests(self, posting_id: int) -> list[Request]:
        """Newest first; cancelled ones included."""
        return [Request(**row) for row in _QUERIES.requests(self._conn, keys=f"{posting_id}-%")]

    def warehouse_of(self, transaksi_id: int) -> str | None:
        found: str | None = _QUERIES.warehouse_of(self._conn, transaksi_id=transaksi_id)
        return found

    def nota_is_taken(self, nomer_nota: str) -> bool:
        return bool(_QUERIES.nota_is_taken(self._conn, nomer_nota=nomer_nota))


class MysqlReversals(ReversalReader):
    """Implements `everest.opname.ports.Reversals`; the caller owns the transaction."""

    def lock_namesakes(self, nomer_nota: str) -> None:
        """One request at a time for a posting, and for all others whose reversal could get the same nota."""
        beginning = nomer_nota[:NEVER_CUT].replace("!", "!!").replace("%", "!%").replace("_", "!_")
        any_end = "%" if len(nomer_nota) > NEVER_CUT else ""
        list(_QUERIES.lock_namesakes(self._conn, notas=beginning + any_end))

    def insert_posting(
        self,
        transaksi_id: int,
        nomer_nota: str,
        original: PostingSet,
        shadow_id: int,
        dag_run_id: str,
        input_hash: str,
    ) -> int:
        with typed_errors():  # the caller answers a duplicate itself, inside the transaction
            _QUERIES.insert_posting(
                self._conn,
                transaksi_id=transaksi_id,
                nomer_nota=nomer_nota,
                membalik_id=original.id,
                shadow_id=shadow_id,
                dag_run_id=dag_run_id,
                input_hash=input_hash,
                total=original.total_debet,
                baris_selisih=original.baris_selisih,
            )
        return last_insert_id(self._conn)

    def write_document(self, transaksi_id: int, nomer_nota: str, instant: datetime, original: PostingSet) -> None:
        _QUERIES.write_document(self._conn, transaksi_id=transaksi_id, nomer_nota=nomer_nota, tanggal_wib=instant)
        _QUERIES.mirror_values(self._conn, transaksi_id=transaksi_id, original_transaksi_id=original.transaksi_id)

    def insert_journal(
        self, posting_id: int, transaksi_id: int, nomer_nota: str, instant: datetime, rows: Sequence[JournalRow]
    ) -> None:
        document = {
            "posting_id": posting_id,
            "transaksi_id": transaksi_id,
            "nomer_nota": nomer_nota,
            "tanggal_wib": instant,
        }
        if rows:
            _QUERIES.insert_journal(self._conn, [{**document, **vars(row)} for row in rows])

    def mirror_stock_card(
        self, posting_id: int, transaksi_id: int, nomer_nota: str, instant: datetime, original_id: int
    ) -> None:
        _QUERIES.mirror_stock_card(
            self._conn,
            posting_id=posting_id,
            transaksi_id=transaksi_id,
            nomer_nota=nomer_nota,
            tanggal_wib=instant,
            original_id=original_id,
        )

    def what_is_left(self, original_id: int, posting_id: int) -> list[str]:
        pair = {"original_id": original_id, "posting_id": posting_id}
        left = [f"account {row['kode_akun']}: {row['sisa']}" for row in _QUERIES.accounts_left(self._conn, **pair)]
        left += [
            f"{row['kode_barang']}/{row['lot']}/{row['gudang_kode']}: {row['qty']} worth {row['nilai']}"
            for row in _QUERIES.stock_left(self._conn, **pair)
        ]
        return left[:MAX_NAMED]
