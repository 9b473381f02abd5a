"""How counted lines look in a frame: the columns, their NULLs, and what a code may consist of.

Lines travel as pandas frames because reading, computing and writing go column by column; this module hands the columns
out as plain lists and does not import pandas itself, so whoever parses DAG files doesn't either.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from everest.opname.amounts import COST, QTY
from everest.opname.decimals import Decimals, Numbers
from everest.words import Said, say

if TYPE_CHECKING:
    from pandas import DataFrame

LINE_COLUMNS = (
    "baris",
    "kode_barang",
    "lot",
    "gudang_kode",
    "satuan",
    "qty_sistem",
    "qty_fisik",
    "harga_pokok",
    "alasan",
)
"""Columns of a frame of lines, as so_details_staging names them. Quantities and cost hold Decimal or None: a
`fixed.FixedPoint` as a rule, else objects (`numbers` gives either)."""

POSTED_COLUMNS = tuple(name for name in LINE_COLUMNS if name not in ("satuan", "alasan"))
"""Those of them that decide what is posted; a step reads no others."""

DECIMAL_COLUMNS = {"qty_sistem": QTY, "qty_fisik": QTY, "harga_pokok": COST}

# Code points that are drawn as nothing although they count as printable: Unicode's Default_Ignorable_Code_Point
# (fillers, joiners, variation selectors, tags), and the Braille blank.
_DRAWN_AS_NOTHING = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NULL_KINDS = frozenset({"NoneType", "NAType", "NaTType"})  # by name: pandas is not imported here


def columns(frame: DataFrame, *names: str) -> list[list[Any]]:
    """Columns as plain lists, with None for every kind of NULL that pandas has. Raises TypeError for anything but
    Decimal in a column of quantities or costs: a float was exact in the database and is not any more."""
    return [_column(frame, name) for name in names]


def numbers(frame: DataFrame, name: str) -> Numbers:
    """A column of quantities, costs or amounts as it is held. Raises TypeError as `columns` does."""
    from everest.opname.fixed import FixedPoint

    array = frame[name].array
    return array if isinstance(array, FixedPoint) else Decimals(columns(frame, name)[0])


def _column(frame: DataFrame, name: str) -> list[Any]:
    values: list[Any] = frame[name].tolist()
    kinds = set(map(type, values))
    if any(kind is float or kind.__name__ in _NULL_KINDS for kind in kinds):
        values = [None if _is_null(value) else value for value in values]
        kinds = set(map(type, values))
    if name in DECIMAL_COLUMNS and not kinds <= {Decimal, type(None)}:
        raise TypeError(f"{name} must hold Decimal or None, not {', '.join(sorted(kind.__name__ for kind in kinds))}")
    return values


def _is_null(value: Any) -> bool:
    return type(value).__name__ in _NULL_KINDS or (isinstance(value, float) and value != value)


def are_plain(codes: list[Any], *, may_be_empty: bool) -> bool:
    """Whether no code has a flaw, told from all of them at once, in C; False says nothing. A code with a space inside
    has to be looked at by itself."""
    try:
        text = "".join(codes)
    except TypeError:  # a NULL
        return False
    is_seen = text.isprintable() and (text.isascii() or not _DRAWN_AS_NOTHING.search(text))
    return is_seen and " " not in text and (may_be_empty or all(codes))


def code_flaw(code: str | None) -> Said | None:
    """What is wrong with a code as a key, or None. Spaces inside are fine; white space of any kind at an edge is not
    (the database pads with spaces, so 'A1' and 'A1 ' would meet as one key), nor is a character nobody can see:
    control characters, zero-width and direction marks, line separators, fillers, variation selectors. 'A1' followed by
    U+200B looks like A1."""
    if code is None or code == "":
        return say("id", "flaw.empty")
    if code[0].isspace() or code[-1].isspace():
        return say("id", "flaw.spaces", code=repr(code))
    if not code.isprintable():
        for character in code:
            if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
                return _unseen(repr(code), character)
    if not code.isascii():
        drawn_as_nothing = _DRAWN_AS_NOTHING.search(code)
        if drawn_as_nothing:
            return _unseen(ascii(code), drawn_as_nothing[0])
    return None


def _unseen(shown: str, character: str) -> Said:
    return say("id", "flaw.unseen", code=shown, character=f"U+{ord(character):04X}")
