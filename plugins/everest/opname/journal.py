"""The general-ledger side of a posting: at most four rows per document, gross, from the rounded line values.

Surplus raises the inventory against a gain, shortage lowers it against a loss; the two are never netted, so finance
sees both. Balanced when built, and checked again with what the database stored before the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext

from everest.errors import EverestError
from everest.opname.amounts import MONEY, MONEY_CONTEXT, ZERO_MONEY, as_column


class Unbalanced(EverestError):
    """The rows to be posted do not balance; this is a fault of the program, not of the document."""


@dataclass(frozen=True)
class Accounts:
    """The three accounts a document posts to; a warehouse may have its own (table akun_gudang)."""

    persediaan: str = "1010030030"
    laba_selisih: str = "7010150"
    rugi_selisih: str = "7020020"


@dataclass(frozen=True)
class JournalRow:
    """One row of `jurnal`, in rupiah: one side is positive, the other zero. urutan: 1..4, fixed by kind of row."""

    urutan: int
    kode_akun: str
    keterangan: str
    debet: Decimal
    kredit: Decimal

    def __post_init__(self) -> None:
        if self.debet < 0 or self.kredit < 0 or (self.debet > 0) == (self.kredit > 0):
            raise Unbalanced(f"journal row {self.urutan} is not one-sided: {self.debet} / {self.kredit}")


def journal_rows(nota: str, surplus: Decimal, shortage: Decimal, accounts: Accounts) -> tuple[JournalRow, ...]:
    """The rows for the sums of nilai_debet (surplus) and nilai_kredit (shortage), both >= 0, in rupiah.

    No row for a zero amount, so a document without value has no rows at all. Raises ValueError for a negative sum or
    one that is not a DECIMAL(24,2), Unbalanced if the result would not balance.
    """
    surplus, shortage = as_column(surplus, *MONEY), as_column(shortage, *MONEY)
    if surplus < 0 or shortage < 0:
        raise ValueError(f"surplus and shortage are sums of amounts >= 0, not {surplus} and {shortage}")
    rows: list[JournalRow] = []
    if surplus:
        text = f"Selisih lebih stock opname {nota}"
        rows.append(JournalRow(1, accounts.persediaan, text, surplus, ZERO_MONEY))
        rows.append(JournalRow(2, accounts.laba_selisih, text, ZERO_MONEY, surplus))
    if shortage:
        text = f"Selisih kurang stock opname {nota}"
        rows.append(JournalRow(3, accounts.rugi_selisih, text, shortage, ZERO_MONEY))
        rows.append(JournalRow(4, accounts.persediaan, text, ZERO_MONEY, shortage))
    check_balanced(rows)
    return tuple(rows)


def sides(rows: Iterable[JournalRow]) -> tuple[Decimal, Decimal]:
    """(debits, credits) of the rows, in rupiah."""
    debit = credit = ZERO_MONEY
    with localcontext(MONEY_CONTEXT):
        for row in rows:
            debit += row.debet
            credit += row.kredit
    return debit, credit


def check_balanced(rows: Iterable[JournalRow]) -> Decimal:
    """The total of either side, in rupiah. Raises Unbalanced unless debits equal credits exactly; no tolerance."""
    debit, credit = sides(rows)
    if debit != credit:
        raise Unbalanced(f"debits {debit} are not credits {credit}")
    return debit
