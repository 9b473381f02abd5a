"""The catalogue: each text of pages and reports stands once, in pages/words.toml, in Indonesian and in English.

What rows keep of a failure was said in one language, and is read in either: a sentence of ours remembers its key and
what filled its holes, rows keep both beside the text (`said_of`), and pages say it anew.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["id", "en"]
LANGUAGES: tuple[Language, ...] = ("id", "en")

FILE = Path(__file__).parent / "pages" / "words.toml"


@lru_cache(maxsize=1)
def catalogue() -> dict[str, dict[str, str]]:
    """Texts by dotted key, each by language."""
    found: dict[str, dict[str, str]] = {}
    for section, entries in tomllib.loads(FILE.read_text(encoding="utf-8")).items():
        for key, texts in entries.items():
            found[f"{section}.{key}"] = texts
    return found


def text(language: Language, key: str, **values: Any) -> str:
    """The text of a key, its {holes} filled. Raises KeyError: a missing text is a mistake of ours."""
    found = catalogue()[key][language]
    return found.format(**values) if values else found


class Said(str):
    """A sentence of the catalogue in one language, which knows its key and its holes."""

    key: str
    values: dict[str, Any]


def say(language: Language, key: str, **values: Any) -> Said:
    """The sentence of a key; as an error's message it can be told in the other language, too. values: what JSON holds;
    a Said among them, or what rows keep of one, is told in its reader's language as well. Raises as `text` does."""
    said = Said(text(language, key, **{name: _plain(value) for name, value in values.items()}))
    said.key, said.values = key, {name: said_of(value) or value for name, value in values.items()}
    return said


def said_of(message: Any) -> dict[str, Any] | None:
    """What a row keeps of a message that is a sentence of ours: its text, key and holes as JSON; None of any other."""
    return (
        {"message": str(message), "key": message.key, "values": message.values} if isinstance(message, Said) else None
    )


def _plain(value: Any) -> Any:
    return value.get("message", "") if isinstance(value, dict) else value


def has(key: str) -> bool:
    return key in catalogue()
