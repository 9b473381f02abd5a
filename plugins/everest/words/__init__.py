"""The catalogue: each text of pages, reports and rows stands once, in the files beside this one, in Indonesian and in
English.

documents.toml has what is said of a document, engine.toml what the machine around it says, findings.toml what the
audit finds, intake.toml what is wrong with a file and why somebody is refused, pages.toml the rest. They are read as
one, but only as far as somebody asks: a posting that ends well says one sentence of the first file.

What rows keep of a document or a failure was said in one language, and is read in either: a sentence of ours remembers
its key and what filled its holes, rows keep both beside the text (`told`), and pages say it anew.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["id", "en"]
LANGUAGES: tuple[Language, ...] = ("id", "en")

FOLDER = Path(__file__).parent
SENTENCES = "sentences"
"""The hole that holds several sentences; any other list is one of names."""
UNTELLABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What telling a row's sentence anew can raise when another version or program wrote it: with another key, other holes,
or other things in them. Its text stands beside it."""
PLAIN = frozenset({str, int})
"""Holes that are told and kept as they are."""


@lru_cache(maxsize=1)
def catalogue() -> dict[str, dict[str, str]]:
    """Texts by dotted key, each by language."""
    found: dict[str, dict[str, str]] = {}
    for file in files():
        found |= _read(file)
    return found


@lru_cache(maxsize=1)
def files() -> tuple[Path, ...]:
    return tuple(sorted(FOLDER.glob("*.toml")))


@lru_cache
def _read(file: Path) -> dict[str, dict[str, str]]:
    sections = tomllib.loads(file.read_text(encoding="utf-8"))
    return {f"{section}.{key}": texts for section, entries in sections.items() for key, texts in entries.items()}


@lru_cache(maxsize=4096)
def _texts(key: str) -> dict[str, str]:
    for file in files():
        if key in _read(file):
            return _read(file)[key]
    raise KeyError(key)


def text(language: Language, key: str, **values: Any) -> str:
    """The text of a key, its {holes} filled. Raises KeyError: a missing text is a mistake of ours."""
    found = _texts(key)[language]
    return found.format(**values) if values else found


class Said(str):
    """A sentence of the catalogue in one language, which knows its key and its holes."""

    __slots__ = ("key", "values")
    key: str
    values: dict[str, Any]

    def __deepcopy__(self, memo: dict[int, Any]) -> Said:
        return self  # a sentence never changes


def say(language: Language, key: str, **values: Any) -> Said:
    """The sentence of a key; as an error's message it can be told in the other language, too. values: what JSON holds;
    a Said among them, or what rows keep of one, is told in its reader's language as well. Raises as `text` does."""
    if PLAIN.issuperset(map(type, values.values())):  # most are, and a document may have 20,000 problems
        return _said(_texts(key)[language].format_map(values), key, values)
    plain = {name: _plain(name, value) for name, value in values.items()}
    return _said(_texts(key)[language].format_map(plain), key, {name: _kept(value) for name, value in values.items()})


def said_of(message: Any) -> dict[str, Any] | None:
    """What a row keeps of a message that is a sentence of ours: its text, key and holes as JSON; None of any other."""
    return (
        {"message": str(message), "key": message.key, "values": message.values} if isinstance(message, Said) else None
    )


def told(message: str) -> dict[str, Any]:
    """The members of an answer for its message: the text, and for a sentence of ours "said", its key and holes."""
    about = {"said": {"key": message.key, "values": message.values}} if isinstance(message, Said) else {}
    return {"message": str(message), **about}


def heard(text: str, said: Any) -> str:
    """A text that a row kept, with what it kept beside it: the same sentence again. Of an older row, or of another
    program's, the text as it stands."""
    if not isinstance(said, Mapping):
        return text
    key, values = said.get("key"), said.get("values")
    return _said(text, key, values) if isinstance(key, str) and isinstance(values, dict) else text


def again(language: Language, given: Any) -> Any:
    """A sentence of the catalogue in another language; anything else as it is."""
    if not isinstance(given, Said):
        return given
    try:
        return _again(language, {"key": given.key, "values": given.values})
    except UNTELLABLE:
        return given


def together(sentences: Iterable[str]) -> str:
    """Several sentences as one, each to be told in its reader's language; of none, ''."""
    given = list(sentences)
    if len(given) > 1:
        return say("id", "several.sentences", **{SENTENCES: given})
    return given[0] if given else ""


def some(names: Sequence[Any], most: int) -> list[Any]:
    """For a hole that holds a list of names: the first ones, and how many more there are."""
    more = len(names) - most
    return [*names[:most], say("id", "several.more", n=more)] if more > 0 else list(names)


def span(length: timedelta) -> Said:
    """A length of time, in the largest unit that says it in whole numbers."""
    seconds = length.total_seconds()
    for unit, key in ((86_400, "span.days"), (3_600, "span.hours"), (60, "span.minutes")):
        if seconds and seconds % unit == 0:
            return say("id", key, n=int(seconds // unit))
    return say("id", "span.seconds", n=int(seconds) if seconds.is_integer() else f"{seconds:g}")


def _said(text: str, key: str, values: dict[str, Any]) -> Said:
    said = Said(text)
    said.key, said.values = key, values
    return said


def _kept(value: Any) -> Any:
    if isinstance(value, Said):
        return said_of(value)
    if isinstance(value, list):
        return [_kept(one) for one in value]
    return value if value is None or isinstance(value, str | int | Mapping) else str(value)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return joint(name).join(str(_plain(name, one)) for one in value)
    return value.get("message", "") if isinstance(value, dict) else value


def _again(language: Language, value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return joint(name).join(str(_again(language, one, name)) for one in value)
    if not isinstance(value, dict):
        return value
    text = value.get("message", "")
    if isinstance(value.get("said"), dict):
        value = value["said"]
    if "key" not in value:
        return text
    holes = {hole: _again(language, one, hole) for hole, one in value["values"].items()}
    return _texts(value["key"])[language].format_map(holes)


def joint(name: str) -> str:
    """What stands between the parts of a hole of that name."""
    return "; " if name == SENTENCES else ", "


def has(key: str) -> bool:
    try:
        return bool(_texts(key))
    except KeyError:
        return False
