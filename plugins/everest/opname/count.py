"""The count as a step finds it: read under lock, validated whole, computed, and what a person has to decide about it.

The first and the last step of a posting judge a document by this one function, and so does `submit --check`: what one
of them refuses, the others refuse. pandas is imported inside (through `variance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from everest.errors import DocumentRefused, Problem
from everest.opname import approval, document, freshness
from everest.opname.approval import Surprise
from everest.opname.header import Header, References
from everest.opname.journal import Accounts
from everest.opname.ports import Books

if TYPE_CHECKING:
    from pandas import DataFrame

OPNAME = "OPNAME"


@dataclass(frozen=True)
class Counted:
    """A document as read in this transaction: the header, and on first use its effective lines and the hash of both.
    A step that needs no line, as the second one normally does, reads none of the 20,000."""

    header: Header
    books: Books

    @cached_property
    def lines(self) -> DataFrame:
        return document.with_header_warehouse(self.header, self.books.lines(self.header))

    @cached_property
    def input_hash(self) -> str:
        return document.input_hash(self.header, self.lines, OPNAME)


@dataclass(frozen=True)
class Computed:
    """What a valid document says: a frame with selisih_qty, nilai_debet, nilai_kredit, and its two sums in rupiah.
    accounts: those that were found active. surprise: what a person has to decide first."""

    values: DataFrame
    surplus: Decimal
    shortage: Decimal
    baris_selisih: int
    accounts: Accounts
    surprise: Surprise


def read(books: Books, transaksi_id: int) -> Counted:
    """The document, locked until the transaction ends. Raises DocumentRefused 404 where there is none."""
    header = books.lock_document(transaksi_id)
    if header is None:
        raise DocumentRefused(f"dokumen transaksi {transaksi_id} tidak ada di so_headers_staging", code=404)
    return Counted(header, books)


def check_document(books: Books, header: Header, lines: DataFrame) -> list[Problem]:
    """Every problem that step 1 would find, for a document that is not stored yet (`submit --check`)."""
    effective = document.with_header_warehouse(header, lines)
    references = books.references(header, _warehouses(header, effective))
    _, problems = _computed(header, effective, references)
    return [*problems, *document.period_problems(header, books.closed_periods(_periods(header)))]


def checked(books: Books, counted: Counted, now: datetime, again: bool = False) -> Computed:
    """The computed document, or DocumentRefused with every problem at once. `again`: an earlier step found this very
    content valid; looks at what may have changed around it, under locks, so that it cannot before the commit."""
    header, lines = counted.header, counted.lines
    warehouses = _warehouses(header, lines)
    periods = _periods(header)
    if again:
        for period in periods:
            books.lock_period(period)
        books.lock_warehouses(warehouses)
    references = books.references(header, warehouses)
    values, data_problems = _computed(header, lines, references, is_known_valid=again)
    data_problems = [*freshness.future_problems(header, now), *data_problems]
    period_problems = document.period_problems(header, books.closed_periods(periods))
    movements = books.movements_since(header.snapshot_at, warehouses)
    stale = freshness.stale_problems(header, lines, movements)
    problems = [*data_problems, *period_problems, *stale]
    if data_problems:
        raise DocumentRefused(_count_sentence(problems), problems, 422)
    if period_problems:
        raise DocumentRefused(f"periode {', '.join(periods)} tutup", problems, 423)
    if stale:
        raise DocumentRefused("hitungan sudah basi, hitung ulang", problems, 409)
    from everest.opname import variance

    surplus, shortage = totals = variance.totals(values)
    baris_selisih = sum(map(bool, values["selisih_qty"].tolist()))
    policy = books.limits(header.gudang_kode)
    surprise = approval.surprise(header, counted.input_hash, lines, values, movements, policy, totals)
    return Computed(values, surplus, shortage, baris_selisih, references.document_accounts, surprise)


def _computed(
    header: Header, lines: DataFrame, references: References, is_known_valid: bool = False
) -> tuple[DataFrame, list[Problem]]:
    """The lines with their variance, and everything that is wrong with the data."""
    from everest.opname import variance

    result = variance.compute_variance(lines)
    problems = document.validate(header, lines, references, is_known_valid=is_known_valid)
    return result.frame, [*problems, *result.problems]


def _periods(header: Header) -> list[str]:
    """The month the document posts in; none before somebody authorised it, which is a problem of its own."""
    if header.diotorisasi_at is None:
        return []
    return [document.period_of(document.posting_instant(header))]


def _warehouses(header: Header, lines: DataFrame) -> list[str]:
    codes = {code for code in set(lines["gudang_kode"].tolist()) if code is not None and code == code}
    return sorted(codes | {header.gudang_kode})


def hash_of(counted: Counted) -> str | None:
    """Its input_hash, None where it has none."""
    try:
        return counted.input_hash
    except ValueError:
        return None  # a number that no column of ours holds: what was refused has no canonical text


def _count_sentence(problems: Sequence[Problem]) -> str:
    return f"dokumen ditolak: {len(problems)} masalah"
