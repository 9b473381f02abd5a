"""The catalogue: each text of pages and reports stands once, in pages/words.toml, in Indonesian and in English."""

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


def has(key: str) -> bool:
    return key in catalogue()
