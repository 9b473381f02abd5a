"""The stock-card side of a posting: one movement per line with a variance, and its agreement with the journal.

A line whose value rounds to 0.00 still moves stock, so it has a row; a line without variance has none. The running
balance is never stored (view v_kartu_stok), so a late movement can't make it lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, NamedTuple

from everest.opname.amounts import MONEY_CONTEXT, ZERO_MONEY
from everest.opname.journal import JournalRow, Unbalanced, sides
from everest.opname.lines import columns

if TYPE_CHECKING:
    from pandas import DataFrame

ZERO_QTY = Decimal("0.0000")


class CardRow(NamedTuple):
    """A movement: masuk or keluar is positive, in the item's unit; nilai is signed, in rupiah."""

    kode_barang: str
    lot: str
    gudang_kode: str
    masuk: Decimal
    keluar: Decimal
    harga_pokok: Decimal
    nilai: Decimal


class CardTotals(NamedTuple):
    """Sums of positive and of negative values, both >= 0, in rupiah."""

    masuk: Decimal
    keluar: Decimal


def card_rows(variance_frame: DataFrame) -> list[CardRow]:
    """The movements of a computed document, in its line order."""
    names = ("kode_barang", "lot", "gudang_kode", "selisih_qty", "harga_pokok", "nilai_debet", "nilai_kredit")
    with localcontext(MONEY_CONTEXT):
        return [
            CardRow(kode, lot, gudang, selisih, ZERO_QTY, harga, debet)
            if selisih > 0
            else CardRow(kode, lot, gudang, ZERO_QTY, selisih.copy_abs(), harga, ZERO_MONEY - kredit)
            for kode, lot, gudang, selisih, harga, debet, kredit in zip(*columns(variance_frame, *names), strict=True)
            if selisih
        ]


def mirrored_card(rows: Iterable[CardRow]) -> list[CardRow]:
    """The movements backwards, in their order: in and out swapped, the value negated, at the same cost."""
    with localcontext(MONEY_CONTEXT):
        return [row._replace(masuk=row.keluar, keluar=row.masuk, nilai=ZERO_MONEY - row.nilai) for row in rows]


def card_totals(values: Iterable[Decimal]) -> CardTotals:
    """From the signed values of the rows."""
    masuk = keluar = ZERO_MONEY
    with localcontext(MONEY_CONTEXT):
        for value in values:
            if value > 0:
                masuk += value
            else:
                keluar -= value
    return CardTotals(masuk, keluar)


def check_agreement(rows: Iterable[JournalRow], totals: CardTotals, inventory_account: str) -> None:
    """Raises Unbalanced unless the journal moves the inventory account by exactly what the stock card says,
    debits by the positive values and credits by the negative ones."""
    debit, credit = sides(row for row in rows if row.kode_akun == inventory_account)
    if (debit, credit) != totals:
        raise Unbalanced(
            f"the journal moves inventory {inventory_account} by {debit} / {credit},"
            f" the stock card by {totals.masuk} / {totals.keluar}"
        )
