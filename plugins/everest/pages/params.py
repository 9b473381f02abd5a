"""Query parameters as a person may have typed them: what makes no sense filters nothing, and never is an error."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date
from decimal import Decimal

from fastapi import Request

MAX_TEXT = 100
THE_END = 2**63 - 1

_AMOUNT = re.compile(r"[0-9]{1,22}([.,][0-9]{1,2})?")


def text(request: Request, name: str) -> str | None:
    value = request.query_params.get(name, "").replace("\0", "").strip()
    return value[:MAX_TEXT] or None


def choice(request: Request, name: str, known: Collection[str]) -> str | None:
    value = request.query_params.get(name)
    return value if value in known else None


def number(request: Request, name: str, default: int, most: int = THE_END) -> int:
    value = request.query_params.get(name, "")
    return min(int(value), most) if value.isascii() and value.isdecimal() and len(value) < 20 else default


def day(request: Request, name: str) -> date | None:
    try:
        return date.fromisoformat(request.query_params.get(name, ""))
    except ValueError:
        return None


def amount(request: Request, name: str) -> Decimal | None:
    """Rupiah, with at most two decimals after a dot or a comma."""
    value = request.query_params.get(name, "").strip()
    return Decimal(value.replace(",", ".")) if _AMOUNT.fullmatch(value) else None


def prefix(value: str | None) -> str | None:
    """A LIKE pattern for what begins with this text; an index can follow it."""
    return None if value is None else _escaped(value) + "%"


def containing(value: str | None) -> str | None:
    """A LIKE pattern for what contains this text, for the lines of one document."""
    return None if value is None else f"%{_escaped(value)}%"


def _escaped(value: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", value)
