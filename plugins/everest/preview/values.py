"""What a preview tells: the outcome, the rows, and the sums that somebody checks them by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from everest.errors import Problem
from everest.opname import journal
from everest.opname.journal import JournalRow
from everest.opname.stock_card import CardRow, CardTotals, card_totals


class Outcome(StrEnum):
    """What a posting would end as."""

    POSTS = "posts"
    NEEDS_DECISION = "needs_decision"
    """A person has to decide first; the journal is what an approval would post, where that can be computed."""
    REFUSED = "refused"
    POSTED_ALREADY = "posted_already"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class JournalLine(JournalRow):
    """A journal row with the name of its account."""

    nama_akun: str = ""


class AccountTotal(NamedTuple):
    """What a posting moves on one account, in rupiah."""

    kode_akun: str
    nama_akun: str
    debet: Decimal
    kredit: Decimal


@dataclass(frozen=True)
class Preview:
    """What posting the document would do now.

    shadow_id: its job, None for a draft. code, message: as the document's response would have them (Indonesian).
    problems: what refuses it; reasons: what a person has to decide; warnings: what is said and posted all the same.
    is_authorised_first: it waits for a second person, and this is what their authorisation of this moment would post.
    tanggal_wib: the posting instant, naive WIB, None where nothing is posted. journal, stock_card: what would stand in
    the books, or stands there already. rows_changed: rows of the books that would be added or taken out (posting set,
    journal, stock card).
    """

    nomer_nota: str
    transaksi_id: int
    shadow_id: int | None
    worker_status: str
    outcome: Outcome
    code: int
    message: str
    problems: tuple[Problem, ...] = ()
    reasons: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    is_authorised_first: bool = False
    posting_id: int | None = None
    tanggal_wib: datetime | None = None
    journal: tuple[JournalLine, ...] = ()
    stock_card: tuple[CardRow, ...] = ()
    rows_changed: int = 0

    @property
    def total_debet(self) -> Decimal:
        return journal.sides(self.journal)[0]

    @property
    def total_kredit(self) -> Decimal:
        return journal.sides(self.journal)[1]

    @property
    def accounts(self) -> list[AccountTotal]:
        """Each account once, in the order of the journal."""
        names = {row.kode_akun: row.nama_akun for row in self.journal}
        return [
            AccountTotal(kode, nama, *journal.sides(row for row in self.journal if row.kode_akun == kode))
            for kode, nama in names.items()
        ]

    @property
    def card_totals(self) -> CardTotals:
        """Values that go in and out with the stock, in rupiah; equal to the two sides of the inventory account."""
        return card_totals(row.nilai for row in self.stock_card)

    def as_json(self) -> dict[str, Any]:
        """Everything by its name: decimals as text, the posting instant as WIB text."""
        plain = {
            **vars(self),
            "problems": [problem.as_json() for problem in self.problems],
            "reasons": [reason.as_json() for reason in self.reasons],
            "warnings": list(self.warnings),
            "tanggal_wib": None if self.tanggal_wib is None else self.tanggal_wib.isoformat(sep=" "),
            "journal": [_texts(vars(row).items()) for row in self.journal],
            "accounts": [_texts(row._asdict().items()) for row in self.accounts],
            "stock_card": [_texts(row._asdict().items()) for row in self.stock_card],
            "total_debet": str(self.total_debet),
            "total_kredit": str(self.total_kredit),
            "baris_selisih": len(self.stock_card),
        }
        return {"status": "success" if self.outcome is not Outcome.REFUSED else "error", **plain}


def _texts(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in values}
