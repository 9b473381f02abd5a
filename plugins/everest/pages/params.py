"""Query parameters as a person may have typed them: what makes no sense filters nothing, and never is an error. A page
with a field for it says so (`ignored`), so that nobody takes the whole list for what they asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from fastapi import Request

from everest.workflow import fields

MAX_TEXT = 100
THE_END = 2**63 - 1

_NOISE = re.compile(r"(?i)^\s*rp\.?|[\s\u00a0\u202f'_]")
_GROUPED = re.compile(r"[0-9]{1,3}(?P<mark>[.,])[0-9]{3}((?P=mark)[0-9]{3})*")
_CENTS = re.compile(r"(?P<whole>.+)[.,](?P<cents>[0-9]{1,2})")
_WHOLE_DIGITS = 22


def text(request: Request, name: str) -> str | None:
    value = request.query_params.get(name, "").replace("\0", "").strip()
    return value[:MAX_TEXT] or None


def exact(request: Request, name: str, most: int) -> str | None:
    """A value of a row, as a link of ours carries it: white space and emptiness mean something. None: not given."""
    value = request.query_params.get(name)
    return None if value is None else value[:most]


def choice(request: Request, name: str, known: Collection[str]) -> str | None:
    value = request.query_params.get(name)
    return value if value in known else None


def number(request: Request, name: str, default: int, most: int = THE_END) -> int:
    value = request.query_params.get(name, "")
    return min(int(value), most) if value.isascii() and value.isdecimal() and len(value) < 20 else default


def day(request: Request, name: str) -> date | None:
    try:
        return fields.day(request.query_params.get(name, ""))
    except ValueError:
        return None


def amount(request: Request, name: str) -> Decimal | None:
    """Rupiah as people write them: 1000000, 1.000.000, 1.000.000,50, 1,000,000.50, Rp 1 000 000. A mark before three
    digits parts thousands, one before one or two digits parts the cents."""
    text = _NOISE.sub("", request.query_params.get(name, ""))
    cents = _CENTS.fullmatch(text)
    whole, fraction = (cents["whole"], cents["cents"]) if cents else (text, "0")
    if grouped := _GROUPED.fullmatch(whole):
        if cents and text[len(whole)] == grouped["mark"]:
            return None  # 1.000.5 is neither
        whole = whole.replace(grouped["mark"], "")
    is_number = whole.isascii() and whole.isdecimal() and len(whole) <= _WHOLE_DIGITS
    return Decimal(f"{whole}.{fraction}") if is_number else None


def ignored(request: Request, read: Mapping[str, object]) -> list[str]:
    """Names of parameters that say something of which nothing was understood. read: what became of each."""
    return [name for name, value in read.items() if value is None and request.query_params.get(name, "").strip()]


def is_backwards(low: Any, high: Any) -> bool:
    """A range that nothing can be in."""
    return low is not None and high is not None and bool(low > high)


def prefix(value: str | None) -> str | None:
    """A LIKE pattern for what begins with this text; an index can follow it."""
    return None if value is None else _escaped(value) + "%"


def containing(value: str | None) -> str | None:
    """A LIKE pattern for what contains this text, for the lines of one document."""
    return None if value is None else f"%{_escaped(value)}%"


def _escaped(value: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", value)
