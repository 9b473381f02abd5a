"""State as JSON text and back: Decimal, date and datetime go in and come out as themselves.

A tagged value is an object with one key that begins with `$`. A user's own object with such a key is wrapped, so
that nothing a handler returns can be mistaken for a tag.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

_TAGS: dict[str, Callable[[str], Any]] = {
    "$decimal": Decimal,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$int": int,
}
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
"""A JSON column of MySQL makes a float of a whole number beyond."""


def dumps(value: Any) -> str:
    """Raises TypeError for a value that JSON and the tags cannot hold, ValueError for NaN and infinities."""
    return json.dumps(_pack(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def canonical(value: Any) -> str:
    """One text per value, whatever the order of its keys: 1, true and 1.0 are three values, a tuple is a list."""
    return json.dumps(_pack(value), ensure_ascii=False, allow_nan=False, sort_keys=True)


def loads(text: str | bytes | None) -> Any:
    return None if text is None else _unpack(json.loads(text))


def as_stored(value: Any) -> Any:
    """What is read back of this value, to compare with what was read: a tuple is a list."""
    return loads(dumps(value))


def _pack(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, datetime):
        return {"$datetime": _readable(value.isoformat(), datetime.fromisoformat)}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"state keys are text, not {type(key).__name__}: {key!r}")
        packed = {key: _pack(item) for key, item in value.items()}
        return {"$object": packed} if any(key.startswith("$") for key in packed) else packed
    if isinstance(value, list | tuple):
        return [_pack(item) for item in value]
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return {"$int": str(value)}
    return value


def _readable(text: str, read: Callable[[str], Any]) -> str:
    """pandas' NaT is a datetime that nobody can read back; a state that holds one would end every look at its run."""
    read(text)
    return text


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key == "$object":
            return {name: _unpack(inner) for name, inner in item.items()}
        if key in _TAGS:
            return _TAGS[key](item)
    return {key: _unpack(item) for key, item in value.items()}
