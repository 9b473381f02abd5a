"""The books as a preview's steps see them: what stands is read, what they would write stays in memory.

The second implementation of the domain's ports. The steps of a posting and of a reversal run on it as they are, so
there is no second judgement and no second arithmetic; but no statement here writes or locks a row, so the account of
the pages may do it, and no posting waits for anybody who looks. What only a write finds out (a CHECK, a trigger, a row
of the same moment) is left to the posting.

One snapshot, one document, one run through its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from everest.errors import Problem
from everest.opname import fingerprint, journal, stock_card
from everest.opname.header import Header
from everest.opname.journal import JournalRow
from everest.opname.lines import columns
from everest.opname.ports import Leftovers, PostedTotals, PostingSet
from everest.opname.stock_card import CardRow, CardTotals
from everest.settings import Settings
from everest.store.book_reader import VALUE_COLUMNS, BookReader
from everest.store.database import Connection
from everest.store.reversals import ReversalReader

if TYPE_CHECKING:
    from pandas import DataFrame

NOT_STORED = 0
"""The number of a posting that there is not; the tables begin with 1."""


@dataclass
class Written:
    """What the steps would have written. instant: naive WIB, None as long as no journal was written. rows_replaced:
    leftovers of an earlier attempt that the posting would archive."""

    instant: datetime | None = None
    journal: tuple[JournalRow, ...] = ()
    stock_card: list[CardRow] = field(default_factory=list)
    rows_replaced: int = 0

    def keep_journal(self, instant: datetime, rows: Sequence[JournalRow]) -> None:
        self.instant, self.journal = instant, tuple(rows)


class RehearsedBooks(BookReader):
    """Implements `everest.opname.ports.Books`. as_if: the header as it would stand at that moment, in place of the
    stored one (a draft that somebody authorises)."""

    def __init__(self, conn: Connection, settings: Settings, written: Written, as_if: Header | None = None) -> None:
        super().__init__(conn, settings)
        self._written = written
        self._as_if = as_if
        self._document: tuple[Any, ...] | None = None
        self._values: DataFrame | None = None
        self._read: dict[tuple[Any, ...], DataFrame] = {}

    def document(self, transaksi_id: int) -> Header | None:
        if self._as_if is not None and self._as_if.transaksi_id == transaksi_id:
            return self._as_if
        return super().document(transaksi_id)

    def lock_document(self, transaksi_id: int) -> Header | None:
        return self.document(transaksi_id)

    # Each step looks again at what may be 20,000 rows; in one snapshot it would read the same.

    def lines(self, header: Header) -> DataFrame:
        return self._once(super().lines, header)

    def movements_since(self, header: Header, warehouses: Iterable[str]) -> DataFrame:
        return self._once(super().movements_since, header, tuple(warehouses))

    def _once(self, read: Callable[..., DataFrame], *asked: Hashable) -> DataFrame:
        key = (read.__name__, *asked)
        if key not in self._read:
            self._read[key] = read(*asked)
        return self._read[key]

    def lock_period(self, periode: str) -> str:
        return "CLOSED" if self.closed_periods([periode]) else "OPEN"

    def lock_warehouses(self, codes: Iterable[str]) -> None:
        pass

    def write_values(self, header: Header, jenis: str, instant: datetime, values: DataFrame) -> list[str]:
        self._document, self._values = _named(header, jenis, instant), values
        return self.differences(header, values)

    def hold_document(self, header: Header, jenis: str, instant: datetime) -> bool:
        return self._document == _named(header, jenis, instant)

    def hold_values(self, header: Header) -> str | None:
        return None if self._values is None else fingerprint.values_digest(self._values)

    def values_match(self, header: Header, values: DataFrame) -> bool:
        return self._values is not None and columns(self._values, *VALUE_COLUMNS) == columns(values, *VALUE_COLUMNS)

    def replace_leftovers(self, leftovers: Leftovers, posting_id: int) -> None:
        self._written.rows_replaced = len(leftovers.journal_ids) + len(leftovers.stock_card_ids)

    def insert_posting(
        self,
        header: Header,
        shadow_id: int,
        dag_run_id: str,
        input_hash: str,
        total: Decimal,
        baris_selisih: int,
    ) -> int:
        return NOT_STORED

    def insert_journal(self, posting_id: int, header: Header, instant: datetime, rows: Sequence[JournalRow]) -> None:
        self._written.keep_journal(instant, rows)

    def insert_stock_card(self, posting_id: int, header: Header, instant: datetime) -> None:
        assert self._values is not None, "the stock card is made of computed lines"
        self._written.stock_card = stock_card.card_rows(self._values)

    def posted_totals(self, posting_id: int, inventory_account: str) -> PostedTotals:
        rows, card = self._written.journal, self._written.stock_card
        debet, kredit = journal.sides(rows)
        return PostedTotals(
            debet=debet,
            kredit=kredit,
            inventory=CardTotals(*journal.sides(row for row in rows if row.kode_akun == inventory_account)),
            stock_card=stock_card.card_totals(row.nilai for row in card),
            stock_card_rows=len(card),
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
        pass


def _named(header: Header, jenis: str, instant: datetime) -> tuple[Any, ...]:
    """What the row of table `transaksi` would say."""
    return header.transaksi_id, header.nomer_nota, jenis, instant, header.gudang_kode


class RehearsedReversals(ReversalReader):
    """Implements `everest.opname.ports.Reversals`."""

    def __init__(self, conn: Connection, written: Written) -> None:
        super().__init__(conn)
        self._written = written

    def journal(self, posting_id: int) -> tuple[JournalRow, ...]:
        return self._written.journal if posting_id == NOT_STORED else super().journal(posting_id)

    def insert_posting(
        self,
        transaksi_id: int,
        nomer_nota: str,
        original: PostingSet,
        shadow_id: int,
        dag_run_id: str,
        input_hash: str,
    ) -> int:
        return NOT_STORED

    def write_document(self, transaksi_id: int, nomer_nota: str, instant: datetime, original: PostingSet) -> None:
        pass

    def insert_journal(
        self, posting_id: int, transaksi_id: int, nomer_nota: str, instant: datetime, rows: Sequence[JournalRow]
    ) -> None:
        self._written.keep_journal(instant, rows)

    def mirror_stock_card(
        self, posting_id: int, transaksi_id: int, nomer_nota: str, instant: datetime, original_id: int
    ) -> None:
        self._written.stock_card = stock_card.mirrored_card(self.stock_card(original_id))

    def what_is_left(self, original_id: int, posting_id: int) -> list[str]:
        """Nothing: these rows were made of the original's own. What a table made of them only a posting can ask."""
        return []


class Rehearsal:
    """The open transaction that the steps are handed (`everest.opname.ports.Transaction`)."""

    def __init__(self, conn: Connection, settings: Settings, as_if: Header | None = None) -> None:
        self.written = Written()
        self._books = RehearsedBooks(conn, settings, self.written, as_if)
        self._conn = conn

    @property
    def books(self) -> RehearsedBooks:
        return self._books

    @cached_property
    def reversals(self) -> RehearsedReversals:
        return RehearsedReversals(self._conn, self.written)
