"""What the posting steps need of the books: one open transaction, seen in the domain's own words.

Frames hold the columns of the tables they are read from, decimals as exact Decimal objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from everest.errors import Problem
from everest.opname.approval import ApprovalRules
from everest.opname.document import Header, References
from everest.opname.freshness import Known
from everest.opname.journal import JournalRow
from everest.opname.stock_card import CardTotals
from everest.workflow.ticket import Decision

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class PostingSet:
    """A completed posting. Amounts in rupiah. jenis: 'POSTING' or 'PEMBALIKAN'; dibalik_oleh: the nota of its
    reversal, None while it stands."""

    id: int
    transaksi_id: int
    nomer_nota: str
    input_hash: str
    total_debet: Decimal
    total_kredit: Decimal
    baris_selisih: int
    jenis: str = "POSTING"
    dibalik_oleh: str | None = None


@dataclass(frozen=True)
class AccountingDocument:
    """A row of `transaksi` as it stands; another program may have written it. tanggal_wib: naive WIB."""

    nomer_nota: str | None
    jenis: str | None
    tanggal_wib: datetime | None
    gudang_kode: str | None


@dataclass(frozen=True)
class OlderJob:
    """A job that an older system took for itself: it posts without a posting set, and knows no DAG run."""

    shadow_id: int
    worker_status: str

    @property
    def is_completed(self) -> bool:
        return self.worker_status == "COMPLETED"


@dataclass(frozen=True)
class Leftovers:
    """Rows that an unfinished attempt left behind: their ids, the months they stand in, and a fingerprint of their
    content by which a later step sees that they are still the same. undated: the first of those without a date,
    as 'table id'."""

    journal_ids: tuple[int, ...]
    stock_card_ids: tuple[int, ...]
    periods: frozenset[str]
    fingerprint: str
    undated: tuple[str, ...] = ()


@dataclass(frozen=True)
class PostedTotals:
    """What stands in the tables for a posting, read back: journal sides, and the inventory account's two sides."""

    debet: Decimal
    kredit: Decimal
    inventory: CardTotals
    stock_card: CardTotals
    stock_card_rows: int


class Books(Protocol):
    """Locks are taken in the order document, period, warehouses (state protocol, "Locks")."""

    def lock_document(self, transaksi_id: int) -> Header | None: ...

    def document(self, transaksi_id: int) -> Header | None: ...

    def lines(self, header: Header) -> DataFrame:
        """The POSTED_COLUMNS of the document's lines."""
        ...

    def lines_digest(self, header: Header) -> str | None:
        """`fingerprint.lines_digest` of the stored lines, made by the database without handing them out. Equal to that
        of a valid document, they are its lines; different or None, it says nothing."""
        ...

    def references(self, header: Header, warehouses: Iterable[str]) -> References: ...

    def lock_period(self, periode: str) -> str:
        """'OPEN' or 'CLOSED'; shared with other postings, exclusive against closing."""
        ...

    def closed_periods(self, periods: Iterable[str]) -> frozenset[str]: ...

    def lock_warehouses(self, codes: Iterable[str]) -> None: ...

    def limits(self, gudang_kode: str) -> tuple[Decimal | None, Decimal | None]:
        """(batas_dokumen, batas_baris)."""
        ...

    def approval_rules(self) -> ApprovalRules: ...

    def correctors(self, transaksi_id: int) -> tuple[str, ...]:
        """Who replaced the lines of this document since it was submitted, as they were logged in."""
        ...

    def was_refused(self, transaksi_id: int) -> bool:
        """Whether the last answer that a person gave about this document was a no."""
        ...

    def known(self, header: Header) -> Known:
        """What is remembered of this document from before."""
        ...

    def movements_since(self, header: Header, warehouses: Iterable[str]) -> DataFrame:
        """The stock-card rows of the document's items in these warehouses that were entered after its snapshot."""
        ...

    def posting_of(self, nomer_nota: str, transaksi_id: int) -> PostingSet | None: ...

    def nota_of_job(self, shadow_id: int) -> str | None:
        """The nota that the job's own row names; None when it names none."""

    def job_of_older_system(self, nomer_nota: str) -> OlderJob | None:
        """The job of this nota that an older system completed without a posting set, or is at work on."""
        ...

    def accounting_document(self, transaksi_id: int) -> AccountingDocument | None:
        """What stands under this number, locked until the transaction ends."""
        ...

    def number_is_safe(self, transaksi_id: int) -> bool:
        """Whether the counter of table `transaksi` can go on behind this number: it continues from the largest one, and
        at the end of its column nobody gets a number any more. One that stands there already does no further harm."""
        ...

    def write_values(self, header: Header, jenis: str, instant: datetime, values: DataFrame) -> list[str]:
        """Writes `transaksi` and `transaksi_values`; returns warnings about rows that stood there and differed."""
        ...

    def hold_document(self, header: Header, jenis: str, instant: datetime) -> bool:
        """Whether `transaksi` stands as `write_values` wrote it; then it stays so until the commit."""
        ...

    def hold_values(self, header: Header) -> str | None:
        """`fingerprint.values_digest` of the stored computed lines, made by the database; they stay as they are until
        the commit. As with `lines_digest`, only equality means something."""
        ...

    def values_match(self, header: Header, values: DataFrame) -> bool:
        """Whether the stored computed lines are these, row by row; they stay so until the commit."""
        ...

    def leftovers(self, nomer_nota: str, transaksi_id: int, accounts: Sequence[str]) -> Leftovers:
        """What earlier attempts left of a nota; it stays as it is until the commit."""
        ...

    def replace_leftovers(self, leftovers: Leftovers, posting_id: int) -> None:
        """Archives and deletes exactly these rows. Raises Conflict when one is gone."""
        ...

    def insert_posting(
        self,
        header: Header,
        shadow_id: int,
        dag_run_id: str,
        input_hash: str,
        total: Decimal,
        baris_selisih: int,
    ) -> int:
        """Raises DuplicateKey when the nota was posted meanwhile."""
        ...

    def insert_journal(
        self, posting_id: int, header: Header, instant: datetime, rows: Sequence[JournalRow]
    ) -> None: ...

    def insert_stock_card(self, posting_id: int, header: Header, instant: datetime) -> None:
        """The movements of the stored lines, as `stock_card.card_rows` has them; ask `count.values_stand` first."""
        ...

    def posted_totals(self, posting_id: int, inventory_account: str) -> PostedTotals: ...

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
    ) -> None: ...


class Reversals(Protocol):
    """What a reversal needs beside `Books`, on the same transaction."""

    def posting(self, posting_id: int) -> PostingSet | None: ...

    def reversal_of(self, posting_id: int) -> PostingSet | None: ...

    def warehouses(self, posting_id: int) -> list[str]:
        """Of the posting's document and of its stock-card rows."""
        ...

    def journal(self, posting_id: int) -> tuple[JournalRow, ...]: ...

    def insert_posting(
        self,
        transaksi_id: int,
        nomer_nota: str,
        original: PostingSet,
        shadow_id: int,
        dag_run_id: str,
        input_hash: str,
    ) -> int:
        """Raises DuplicateKey when the posting was reversed meanwhile."""
        ...

    def write_document(self, transaksi_id: int, nomer_nota: str, instant: datetime, original: PostingSet) -> None:
        """The accounting document of the reversal, and its lines: those of the original with a variance, mirrored."""
        ...

    def insert_journal(
        self, posting_id: int, transaksi_id: int, nomer_nota: str, instant: datetime, rows: Sequence[JournalRow]
    ) -> None: ...

    def mirror_stock_card(
        self, posting_id: int, transaksi_id: int, nomer_nota: str, instant: datetime, original_id: int
    ) -> None:
        """In and out swapped, the value negated, at the original cost, in the original order."""
        ...

    def what_is_left(self, original_id: int, posting_id: int) -> list[str]:
        """Accounts and stock (item, lot, warehouse) that the two postings together still move; should be none."""
        ...


class Transaction(Protocol):
    """The open transaction of a step."""

    @property
    def books(self) -> Books: ...

    @property
    def reversals(self) -> Reversals: ...


class Step(Protocol):
    """What the workflow hands to a step, as far as a posting or a reversal cares."""

    @property
    def tx(self) -> Transaction: ...

    @property
    def now(self) -> datetime: ...

    @property
    def shadow_id(self) -> int: ...

    @property
    def dag_run_id(self) -> str: ...

    @property
    def n(self) -> int: ...

    @property
    def decision(self) -> Decision | None: ...
