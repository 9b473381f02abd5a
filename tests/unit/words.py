"""Whether a text holds words of the other language: asked of the catalogue, so that nothing is listed twice."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape

from everest.words import Language, catalogue

SHORTEST = 14
"""Characters of a piece between two holes that is surely of one language; and it has to be more than one word."""
_HOLE = re.compile(r"\{\w+\}")


@lru_cache
def pieces(language: Language) -> tuple[str, ...]:
    """What stands between the holes of the catalogue's texts in this language, and in none of the other's."""
    other = "\n".join(texts["en" if language == "id" else "id"] for texts in catalogue().values())
    found = (piece.strip(" .,;:()") for texts in catalogue().values() for piece in _HOLE.split(texts[language]))
    return tuple({piece for piece in found if len(piece) >= SHORTEST and " " in piece and piece not in other})


def foreign(language: Language, text: str) -> list[str]:
    """The pieces of the other language that stand in a text of this one, HTML or plain."""
    plain = " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())
    return [piece for piece in pieces("en" if language == "id" else "id") if piece in plain]
