"""The books in MySQL as whoever only looks reads them: no statement here writes or locks a row.

A posting reads through it too (`books.MysqlBooks` adds the locks and the writes), so a preview that sees the books
through this (`rehearsal`) can't read them otherwise. Times become aware UTC at this edge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from everest.opname import fingerprint
from everest.opname.approval import ApprovalRules
from everest.opname.document import LINE_COLUMNS, Header, References, period_of
from everest.opname.freshness import Known
from everest.opname.journal import Accounts
from everest.opname.lines import POSTED_COLUMNS, columns
from everest.opname.ports import AccountingDocument, Leftovers, OlderJob, PostingSet
from everest.settings import Settings
from everest.store import numbers_to_come
from everest.store.database import Connection, load_queries
from everest.store.frames import frame_of, stored_lines
from everest.store.headers import header_of
from everest.words import say

if TYPE_CHECKING:
    from pandas import DataFrame

_QUERIES = load_queries("books")
_ROWS = load_queries("books", as_tuples=True)

VALUE_COLUMNS = (
    "baris",
    "kode_barang",
    "lot",
    "gudang_kode",
    "qty_sistem",
    "qty_fisik",
    "harga_pokok",
    "selisih_qty",
    "nilai_debet",
    "nilai_kredit",
)
MOVEMENT_COLUMNS = (
    "id",
    "kode_barang",
    "lot",
    "gudang_kode",
    "nomer_nota",
    "is_opname",
    "tanggal_wib",
    "created_at",
    "sumber",
    "masuk",
    "keluar",
)
LONGEST_POSTING = timedelta(minutes=15)
"""From the moment a stock-card row is stamped to the commit: what is left of the longest step (ten minutes by default),
and the wait for the lock of its run."""

MAX_WARNINGS = 20
MAX_NAMED = 5
"""Rows without a date that a refusal names."""


class BookReader:
    """The half of `everest.opname.ports.Books` that reads; the caller owns the transaction."""

    def __init__(self, conn: Connection, settings: Settings) -> None:
        self._conn = conn
        self._settings = settings

    def document(self, transaksi_id: int) -> Header | None:
        row = _QUERIES.document_by_transaksi(self._conn, transaksi_id=transaksi_id)
        return None if row is None else header_of(row, self._settings.foreign_zone)

    def lines(self, header: Header) -> DataFrame:
        return stored_lines(every_row(_ROWS.lines_cursor(self._conn, header_id=header.header_id)), POSTED_COLUMNS)

    def whole_lines(self, header: Header) -> DataFrame:
        """The lines with what was written beside them, for whoever shows or compares them."""
        return stored_lines(every_row(_ROWS.whole_lines_cursor(self._conn, header_id=header.header_id)), LINE_COLUMNS)

    def lines_digest(self, header: Header) -> str | None:
        rows = _ROWS.line_digests(
            self._conn,
            header_id=header.header_id,
            gudang_kode=header.gudang_kode,
            lines_per_block=fingerprint.LINES_PER_BLOCK,
        )
        return whole_digest(rows)

    def references(self, header: Header, warehouses: Iterable[str]) -> References:
        accounts = self._document_accounts(header.gudang_kode)
        codes = sorted({accounts.persediaan, accounts.laba_selisih, accounts.rugi_selisih})
        known = {row["kode_akun"]: bool(row["aktif"]) for row in _QUERIES.accounts(self._conn, codes=codes)}
        wanted = sorted({*warehouses, header.gudang_kode})
        found = {row["gudang_kode"]: bool(row["aktif"]) for row in _QUERIES.warehouses(self._conn, codes=wanted)}
        return References(found, known, accounts, self._settings.allow_zero_cost)

    def _document_accounts(self, gudang_kode: str) -> Accounts:
        own = _QUERIES.warehouse_accounts(self._conn, gudang_kode=gudang_kode) or {}
        common = Accounts()
        return Accounts(
            persediaan=own.get("akun_persediaan") or common.persediaan,
            laba_selisih=own.get("akun_laba_selisih") or common.laba_selisih,
            rugi_selisih=own.get("akun_rugi_selisih") or common.rugi_selisih,
        )

    def closed_periods(self, periods: Iterable[str]) -> frozenset[str]:
        wanted = sorted(set(periods))
        if not wanted:
            return frozenset()
        return frozenset(row["periode"] for row in _QUERIES.closed_periods(self._conn, periods=wanted))

    def limits(self, gudang_kode: str) -> tuple[Decimal | None, Decimal | None]:
        row = _QUERIES.limits(self._conn, gudang_kode=gudang_kode)
        return (None, None) if row is None else (row["batas_dokumen"], row["batas_baris"])

    def approval_rules(self) -> ApprovalRules:
        return ApprovalRules(self._settings.approval_timeout, self._settings.allow_self_approval)

    def correctors(self, transaksi_id: int) -> tuple[str, ...]:
        found = _QUERIES.correctors(self._conn, transaksi_id=transaksi_id)
        return tuple(dict.fromkeys(row["actor"] for row in found))

    def was_refused(self, transaksi_id: int) -> bool:
        return bool(_QUERIES.last_answer(self._conn, transaksi_id=transaksi_id) == "reject")

    def known(self, header: Header) -> Known:
        row = _QUERIES.announced_at(self._conn, transaksi_id=header.transaksi_id)
        if row is None:
            return Known(None)
        if row["was_judged"]:
            told = _ROWS.told_before(self._conn, transaksi_id=header.transaksi_id)
            return Known(None, tuple(sentence for sentences in told for sentence in sentences if sentence))
        at = row["announced_at"]
        if at is None:  # a zero date of an application with an empty sql_mode
            return Known(None)
        # A row whose default wrote it has the zone of that session; the later of the two readings accuses nobody.
        return Known(max(at.replace(tzinfo=zone).astimezone(UTC) for zone in (UTC, self._settings.foreign_zone)))

    def movements_since(self, header: Header, warehouses: Iterable[str]) -> DataFrame:
        utc = _naive(header.snapshot_at)
        foreign = header.snapshot_at.astimezone(self._settings.foreign_zone).replace(tzinfo=None)
        foreign_second = foreign.replace(microsecond=0)
        rows = _ROWS.movements_since_cursor(
            self._conn,
            header_id=header.header_id,
            codes=sorted(set(warehouses)),
            snapshot_utc=utc,
            snapshot_foreign=foreign,
            foreign_second=foreign_second,
            entered_from=min(utc, foreign_second),
            earliest=utc - LONGEST_POSTING,
        )
        return frame_of(every_row(rows), MOVEMENT_COLUMNS)

    def posting_of(self, nomer_nota: str, transaksi_id: int) -> PostingSet | None:
        row = _QUERIES.posting_of(self._conn, nomer_nota=nomer_nota, transaksi_id=transaksi_id)
        return None if row is None else PostingSet(**row)

    def nota_of_job(self, shadow_id: int) -> str | None:
        nota: str | None = _QUERIES.nota_of_job(self._conn, shadow_id=shadow_id)
        return nota

    def job_of_older_system(self, nomer_nota: str) -> OlderJob | None:
        row = _QUERIES.job_of_older_system(self._conn, nomer_nota=nomer_nota)
        return None if row is None else OlderJob(**row)

    def accounting_document(self, transaksi_id: int) -> AccountingDocument | None:
        row = _QUERIES.accounting_document(self._conn, transaksi_id=transaksi_id)
        return None if row is None else AccountingDocument(**row)

    def number_is_safe(self, transaksi_id: int) -> bool:
        return numbers_to_come.is_safe(self._conn, transaksi_id)

    def differences(self, header: Header, values: DataFrame) -> list[str]:
        """Sentences about the computed lines that stand already and are not these; nothing about none at all."""
        stored = every_row(_ROWS.values_of_cursor(self._conn, transaksi_id=header.transaksi_id))
        if not stored:
            return []
        names = VALUE_COLUMNS[1:]
        before = {row[0]: row[1:] for row in stored}
        now = {row[0]: row[1:] for row in zip(*columns(values, *VALUE_COLUMNS), strict=True)}
        gone = sorted(before.keys() - now.keys())
        warnings: list[str] = [say("id", "posting.line_gone", line=baris) for baris in gone]
        for baris in sorted(before.keys() & now.keys()):
            changed = [name for name, old, new in zip(names, before[baris], now[baris], strict=True) if old != new]
            if changed:
                warnings.append(say("id", "posting.line_differs", line=baris, columns=changed))
        if len(warnings) > MAX_WARNINGS:
            warnings[MAX_WARNINGS:] = [say("id", "several.more", n=len(warnings) - MAX_WARNINGS)]
        return warnings

    def leftovers(self, nomer_nota: str, transaksi_id: int, accounts: Sequence[str]) -> Leftovers:
        journal = list(
            _ROWS.journal_leftovers(
                self._conn, nomer_nota=nomer_nota, transaksi_id=transaksi_id, accounts=list(accounts)
            )
        )
        cards = list(_ROWS.stock_card_leftovers(self._conn, nomer_nota=nomer_nota, transaksi_id=transaksi_id))
        left = (("jurnal", journal), ("kartu_stok", cards))
        content = json.dumps([journal, cards], default=str)
        return Leftovers(
            journal_ids=tuple(row[0] for row in journal),
            stock_card_ids=tuple(row[0] for row in cards),
            periods=frozenset(period_of(row[1]) for row in [*journal, *cards] if row[1] is not None),
            fingerprint=hashlib.sha256(content.encode()).hexdigest(),
            undated=tuple(  # a zero date of an application with an empty sql_mode
                f"{table} {row[0]}" for table, rows in left for row in rows if row[1] is None
            )[:MAX_NAMED],
        )


def every_row(selected: AbstractContextManager[Any]) -> Sequence[tuple[Any, ...]]:
    """Every row of a select at once: row by row, 20,000 of them cost three times as much in the client."""
    with selected as cursor:
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return rows


def whole_digest(blocks: Iterable[tuple[str | None]]) -> str | None:
    """None if the database could not say it of every block."""
    digests = [digest for (digest,) in blocks]
    return None if None in digests else fingerprint.digest_of_blocks(map(str, digests))


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)
