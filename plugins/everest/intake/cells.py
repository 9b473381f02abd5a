"""One cell of a file at a time: is it what its column holds? Nothing is guessed, trimmed or rounded.

Every function returns the value or raises ValueError with a sentence for the person who wrote the file; the readers
collect those sentences for all cells and stop at none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from everest.opname.amounts import MAX_NUMBER_CHARS, DecimalLocale, as_column, parse_decimal
from everest.opname.document import DECIMAL_COLUMNS, code_flaw
from everest.words import say

# Characters, as the columns of the tables hold them.
MAX_CHARS = {
    "nomer_nota": 100,
    "submit_token": 100,
    "kode_barang": 64,
    "lot": 64,
    "gudang_kode": 40,
    "satuan": 20,
    "alasan": 255,
}
MAX_ID = 2**63 - 1
FIRST_YEAR, LAST_YEAR = 2000, 2099
"""A date outside is a typing error (0206 for 2026), not a stock count."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r" ?(?P<zone>Z|WIB|[+-][0-9]{2}:[0-9]{2})"
)
_ID = re.compile(r"[1-9][0-9]{0,18}")
_JSON_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_SHOWN = 40


@dataclass(frozen=True)
class FileProblem:
    """One thing wrong with a file. baris: line of the document, from 1 (None = header); file_line: line of the file.
    pesan: the sentence a person reads; one of ours is a `Said`, which a page tells in its reader's language."""

    baris: int | None
    kolom: str
    pesan: str
    file_line: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"baris": self.baris, "kolom": self.kolom, "pesan": str(self.pesan), "file_line": self.file_line}

    def __str__(self) -> str:
        line = [f"baris {self.baris}"] if self.baris else []
        if self.file_line:
            line.append(f"(baris {self.file_line} di berkas)" if line else f"baris {self.file_line} di berkas")
        where = ", ".join(part for part in (" ".join(line), self.kolom) if part)
        return f"{where}: {self.pesan}" if where else self.pesan


class JsonNumber(str):
    """The text of a number in a JSON file, kept as it stands there: a float would have changed it."""

    __slots__ = ()


def wrong(key: str, **values: Any) -> ValueError:
    """What is wrong with a cell, as the error that its judges raise; `said_by` has the sentence. key: of [file]."""
    return ValueError(say("id", f"file.{key}", **values))


def said_by(flaw: ValueError) -> str:
    """The sentence of an error, as what it was raised with: str() would make a plain text of it."""
    return flaw.args[0] if flaw.args and isinstance(flaw.args[0], str) else str(flaw)


def shown(value: object) -> str:
    """A value for a sentence: quoted, short, every unprintable character escaped."""
    text = str(value) if isinstance(value, JsonNumber) else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def text(value: object, column: str) -> str | None:
    """Free text (satuan, alasan), None if nothing is given."""
    given = _string(value)
    if not given:
        return None
    _bounded(given, column)
    if not given.isprintable():
        control = next((one for one in given if ord(one) < 32 or 127 <= ord(one) < 160), None)
        if control is not None:
            raise wrong("control", value=shown(given), code=f"{ord(control):04X}")
    return given


def code(value: object, column: str) -> str | None:
    """A code exactly as it stands there ('00123', 'NA', '1e5'), None if nothing is given."""
    given = _string(value)
    if given is None:
        return None
    _bounded(given, column)
    flaw = code_flaw(given)
    if flaw:
        raise ValueError(flaw)
    return given


def number(value: object, column: str, decimal: DecimalLocale | None) -> Decimal | None:
    """A quantity or cost in column scale, None if the cell is blank (not counted; never zero)."""
    precision, scale = DECIMAL_COLUMNS[column]
    if isinstance(value, JsonNumber):
        if len(value) > MAX_NUMBER_CHARS or not _JSON_NUMBER.fullmatch(value):
            raise wrong("number_length", value=shown(value))
        try:
            exact = as_column(Decimal(value), precision, scale)
        except ValueError:
            raise wrong("number_size", value=shown(value), before=precision - scale, after=scale) from None
        return abs(exact) if exact == 0 else exact
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise wrong("not_a_number", value=shown(value))
    _whole_characters(value)
    return parse_decimal(value, decimal=decimal, precision=precision, scale=scale)


def day(value: object) -> date:
    """A calendar day, written 2026-08-31."""
    given = _string(value) or ""
    if not _DATE.fullmatch(given):
        raise wrong("not_a_day", value=shown(value))
    return _real(given, given).date()


def instant(value: object) -> datetime:
    """An aware instant: day, time and zone. A time without a zone could be seven hours off, so it is refused."""
    given = _string(value) or ""
    match = _INSTANT.fullmatch(given)
    if not match:
        raise wrong("not_an_instant", value=shown(value))
    zone = {"WIB": "+07:00", "Z": "+00:00"}.get(match["zone"], match["zone"])
    return _real(f"{match['day']}T{match['time']}{zone}", given)


def identity(value: object) -> int:
    """A transaksi_id."""
    given = str(value) if isinstance(value, JsonNumber) else _string(value) or ""
    if not _ID.fullmatch(given) or int(given) > MAX_ID:
        raise wrong("not_an_identity", value=shown(value))
    return int(given)


def _real(iso: str, given: str) -> datetime:
    try:
        value = datetime.fromisoformat(iso)
    except ValueError:
        raise wrong("no_such_day", value=shown(given)) from None
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise wrong("year", value=shown(given), first=FIRST_YEAR, last=LAST_YEAR)
    return value


def _string(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, JsonNumber):
        raise wrong("typed_as_number", value=str(value))
    if not isinstance(value, str):
        raise wrong("not_text", value=shown(value))
    _whole_characters(value)
    return value


def _whole_characters(value: str) -> None:
    # The readers decode with `surrogateescape`, so that every broken byte is found in its cell.
    if not value.isascii() and _SURROGATE.search(value):
        raise wrong("not_utf8", value=shown(value))


def _bounded(value: str, column: str) -> None:
    limit = MAX_CHARS[column]
    if len(value) > limit:
        raise wrong("length", value=shown(value), n=len(value), most=limit)
