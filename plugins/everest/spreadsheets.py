"""What spreadsheets do to codes and numbers, and how both ways around it: written by `reports`, read by `intake`.

A spreadsheet takes text that begins with =, +, - or @ for a formula, and holds every number as a binary double. Pure.
"""

from __future__ import annotations

import re
from decimal import Decimal

TEXT_AS_IT_IS = "everest_text"
"""The property of a workbook that we wrote: an apostrophe in it is an apostrophe. In others it may be what disarmed a
formula in a CSV of ours that was saved as a workbook."""

SIGNIFICANT_DIGITS = 15
"""Every decimal of so many digits survives a double, and Excel shows and keeps no more."""

DIGITS_OF_A_DOUBLE = 17
"""A double is written with so many at most; more are digits that no spreadsheet holds."""

LARGEST_EXPONENT = 300
"""Beyond it a double loses digits, or is none."""

# Signs that begin a formula (full-width ones in Asian locales too), also behind white space and marks that nobody sees,
# which some spreadsheets skip or trim; a tab or a line break in front is disarmed whatever follows it.
_BLANK = r"[^\S\t\r\n]|[\x00-\x08\x0e-\x1f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_SIGN = r"[=+\-@＝＋－＠]"
_AT_START = rf"(?='*(?:[\t\r\n]|(?:{_BLANK})*{_SIGN}))"
# A cell may also begin behind what parts cells or rows for a spreadsheet of another locale than the file was written
# for; to that one a quotation mark in the middle of ours is one that opens a cell.
_INSIDE = rf"(?='*(?:{_BLANK}|\")*{_SIGN})"
_BEHIND = r"(?<=[,;\t\r\n])"
_TO_GUARD = re.compile(f"^{_AT_START}|{_BEHIND}{_INSIDE}")
_GUARD = re.compile(f"^'{_AT_START}|{_BEHIND}'{_INSIDE}")
_STORED = re.compile(r"-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def guarded(text: str) -> str:
    """Text of which no spreadsheet takes a piece for a formula when it opens a CSV, whichever sign it thinks parts the
    cells: an apostrophe stands before each that could be one. Where it looks guarded already it gets one more, so that
    `unguarded` gives back exactly what went in."""
    return _TO_GUARD.sub("'", text)


def unguarded(text: str) -> str:
    """The inverse of `guarded`."""
    return _GUARD.sub("", text) if "'" in text else text


def exact_double(value: Decimal) -> float | None:
    """The double that stands for exactly this number in a spreadsheet, None if there is none: more than 15 significant
    digits are kept by no spreadsheet, however the file was written."""
    double = float(value)
    is_short = len(value.as_tuple().digits) <= SIGNIFICANT_DIGITS and abs(value.adjusted()) <= LARGEST_EXPONENT
    # So few digits come back from their double by themselves; more, or huge ones, may not.
    if not is_short and (significant_digits(value) > SIGNIFICANT_DIGITS or Decimal(repr(double)) != value):
        return None
    # The second look is at the 16 digits that XlsxWriter writes.
    return double if float(f"{double:.16G}") == double else None


def decimal_of(double: float) -> Decimal | None:
    """The number that a cell shows, None if the double holds more than 15 significant digits (or is not a number):
    then what was typed is not what is stored, or the result of a calculation was never rounded."""
    if double != double or double in (float("inf"), float("-inf")):
        return None
    value = Decimal(repr(double))
    return value if significant_digits(value) <= SIGNIFICANT_DIGITS else None


def typed_number(stored: str) -> str | None:
    """The number that was typed into a cell, without an exponent, from what its file has for it; None where more than
    15 significant digits stand there, or no number."""
    if len(stored) <= SIGNIFICANT_DIGITS and _PLAIN.fullmatch(stored):
        return stored  # so few digits survive the double in between
    if not _STORED.fullmatch(stored) or _digits(stored) > DIGITS_OF_A_DOUBLE:
        return None
    value = decimal_of(float(stored))
    return None if value is None else f"{value:f}"


def significant_digits(value: Decimal) -> int:
    """Digits from the first to the last that is not zero: 0.0120 has two, 1200 has two."""
    return _digits(str(value))


def _digits(number: str) -> int:
    mantissa = number.upper().partition("E")[0]
    return len(mantissa.lstrip("-").replace(".", "").strip("0"))
