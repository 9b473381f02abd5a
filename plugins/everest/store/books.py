"""The books in MySQL: the domain's port, on one open transaction. Times become aware UTC at this edge, and back.

Bulk writes go as one JSON array in one bound parameter: twice as quick as executemany, exact because decimals travel
as text, and available on MariaDB and MySQL without LOAD DATA's privileges. What stands in the database already is not
sent again: computed columns are joined to their lines there, and the stock card is made of the computed lines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from everest.errors import Conflict, Problem, problems_json
from everest.opname import fingerprint
from everest.opname.amounts import MONEY
from everest.opname.approval import ApprovalRules
from everest.opname.document import LINE_COLUMNS, Header, References, period_of
from everest.opname.freshness import Known
from everest.opname.journal import Accounts, JournalRow
from everest.opname.lines import POSTED_COLUMNS, columns, numbers
from everest.opname.ports import AccountingDocument, Leftovers, OlderJob, PostedTotals, PostingSet
from everest.opname.stock_card import CardTotals
from everest.settings import Settings
from everest.store import numbers_to_come
from everest.store.database import Connection, last_insert_id, load_queries, typed_errors
from everest.store.frames import frame_of, stored_lines
from everest.store.headers import header_of

if TYPE_CHECKING:
    from pandas import DataFrame

_QUERIES = load_queries("books")
_ROWS = load_queries("books", as_tuples=True)

ROWS_PER_STATEMENT = 20_000
"""About 2.5 MB of JSON: far below the default max_allowed_packet of 16 MiB."""

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

ARCHIVE_REASON = "diganti oleh posting yang menyelesaikan nota ini"
MAX_WARNINGS = 20


class MysqlBooks:
    """Implements `everest.opname.ports.Books`; the caller owns the transaction."""

    def __init__(self, conn: Connection, settings: Settings) -> None:
        self._conn = conn
        self._settings = settings

    # -------------------------------------------------------------------------------------------- documents

    def document(self, transaksi_id: int) -> Header | None:
        row = _QUERIES.document_by_transaksi(self._conn, transaksi_id=transaksi_id)
        return None if row is None else header_of(row, self._settings.foreign_zone)

    def lock_document(self, transaksi_id: int) -> Header | None:
        row = _QUERIES.lock_document(self._conn, transaksi_id=transaksi_id)
        return None if row is None else header_of(row, self._settings.foreign_zone)

    def lines(self, header: Header) -> DataFrame:
        return stored_lines(_all(_ROWS.lines_cursor(self._conn, header_id=header.header_id)), POSTED_COLUMNS)

    def whole_lines(self, header: Header) -> DataFrame:
        """The lines with what was written beside them, for whoever shows or compares them."""
        return stored_lines(_all(_ROWS.whole_lines_cursor(self._conn, header_id=header.header_id)), LINE_COLUMNS)

    def lines_digest(self, header: Header) -> str | None:
        rows = _ROWS.line_digests(
            self._conn,
            header_id=header.header_id,
            gudang_kode=header.gudang_kode,
            lines_per_block=fingerprint.LINES_PER_BLOCK,
        )
        return _whole_digest(rows)

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

    # ------------------------------------------------------------------------------------- periods and locks

    def lock_period(self, periode: str) -> str:
        status = _QUERIES.lock_period(self._conn, periode=periode)
        if status is None:
            _QUERIES.insert_period(self._conn, periode=periode)
            status = _QUERIES.lock_period(self._conn, periode=periode)
        return str(status)

    def closed_periods(self, periods: Iterable[str]) -> frozenset[str]:
        wanted = sorted(set(periods))
        if not wanted:
            return frozenset()
        return frozenset(row["periode"] for row in _QUERIES.closed_periods(self._conn, periods=wanted))

    def lock_warehouses(self, codes: Iterable[str]) -> None:
        list(_QUERIES.lock_warehouses(self._conn, codes=sorted(set(codes))))

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

    # -------------------------------------------------------------------------------------- what stands already

    def known(self, header: Header) -> Known:
        row = _QUERIES.announced_at(self._conn, transaksi_id=header.transaksi_id)
        if row is None:
            return Known(None)
        if row["has_attempts"]:
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
        return frame_of(_all(rows), MOVEMENT_COLUMNS)

    def posting_of(self, nomer_nota: str, transaksi_id: int) -> PostingSet | None:
        row = _QUERIES.posting_of(self._conn, nomer_nota=nomer_nota, transaksi_id=transaksi_id)
        return None if row is None else PostingSet(**row)

    def nota_of_job(self, shadow_id: int) -> str | None:
        nota: str | None = _QUERIES.nota_of_job(self._conn, shadow_id=shadow_id)
        return nota

    def job_of_older_system(self, nomer_nota: str) -> OlderJob | None:
        row = _QUERIES.job_of_older_system(self._conn, nomer_nota=nomer_nota)
        return None if row is None else OlderJob(**row)

    # ----------------------------------------------------------------------------------------- computed lines

    def accounting_document(self, transaksi_id: int) -> AccountingDocument | None:
        row = _QUERIES.lock_accounting_document(self._conn, transaksi_id=transaksi_id)
        return None if row is None else AccountingDocument(**row)

    def number_is_safe(self, transaksi_id: int) -> bool:
        return numbers_to_come.is_safe(self._conn, transaksi_id)

    def write_values(self, header: Header, jenis: str, instant: datetime, values: DataFrame) -> list[str]:
        warnings = self._differences(header, values)
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
        for rows in _chunks(list(zip(baris, cents, strict=True))):
            _QUERIES.insert_values(
                self._conn,
                transaksi_id=header.transaksi_id,
                header_id=header.header_id,
                gudang_kode=header.gudang_kode,
                rows=rows,
            )
        return warnings

    def _differences(self, header: Header, values: DataFrame) -> list[str]:
        stored = _all(_ROWS.values_of_cursor(self._conn, transaksi_id=header.transaksi_id))
        if not stored:
            return []
        names = VALUE_COLUMNS[1:]
        before = {row[0]: row[1:] for row in stored}
        now = {row[0]: row[1:] for row in zip(*columns(values, *VALUE_COLUMNS), strict=True)}
        warnings = [f"baris {baris} tidak ada lagi di dokumen" for baris in sorted(before.keys() - now.keys())]
        for baris in sorted(before.keys() & now.keys()):
            changed = [name for name, old, new in zip(names, before[baris], now[baris], strict=True) if old != new]
            if changed:
                warnings.append(f"baris {baris}: nilai yang sudah ada berbeda di {', '.join(changed)}")
        if len(warnings) > MAX_WARNINGS:
            warnings[MAX_WARNINGS:] = [f"dan {len(warnings) - MAX_WARNINGS} lagi"]
        return warnings

    def hold_document(self, header: Header, jenis: str, instant: datetime) -> bool:
        row = _QUERIES.hold_accounting_document(self._conn, transaksi_id=header.transaksi_id)
        return row is not None and tuple(row.values()) == (header.nomer_nota, jenis, instant, header.gudang_kode)

    def hold_values(self, header: Header) -> str | None:
        rows = _ROWS.value_digests(
            self._conn, transaksi_id=header.transaksi_id, lines_per_block=fingerprint.LINES_PER_BLOCK
        )
        return _whole_digest(rows)

    def values_match(self, header: Header, values: DataFrame) -> bool:
        stored = _all(_ROWS.hold_values_cursor(self._conn, transaksi_id=header.transaksi_id))
        return list(stored) == list(zip(*columns(values, *VALUE_COLUMNS), strict=True))

    # ---------------------------------------------------------------------------------------------- leftovers

    def leftovers(self, nomer_nota: str, transaksi_id: int, accounts: Sequence[str]) -> Leftovers:
        journal = list(
            _ROWS.journal_leftovers(
                self._conn, nomer_nota=nomer_nota, transaksi_id=transaksi_id, accounts=list(accounts)
            )
        )
        cards = list(_ROWS.stock_card_leftovers(self._conn, nomer_nota=nomer_nota, transaksi_id=transaksi_id))
        content = json.dumps([journal, cards], default=str)
        return Leftovers(
            journal_ids=tuple(row[0] for row in journal),
            stock_card_ids=tuple(row[0] for row in cards),
            periods=frozenset(period_of(row[1]) for row in [*journal, *cards]),
            fingerprint=hashlib.sha256(content.encode()).hexdigest(),
        )

    def replace_leftovers(self, leftovers: Leftovers, posting_id: int) -> None:
        for ids, archive, delete in (
            (leftovers.journal_ids, _QUERIES.archive_journal, _QUERIES.delete_journal),
            (leftovers.stock_card_ids, _QUERIES.archive_stock_card, _QUERIES.delete_stock_card),
        ):
            for start in range(0, len(ids), ROWS_PER_STATEMENT):
                some = list(ids[start : start + ROWS_PER_STATEMENT])
                archived = archive(self._conn, ids=some, posting_id=posting_id, reason=ARCHIVE_REASON)
                deleted = delete(self._conn, ids=some)
                if not archived == deleted == len(some):
                    raise Conflict(f"of {len(some)} leftover rows {archived} were archived and {deleted} deleted")

    # ------------------------------------------------------------------------------------------------ posting

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
        problems: Sequence[Problem],
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
            problems=_json(problems_json(problems)),
            replaced_lines=_json(replaced_lines),
        )


def _all(selected: AbstractContextManager[Any]) -> Sequence[tuple[Any, ...]]:
    """Every row of a select at once: row by row, 20,000 of them cost three times as much in the client."""
    with selected as cursor:
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _whole_digest(blocks: Iterable[tuple[str | None]]) -> str | None:
    """None if the database could not say it of every block."""
    digests = [digest for (digest,) in blocks]
    return None if None in digests else fingerprint.digest_of_blocks(map(str, digests))


def _json(value: Sequence[Any] | None) -> str | None:
    return json.dumps(value, ensure_ascii=False, default=str) if value else None


def _chunks(rows: Sequence[Any]) -> Iterable[str]:
    """Rows as JSON arrays of a bounded size; decimals as text."""
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        yield json.dumps(rows[start : start + ROWS_PER_STATEMENT], ensure_ascii=False, default=str)


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)
