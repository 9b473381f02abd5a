"""The books in MySQL: the domain's port, on one open transaction. What it reads without a lock: `book_reader`.

Bulk writes go as one JSON array in one bound parameter: twice as quick as executemany, exact because decimals travel
as text, and available on MariaDB and MySQL without LOAD DATA's privileges. What stands in the database already is not
sent again: computed columns are joined to their lines there, and the stock card is made of the computed lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from everest.errors import Conflict, Problem, problems_json
from everest.opname import fingerprint
from everest.opname.amounts import MONEY
from everest.opname.document import Header
from everest.opname.journal import JournalRow
from everest.opname.lines import columns, numbers
from everest.opname.ports import AccountingDocument, Leftovers, PostedTotals
from everest.opname.stock_card import CardTotals
from everest.store import json_rows
from everest.store.book_reader import VALUE_COLUMNS, BookReader, every_row, whole_digest
from everest.store.database import last_insert_id, load_queries, typed_errors
from everest.store.headers import header_of

if TYPE_CHECKING:
    from pandas import DataFrame

_QUERIES = load_queries("books")
_ROWS = load_queries("books", as_tuples=True)

ARCHIVE_REASON = "diganti oleh posting yang menyelesaikan nota ini"


class MysqlBooks(BookReader):
    """Implements `everest.opname.ports.Books`; the caller owns the transaction."""

    def lock_document(self, transaksi_id: int) -> Header | None:
        row = _QUERIES.lock_document(self._conn, transaksi_id=transaksi_id)
        return None if row is None else header_of(row, self._settings.foreign_zone)

    def lock_period(self, periode: str) -> str:
        status = _QUERIES.lock_period(self._conn, periode=periode)
        if status is None:
            _QUERIES.insert_period(self._conn, periode=periode)
            status = _QUERIES.lock_period(self._conn, periode=periode)
        return str(status)

    def lock_warehouses(self, codes: Iterable[str]) -> None:
        list(_QUERIES.lock_warehouses(self._conn, codes=sorted(set(codes))))

    def accounting_document(self, transaksi_id: int) -> AccountingDocument | None:
        row = _QUERIES.lock_accounting_document(self._conn, transaksi_id=transaksi_id)
        return None if row is None else AccountingDocument(**row)

    def write_values(self, header: Header, jenis: str, instant: datetime, values: DataFrame) -> list[str]:
        warnings = self.differences(header, values)
        _QUERIES.put_accounting_document(
            self._conn,
            transaksi_id=header.transaksi_id,
            nomer_nota=header.nomer_nota,
            jenis=jenis,
            tanggal_wib=instant,
            gudang_kode=header.gudang_kode,
        )
        _QUERIES.delete_values(self._conn, transaksi_id=header.transaksi_id)
        (baris,) = columns(values, "baris")
        surplus, shortage = (numbers(values, name).step_texts(*MONEY) for name in ("nilai_debet", "nilai_kredit"))
        cents = [up if down == "0" else f"-{down}" for up, down in zip(surplus, shortage, strict=True)]
        for rows in json_rows.arrays(list(zip(baris, cents, strict=True))):
            _QUERIES.insert_values(
                self._conn,
                transaksi_id=header.transaksi_id,
                header_id=header.header_id,
                gudang_kode=header.gudang_kode,
                rows=rows,
            )
        return warnings

    def hold_document(self, header: Header, jenis: str, instant: datetime) -> bool:
        row = _QUERIES.hold_accounting_document(self._conn, transaksi_id=header.transaksi_id)
        return row is not None and tuple(row.values()) == (header.nomer_nota, jenis, instant, header.gudang_kode)

    def hold_values(self, header: Header) -> str | None:
        rows = _ROWS.value_digests(
            self._conn, transaksi_id=header.transaksi_id, lines_per_block=fingerprint.LINES_PER_BLOCK
        )
        return whole_digest(rows)

    def values_match(self, header: Header, values: DataFrame) -> bool:
        stored = every_row(_ROWS.hold_values_cursor(self._conn, transaksi_id=header.transaksi_id))
        return list(stored) == list(zip(*columns(values, *VALUE_COLUMNS), strict=True))

    def leftovers(self, nomer_nota: str, transaksi_id: int, accounts: Sequence[str]) -> Leftovers:
        """What is found is held, and looked at again: another program may have changed it while we waited for it."""
        found = super().leftovers(nomer_nota, transaksi_id, accounts)
        for ids, hold in (
            (found.journal_ids, _QUERIES.hold_journal),
            (found.stock_card_ids, _QUERIES.hold_stock_card),
        ):
            for some, _ in json_rows.pieces(ids):
                list(hold(self._conn, ids=list(some)))
        is_any = found.journal_ids or found.stock_card_ids
        return super().leftovers(nomer_nota, transaksi_id, accounts) if is_any else found

    def replace_leftovers(self, leftovers: Leftovers, posting_id: int) -> None:
        for ids, archive, delete in (
            (leftovers.journal_ids, _QUERIES.archive_journal, _QUERIES.delete_journal),
            (leftovers.stock_card_ids, _QUERIES.archive_stock_card, _QUERIES.delete_stock_card),
        ):
            for some, _ in json_rows.pieces(ids):
                archived = archive(self._conn, ids=list(some), posting_id=posting_id, reason=ARCHIVE_REASON)
                deleted = delete(self._conn, ids=list(some))
                if not archived == deleted == len(some):
                    raise Conflict(f"of {len(some)} leftover rows {archived} were archived and {deleted} deleted")

    def insert_posting(
        self,
        header: Header,
        shadow_id: int,
        dag_run_id: str,
        input_hash: str,
        total: Decimal,
        baris_selisih: int,
    ) -> int:
        with typed_errors():  # the caller answers a duplicate itself, inside the transaction
            _QUERIES.insert_posting(
                self._conn,
                transaksi_id=header.transaksi_id,
                nomer_nota=header.nomer_nota,
                shadow_id=shadow_id,
                dag_run_id=dag_run_id,
                input_hash=input_hash,
                total_debet=total,
                total_kredit=total,
                baris_selisih=baris_selisih,
            )
        return last_insert_id(self._conn)

    def insert_journal(self, posting_id: int, header: Header, instant: datetime, rows: Sequence[JournalRow]) -> None:
        if rows:
            _QUERIES.insert_journal(
                self._conn,
                [
                    {
                        "posting_id": posting_id,
                        "urutan": row.urutan,
                        "transaksi_id": header.transaksi_id,
                        "nomer_nota": header.nomer_nota,
                        "tanggal_wib": instant,
                        "kode_akun": row.kode_akun,
                        "keterangan": row.keterangan,
                        "debet": row.debet,
                        "kredit": row.kredit,
                    }
                    for row in rows
                ],
            )

    def insert_stock_card(self, posting_id: int, header: Header, instant: datetime) -> None:
        _QUERIES.insert_stock_card(
            self._conn,
            posting_id=posting_id,
            transaksi_id=header.transaksi_id,
            nomer_nota=header.nomer_nota,
            tanggal_wib=instant,
        )

    def posted_totals(self, posting_id: int, inventory_account: str) -> PostedTotals:
        journal = _QUERIES.journal_total(self._conn, posting_id=posting_id, akun_persediaan=inventory_account)
        cards = _QUERIES.stock_card_total(self._conn, posting_id=posting_id)
        return PostedTotals(
            debet=journal["debet"],
            kredit=journal["kredit"],
            inventory=CardTotals(journal["persediaan_debet"], journal["persediaan_kredit"]),
            stock_card=CardTotals(cards["naik"], cards["turun"]),
            stock_card_rows=cards["baris"],
        )

    def record_attempt(
        self,
        transaksi_id: int,
        n: int,
        dag_run_id: str,
        outcome: str,
        code: int | None,
        input_hash: str | None,
        problems: Iterable[Problem],
        replaced_lines: list[dict[str, Any]] | None = None,
    ) -> None:
        _QUERIES.insert_attempt(
            self._conn,
            transaksi_id=transaksi_id,
            n=n,
            dag_run_id=dag_run_id,
            outcome=outcome,
            code=code,
            input_hash=input_hash,
            problems=_json(problems_json(list(problems))),
            replaced_lines=_json(replaced_lines),
        )


def _json(value: Sequence[Any] | None) -> str | None:
    return json.dumps(value, ensure_ascii=False, default=str) if value else None
