"""What a document is worth: variance and value per line, exact. The only module that computes in pandas.

selisih_qty = qty_fisik - qty_sistem; value = selisih_qty * harga_pokok, rounded once per line after multiplying; a
positive value is a surplus (nilai_debet), a negative one a shortage (nilai_kredit, as a positive amount).

Columns in fixed point are computed in whole numbers by numpy (`_in_steps`). What has no place in 63 bits, or is wrong,
goes the other way: columns of Decimal objects through loops in C, whose contexts turn whatever is inexact or too large
for its column into an exception; only then are lines looked at one by one, to say which. Both give the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, DecimalException, InvalidOperation, localcontext
from itertools import repeat
from operator import mul, sub
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from everest.errors import Problem
from everest.opname.amounts import (
    CENT,
    COST,
    MONEY,
    MONEY_CONTEXT,
    QTY,
    ROUNDING_CONTEXT,
    ZERO,
    ZERO_MONEY,
    as_column,
    column_context,
    fits,
    format_number,
    format_rupiah,
    misfits,
    round_money,
    unit,
)
from everest.opname.fixed import FixedPoint
from everest.opname.lines import columns, numbers
from everest.words import say

VARIANCE_COLUMNS = ("selisih_qty", "nilai_debet", "nilai_kredit")

COST_UNIT = 10 ** COST[1]
CENT_UNIT = 10 ** (QTY[1] + COST[1] - MONEY[1])
HALF_A_CENT = CENT_UNIT // 2
LARGEST = int(np.iinfo(np.int64).max)
LARGEST_AMOUNT = (LARGEST - HALF_A_CENT) // COST_UNIT - 100
"""Of a variance, in steps: 922 million pieces on one line. What is behind the point of a cost, times that, plus a cent
and a half, fits 63 bits."""

_Numbers = list[Any]
"""Decimal or None."""


@dataclass(frozen=True)
class VarianceResult:
    """frame: the lines with VARIANCE_COLUMNS added; None on a line that can't be computed, and `validate` or `problems`
    says why. problems: variances, values and document totals that exceed their column."""

    frame: pd.DataFrame
    problems: tuple[Problem, ...]


class _Columns(NamedTuple):
    """Three FixedPoint, or three arrays of objects."""

    selisih_qty: Any
    nilai_debet: Any
    nilai_kredit: Any


def compute_variance(lines: pd.DataFrame) -> VarianceResult:
    """Adds variance and value to lines that hold baris, qty_sistem, qty_fisik and harga_pokok (Decimal or None).

    A NULL is never taken as zero: without both quantities, or without a cost where there is a variance, a line is not
    computed. Raises TypeError for a float.
    """
    inputs = ("qty_sistem", "qty_fisik", "harga_pokok")
    given = [numbers(lines, name) for name in inputs]
    if all(isinstance(column, FixedPoint) for column in given):
        in_steps = _in_steps(*given)  # type: ignore[arg-type]
        if in_steps is not None:
            return VarianceResult(lines.assign(**in_steps._asdict()), ())
    problems: list[Problem] = []
    with localcontext(MONEY_CONTEXT):
        try:
            computed, total = _at_once(*(lines[name].tolist() for name in inputs))
        except (TypeError, DecimalException):  # a NULL (or a float, which `columns` refuses); or a number too large
            baris, *values = columns(lines, "baris", *inputs)
            try:
                computed, total = _around(_null_gaps(*values), *values)
            except DecimalException:
                gaps, problems = _gaps(baris, *values)
                computed, total = _around(gaps, *values)
    if not fits(total, *MONEY):
        problems.append(Problem(None, "total_debet", say("id", "count.total_too_large", amount=format_rupiah(total))))
    return VarianceResult(lines.assign(**computed._asdict()), tuple(problems))


def totals(frame: pd.DataFrame) -> tuple[Decimal, Decimal]:
    """(surplus, shortage) of a computed frame, in rupiah, both >= 0. Raises ValueError if a line is not computed."""
    try:
        surplus, shortage = numbers(frame, "nilai_debet").total(), numbers(frame, "nilai_kredit").total()
    except TypeError:
        raise ValueError("a line without a computed value has no total") from None
    return as_column(surplus, *MONEY), as_column(shortage, *MONEY)


def _in_steps(sistem: FixedPoint, fisik: FixedPoint, harga: FixedPoint) -> _Columns | None:
    """The results in steps of their columns. None where a number on the way would exceed 63 bits, where a variance
    exceeds its column, and for a negative cost, which is refused anyway.

    A quantity comes in steps of 10**-4, a cost in steps of 10**-6, so their product has steps of 10**-10 rupiah, 10**8
    of them to a cent, and up to 37 digits. Hence the cost in two parts, rupiah and what is behind the point, whose
    products with the quantity are added only after the first is down to cents.
    """
    selisih = fisik.steps - sistem.steps  # both below 10**18
    gaps = sistem.isna() | fisik.isna() | (harga.isna() & (selisih != 0))
    selisih[gaps] = 0
    amount = np.abs(selisih)
    rupiah = harga.steps // COST_UNIT
    behind = harga.steps - rupiah * COST_UNIT
    if len(amount) and (
        int(harga.steps.min()) < 0
        or int(amount.max()) > LARGEST_AMOUNT
        or (int(amount.max()) * int(rupiah.max()) > LARGEST and (rupiah > LARGEST // np.maximum(amount, 1)).any())
    ):
        return None
    product = amount * rupiah  # in steps of 10**-4 rupiah, 100 of them to a cent
    cents = product // 100
    rest = (product - cents * 100) * COST_UNIT + amount * behind  # in steps of 10**-10 rupiah
    cents += (rest + HALF_A_CENT) // CENT_UNIT  # of amounts, so half up is half away from zero
    is_shortage = selisih < 0
    surplus, shortage = np.where(is_shortage, 0, cents), np.where(is_shortage, cents, 0)
    return _Columns(
        FixedPoint(selisih, QTY[1], gaps),
        FixedPoint(surplus, MONEY[1], gaps),
        FixedPoint(shortage, MONEY[1], gaps),
    )


def _at_once(sistem: _Numbers, fisik: _Numbers, harga: _Numbers) -> tuple[_Columns, Decimal]:
    """The results and surplus + shortage. Raises TypeError for a NULL, DecimalException if a line exceeds a column or
    holds a NaN or an infinity."""
    within_qty, within_money = column_context(QTY[0]).quantize, ROUNDING_CONTEXT.quantize
    selisih = _array(map(within_qty, map(sub, fisik, sistem), repeat(unit(QTY[1]))), len(sistem))
    nilai = _array(map(within_money, map(mul, selisih, harga), repeat(CENT)), len(sistem))
    # Signed rather than negative: a shortage that rounds to nothing is -0.00 and becomes 0.00 on both sides.
    is_shortage = np.fromiter(map(Decimal.is_signed, nilai), dtype=bool, count=len(nilai))
    debet = nilai.copy()
    debet[is_shortage] = ZERO_MONEY
    kredit = np.full(len(nilai), ZERO_MONEY, dtype=object)
    kredit[is_shortage] = -nilai[is_shortage]
    total = ZERO_MONEY + debet.sum() + kredit.sum()
    if total.is_nan():  # arithmetic lets a NaN pass in silence, up to here
        raise InvalidOperation
    return _Columns(selisih, debet, kredit), total


def _array(values: Iterable[Decimal], count: int) -> npt.NDArray[np.object_]:
    return np.fromiter(values, dtype=object, count=count)


def _around(gaps: list[int], sistem: _Numbers, fisik: _Numbers, harga: _Numbers) -> tuple[_Columns, Decimal]:
    """The same with None in every result of a line that can't be computed."""
    blanked = set(gaps)
    # 0 stands in on those lines, and for the cost of a line without variance, where it multiplies nothing.
    usable = (
        [ZERO if value is None or position in blanked else value for position, value in enumerate(column)]
        for column in (sistem, fisik, harga)
    )
    computed, total = _at_once(*usable)
    for column in computed:
        column[gaps] = None
    return computed, total


def _null_gaps(sistem: _Numbers, fisik: _Numbers, harga: _Numbers) -> list[int]:
    """Positions of the lines that can't be computed for want of a number; without variance a line needs no cost."""
    return [
        position
        for position, (book, count, cost) in enumerate(zip(sistem, fisik, harga, strict=True))
        if book is None or count is None or (cost is None and book != count)
    ]


def _gaps(baris: list[int], sistem: _Numbers, fisik: _Numbers, harga: _Numbers) -> tuple[list[int], list[Problem]]:
    """Positions of the lines that can't be computed, and the variances and values that exceed their column. A NULL, and
    an input that its own column can't hold (a NaN among them), is no problem here: `validate` names it."""
    inputs = ((sistem, QTY), (fisik, QTY), (harga, COST))
    unfit = {position for values, column in inputs for position in misfits(values, *column)}
    selisih: _Numbers = [
        None if position in unfit or book is None or count is None or (cost is None and book != count) else count - book
        for position, (book, count, cost) in enumerate(zip(sistem, fisik, harga, strict=True))
    ]
    excess = {
        position: Problem(
            int(baris[position]),
            "selisih_qty",
            say("id", "count.variance_too_large", quantity=format_number(selisih[position])),
        )
        for position in misfits(selisih, *QTY)
    }
    for position, (variance, cost) in enumerate(zip(selisih, harga, strict=True)):
        if variance and position not in excess and not _is_postable(variance * cost):
            sentence = say("id", "count.value_too_large", amount=format_number(variance * cost))
            excess[position] = Problem(int(baris[position]), "nilai", sentence)
    gaps = {position for position, variance in enumerate(selisih) if variance is None} | excess.keys()
    return sorted(gaps), [excess[position] for position in sorted(excess)]


def _is_postable(nilai: Decimal) -> bool:
    try:
        round_money(nilai)
    except OverflowError:
        return False
    return True
