"""The one door to Decimal: column scales, the one rounding, and numbers as Indonesian readers and files write them.

Everything that is a quantity, a cost or an amount passes here; a float near the books is a bug. Python's default
decimal context silently rounds at 28 digits while quantity x cost needs 42, so all arithmetic runs in MONEY_CONTEXT,
which raises instead of rounding. Only `round_money` may round, and `variance` for whole columns at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import (
    ROUND_HALF_UP,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
)
from functools import lru_cache
from itertools import repeat
from typing import Literal

from everest.words import say

MONEY_CONTEXT = Context(prec=60, rounding=ROUND_HALF_UP, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
"""Exact arithmetic or an exception. Copy it (`localcontext(MONEY_CONTEXT)`), never change it."""

# (precision, scale) of the columns, as the migrations create them.
QTY = (18, 4)
COST = (24, 6)
MONEY = (24, 2)

CENT = Decimal("0.01")
ZERO = Decimal(0)
ZERO_MONEY = Decimal("0.00")

# ROUND_HALF_UP of the decimal module is "half away from zero". The precision is the money column's: a result that
# does not fit DECIMAL(24,2) raises InvalidOperation instead of reaching MySQL.
ROUNDING_CONTEXT = Context(prec=MONEY[0], rounding=ROUND_HALF_UP, traps=[InvalidOperation])

MAX_NUMBER_CHARS = 64
"""Longest text that is read as a number; the widest column needs 26."""

DecimalLocale = Literal["id", "en"]


def round_money(value: Decimal) -> Decimal:
    """`value` in rupiah with 2 decimals, half away from zero. Raises OverflowError beyond DECIMAL(24,2)."""
    try:
        return ROUNDING_CONTEXT.quantize(value, CENT)
    except InvalidOperation:
        raise OverflowError("the amount does not fit DECIMAL(24,2)") from None


@lru_cache
def column_context(precision: int) -> Context:
    """A context that can only express what a DECIMAL column of that precision holds."""
    return Context(prec=precision, rounding=ROUND_HALF_UP, traps=[Inexact, InvalidOperation])


@lru_cache
def unit(scale: int) -> Decimal:
    """The smallest step of a column: unit(4) = 0.0001."""
    return Decimal(1).scaleb(-scale)


def as_column(value: Decimal, precision: int, scale: int) -> Decimal:
    """The same number with exactly `scale` decimals. Raises ValueError when DECIMAL(precision, scale) can't hold it."""
    try:
        result = column_context(precision).quantize(value, unit(scale))
    except DecimalException:
        result = None
    if result is None or not result.is_finite():
        raise ValueError(f"{value} does not fit DECIMAL({precision},{scale})")
    return result


def fits(value: Decimal, precision: int, scale: int) -> bool:
    """Whether DECIMAL(precision, scale) holds exactly this number (trailing zeros carry no information)."""
    try:
        as_column(value, precision, scale)
    except ValueError:
        return False
    return True


def misfits(values: Sequence[Decimal | None], precision: int, scale: int) -> list[int]:
    """Positions of the values that DECIMAL(precision, scale) can't hold exactly; NaN and infinities among them.

    The whole column first, in C: nearly every column is clean, and then nothing is looked at one by one.
    """
    within = column_context(precision).quantize
    given = [value for value in values if value is not None]
    try:
        if not any(map(Decimal.is_nan, map(within, given, repeat(unit(scale))))):  # a quiet NaN passes in silence
            return []
    except DecimalException:
        pass
    return [index for index, value in enumerate(values) if value is not None and not fits(value, precision, scale)]


_PLAIN = re.compile(r"-?[0-9]+(?P<fraction>\.[0-9]+)?")
_WRITTEN = {
    "id": re.compile(r"-?(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,[0-9]+)?"),
    "en": re.compile(r"-?(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?"),
}
# Written in Indonesia the dot parts thousands, elsewhere decimals. One to three digits, not led by a zero, a dot and
# exactly three digits are a number either way.
_EITHER_WAY = re.compile(r"-?[1-9][0-9]{0,2}\.[0-9]{3}")
_HOW_TO_WRITE = {"id": "file.number_id", "en": "file.number_en", None: "file.number_plain"}
"""What is said of a text that is no number, by the locale that was declared."""


def parse_decimal(text: str, *, decimal: DecimalLocale | None, precision: int, scale: int) -> Decimal:
    """A number from a file, in column scale. Nothing is guessed.

    decimal="id": comma before the decimals, dots only between groups of three ("1.234,5").
    decimal="en": dot before the decimals, commas only between groups of three ("1,234.5").
    decimal=None: no locale declared: digits, at most one dot before the decimals, no grouping; "1.000", which could be
    a thousand, is refused.
    Spaces and tabs around the number are ignored. Raises ValueError with a sentence for the person who wrote the file.
    """
    stripped = text.strip(" \t")
    shown = repr(text if len(text) <= 40 else text[:40] + "…")
    if not stripped:
        raise ValueError(say("id", "file.number_blank"))
    pattern = _PLAIN if decimal is None else _WRITTEN[decimal]
    if len(stripped) > MAX_NUMBER_CHARS or not pattern.fullmatch(stripped):
        raise ValueError(say("id", _HOW_TO_WRITE[decimal], value=shown))
    if decimal is None and _EITHER_WAY.fullmatch(stripped):
        readings = {"one": stripped.replace(".", ""), "other": stripped.replace(".", ",")}
        raise ValueError(say("id", "file.number_either", value=shown, **readings))
    plain = stripped.replace(".", "").replace(",", ".") if decimal == "id" else stripped.replace(",", "")
    value = Decimal(plain)
    if fits(value, precision, scale):
        return as_column(value if value else ZERO, precision, scale)  # "-0" is 0
    if fits(value, MAX_NUMBER_CHARS + scale, scale):
        raise ValueError(say("id", "file.number_large", value=shown, n=precision - scale))
    raise ValueError(say("id", "file.number_decimals", value=shown, n=scale))


def parse_decimals(
    texts: Sequence[str], *, decimal: DecimalLocale | None, precision: int, scale: int
) -> list[Decimal | None] | None:
    """`parse_decimal` of a whole column, in C; '' is None. None instead of a list when a text has to be looked at by
    itself, because it is no number or just not written in the plainest way: then `parse_decimal` says what it is."""
    if max(map(len, texts), default=0) > MAX_NUMBER_CHARS:
        return None
    whole = "\n".join((*texts, ""))
    pattern = _PLAIN if decimal is None else _WRITTEN[decimal]
    if whole.count("\n") > len(texts) or not re.fullmatch(rf"(?:(?:{pattern.pattern})?\n)*+", whole):
        return None
    if decimal is None and re.search(rf"^(?:{_EITHER_WAY.pattern})$", whole, re.MULTILINE):
        return None
    whole = whole.replace(".", "").replace(",", ".") if decimal == "id" else whole.replace(",", "")
    within, zero = column_context(precision).quantize, as_column(ZERO, precision, scale)
    plain = whole.split("\n")[:-1]
    has_gaps = "" in plain
    if has_gaps:
        plain = [text or "0" for text in plain]
    exact: list[Decimal | None]
    try:
        exact = list(map(within, map(Decimal, plain), repeat(unit(scale))))
    except DecimalException:
        return None
    if not has_gaps and "-0" not in whole:
        return exact
    return [None if text == "" else value or zero for text, value in zip(texts, exact, strict=True)]  # "-0" is 0


def format_number(value: Decimal, min_decimals: int = 0) -> str:
    """As Indonesian readers write it: 1.234,5. Shows every decimal that is not a trailing zero; never rounds."""
    whole, _, fraction = f"{value:,f}".partition(".")
    fraction = fraction.rstrip("0").ljust(min_decimals, "0")
    return whole.replace(",", ".") + ("," + fraction if fraction else "")


def format_rupiah(value: Decimal) -> str:
    """'Rp 1.234.567,89', '-Rp 5,00'. At least two decimals, more only if the number has them; never rounds."""
    sign = "-" if value < 0 else ""
    return f"{sign}Rp {format_number(value.copy_abs(), 2)}"
