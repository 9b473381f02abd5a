"""What a wait for input asks of a person, field by field: a page draws inputs of it and reads them by the same rules.

How a question is drawn, not what it means: the fields are no part of a definition's hash, and whoever answers by a
command sends JSON as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal, get_args

Kind = Literal["text", "number", "date", "choice"]
Flaw = Literal["missing", "long", "number", "thousands", "date", "choice"]

MAX_FIELDS = 50
MAX_TEXT = 2_000
"""Characters of one answer."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"-?[0-9]{1,20}([.,][0-9]{1,10})?")
_EITHER = re.compile(r"-?[1-9][0-9]{0,2}[.,][0-9]{3}")
"""1.500 is a thousand and a half to one reader, and one and a half to another."""


@dataclass(frozen=True)
class Field:
    """name: its key in the payload. label: what a person reads, the name where there is none. choices: of a choice.

    In the payload a text and a choice are text, a number is a whole number or an exact decimal, a date is a date; what
    was left empty (is_required False) is None.
    """

    name: str
    kind: Kind = "text"
    label: str | None = None
    choices: tuple[str, ...] = ()
    is_required: bool = True


def read(fields: Sequence[Field], given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Flaw]]:
    """The payload of what was filled in, and what is wrong by field; a payload with flaws is to be sent nowhere."""
    payload: dict[str, Any] = {}
    flaws: dict[str, Flaw] = {}
    for field in fields:
        value = _read(field, given.get(field.name, "").strip())
        if isinstance(value, _Wrong):
            flaws[field.name] = value.why
        else:
            payload[field.name] = value
    return payload, flaws


@dataclass(frozen=True)
class _Wrong:
    why: Flaw


def _read(field: Field, text: str) -> Any:
    if not text:
        return _Wrong("missing") if field.is_required else None
    if len(text) > MAX_TEXT:
        return _Wrong("long")
    if field.kind == "number":
        if not _NUMBER.fullmatch(text):
            return _Wrong("number")
        if _EITHER.fullmatch(text):
            return _Wrong("thousands")
        return Decimal(text.replace(",", ".")) if "." in text or "," in text else int(text)
    if field.kind == "date":
        try:
            return day(text)
        except ValueError:
            return _Wrong("date")
    if field.kind == "choice" and text not in field.choices:
        return _Wrong("choice")
    return text


def day(text: str) -> date:
    """A calendar day, written like 2026-08-31 and in no other way. Raises ValueError."""
    if not _DAY.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def problems(fields: Sequence[Field]) -> Iterator[str]:
    """What is wrong with a declaration."""
    if len(fields) > MAX_FIELDS:
        yield f"it asks for {len(fields)} fields, at most {MAX_FIELDS}"
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        yield "it names a field twice"
    for field in fields:
        if not _NAME.fullmatch(field.name):
            yield f"the field {field.name!r} needs a name of letters, digits and underscores, at most 80"
        if field.kind not in get_args(Kind):
            yield f"the field {field.name!r} is of kind {field.kind!r}, none of {', '.join(get_args(Kind))}"
        if (field.kind == "choice") != bool(field.choices):
            yield f"the field {field.name!r} has choices exactly if it is a choice"
