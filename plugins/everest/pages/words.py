"""The catalogue as the pages use it: its texts, and the language that a person reads."""

from __future__ import annotations

from everest.words import LANGUAGES as LANGUAGES
from everest.words import UNTELLABLE as UNTELLABLE
from everest.words import Language as Language
from everest.words import Said as Said
from everest.words import again as again
from everest.words import catalogue as catalogue
from everest.words import has as has
from everest.words import joint as joint
from everest.words import said_of as said_of
from everest.words import text as text


def language_of(wanted: str | None, remembered: str | None) -> Language:
    """The one asked for, else the one asked for last time, else Indonesian."""
    for one in (wanted, remembered):
        if one == "en":
            return "en"
        if one == "id":
            return "id"
    return "id"
