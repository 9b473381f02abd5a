"""What one line would be worth: `opname.variance` one line at a time, for documents that are not posted."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from everest.opname.amounts import MONEY_CONTEXT, ZERO_MONEY, round_money


class Computed(NamedTuple):
    """None where a number is missing, or too large to be posted."""

    selisih: Decimal | None
    lebih: Decimal | None = None
    kurang: Decimal | None = None
    bersih: Decimal | None = None


def computed(sistem: Decimal | None, fisik: Decimal | None, harga: Decimal | None) -> Computed:
    """Variance, surplus, shortage and net value of a counted line. A line without variance needs no cost."""
    if sistem is None or fisik is None:
        return Computed(None)
    selisih = MONEY_CONTEXT.subtract(fisik, sistem)
    if not selisih:
        return Computed(selisih, ZERO_MONEY, ZERO_MONEY, ZERO_MONEY)
    if harga is None:
        return Computed(selisih)
    try:
        nilai = MONEY_CONTEXT.add(round_money(MONEY_CONTEXT.multiply(selisih, harga)), ZERO_MONEY)  # no -0.00
    except OverflowError:
        return Computed(selisih)
    return Computed(selisih, max(nilai, ZERO_MONEY), max(MONEY_CONTEXT.minus(nilai), ZERO_MONEY), nilai)
