"""What a valid document is worth: variance and value per line, in exact decimals. The only module that needs pandas.

selisih_qty = qty_fisik - qty_sistem; value = selisih_qty * harga_pokok, rounded once per line after multiplying; a
positive value is a surplus (nilai_debet), a negative one a shortage (nilai_kredit, as a positive amount).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from itertools import repeat
from operator import mul, sub
from typing import Any

import pandas as pd

from everest.errors import Problem
from everest.opname.amounts import (
    CENT,
    MONEY,
    MONEY_CONTEXT,
    QTY,
    ROUNDING_CONTEXT,
    ZERO_MONEY,
    as_column,
    column_context,
    fits,
    format_number,
    format_rupiah,
    round_money,
    unit,
)
from everest.opname.document import columns

VARIANCE_COLUMNS = ("selisih_qty", "nilai_debet", "nilai_kredit")


@dataclass(frozen=True)
class VarianceResult:
    """frame: the lines with VARIANCE_COLUMNS added (None on a line that can't be computed; `validate` or `problems`
    says why). problems: values and totals that exceed their column."""

    frame: pd.DataFrame
    problems: tuple[Problem, ...]


def compute_variance(lines: pd.DataFrame) -> VarianceResult:
    """Variance of lines with qty_sistem, qty_fisik and harga_pokok as Decimal or None (NULL is never taken as zero).
    Raises TypeError for a float."""
    baris, sistem, fisik, harga = columns(lines, "baris", "qty_sistem", "qty_fisik", "harga_pokok")
    problems: list[Problem] = []
    with localcontext(MONEY_CONTEXT):
        computed = [_line(*row, problems) for row in zip(baris, sistem, fisik, harga, strict=True)]
    added = {
        name: pd.Series([line[position] for line in computed], index=lines.index, dtype=object)
        for position, name in enumerate(VARIANCE_COLUMNS)
    }
    frame = lines.assign(**added)
    return VarianceResult(frame, tuple(problems))


def _line(baris: Any, sistem: Any, fisik: Any, harga: Any, problems: list[Problem]) -> tuple[Any, Any, Any]:
    if sistem is None or fisik is None or (harga is None and sistem != fisik):
        return None, None, None
    selisih = as_column(fisik - sistem, *QTY)
    nilai = round_money(selisih * (harga or 0))
    return selisih, max(nilai, ZERO_MONEY), max(-nilai, ZERO_MONEY)


def totals(frame: pd.DataFrame) -> tuple[Decimal, Decimal]:
    """(surplus, shortage) of a computed frame, in rupiah, both >= 0. Raises ValueError if a line is not computed."""
    with localcontext(MONEY_CONTEXT):
        debets, kredits = columns(frame, "nilai_debet", "nilai_kredit")
        if None in debets or None in kredits:
            raise ValueError("a line without a computed value has no total")
        return sum(debets, ZERO_MONEY), sum(kredits, ZERO_MONEY)
