"""How numbers, instants and foreign text look on a page."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from everest.opname.amounts import format_number, format_rupiah
from everest.opname.document import WIB

MAX_SHOWN = 500
"""Characters of a foreign text in a cell; the rest is a tooltip nobody needs."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def rupiah(value: Decimal | str | None) -> str:
    return "–" if value is None else format_rupiah(Decimal(value))


def quantity(value: Decimal | None) -> str:
    """Without the zeros that only say how wide the column is."""
    if value is None:
        return "–"
    sign = "-" if value < 0 else ""
    return sign + format_number(Decimal(value).copy_abs(), 0)


def whole(value: int | Decimal | None) -> str:
    return "–" if value is None else f"{int(value):,}".replace(",", ".")


def percent(value: Decimal | None) -> str:
    """Of a hundred, with the decimals that it has."""
    return "–" if value is None else format_number(value, 2) + "%"


def wib(instant: datetime | None) -> str:
    """An instant (naive = UTC, as the rows hold it) in Jakarta."""
    if instant is None:
        return "–"
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return f"{aware.astimezone(WIB):%d-%m-%Y %H:%M:%S} WIB"


def day(value: date | datetime | None) -> str:
    return "–" if value is None else f"{value:%d-%m-%Y}"


def wall(value: datetime | None) -> str:
    """A column *_wib: it says Jakarta's time already."""
    return "–" if value is None else f"{value:%d-%m-%Y %H:%M:%S}"


def iso(instant: datetime | None) -> str:
    if instant is None:
        return ""
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).isoformat(timespec="seconds")


def age(span: timedelta | None, words: dict[str, str]) -> str:
    """`words`: short names of second, minute, hour, day."""
    if span is None:
        return "–"
    seconds = max(int(span.total_seconds()), 0)
    if seconds < _MINUTE:
        return f"{seconds} {words['second']}"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} {words['minute']}"
    if seconds < _DAY:
        return f"{seconds // _HOUR} {words['hour']} {seconds % _HOUR // _MINUTE} {words['minute']}"
    return f"{seconds // _DAY} {words['day']} {seconds % _DAY // _HOUR} {words['hour']}"


def shown(value: Any, limit: int = MAX_SHOWN) -> str:
    """Foreign text as text: control characters and marks that turn the direction of writing become visible escapes."""
    text = "–" if value is None or value == "" else str(value)
    if len(text) > limit:
        text = text[:limit] + "…"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


def as_json(value: Any) -> str:
    return shown(json.dumps(value, ensure_ascii=False, indent=2, default=str), 20_000)
