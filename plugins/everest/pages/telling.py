"""Sentences that rows keep (why something failed, or was not looked at), in the language of whoever reads them.

What is ours is said anew from its key and its holes (`everest.words.say`). What anybody else said stands as it was
said, marked with its language: Indonesian, which is what handlers and the domain speak, unless it says otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from everest.pages import formats, words
from everest.pages.words import Language, said_of
from everest.reports.xlsx_rows import MAX_TEXT
from ingest_consumer.errors import Reason

MAX_DEPTH = 5
"""Of failures inside failures: a nested run's, of a nested run's."""
_MARK = re.compile(r'<span (?:lang="(?:id|en)"|class="whole")>|</span>')
"""All that is not escaped in a told sentence."""
_SECTIONS = {"status": ("run", "status"), "step": ("step",), "kinds": ("wait",), "kind": ("json_kind",)}
"""Holes whose values have words of their own."""
_INSTANTS = frozenset({"at", "sent", "day", "since", "until"})
"""Holes with a day or an instant as rows keep it; pages write the day first, everywhere."""
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?=$|[ T])")
_WHOLE = re.compile(r"-?Rp [0-9.,]{1,40}|[0-9]{2}-[0-9]{2}-[0-9]{4}(?: [0-9:]{8})?(?: (?:WIB|UTC))?")
"""What no line ends in: an amount, an instant."""


def html(language: Language, kept: Any, limit: int = formats.MAX_SHOWN) -> Markup:
    """kept: {"message", "said": {"key", "values"}} or {"message", "key", "values"}; "lang" beside words of others.
    A row of a query with `message` and `said` (JSON) is one, too, and so is a problem, which says `pesan`."""
    return _told(language, kept, limit, MAX_DEPTH)


def said(language: Language, pesan: str, limit: int = formats.MAX_SHOWN) -> Markup:
    """A sentence in hand, not in a row: one of ours in the reader's language, any other as it stands, Indonesian."""
    return html(language, said_of(pesan) or {"message": pesan}, limit)


def plain(language: Language, kept: Any) -> str:
    """The same without marks, whole, for files."""
    return Markup(_MARK.sub("", _told(language, kept, MAX_TEXT, MAX_DEPTH))).unescape() if kept else ""  # nosec B704


def of_error(error: Exception) -> dict[str, Any]:
    """An error as a row would keep it."""
    message = error.args[0] if error.args else ""
    return message.kept() if isinstance(message, Reason) else said_of(message) or {"message": str(message)}


def decoded(text: Any) -> dict[str, Any]:
    """What a column holds, as JSON or as somebody's plain text, which is English then (programs wrote it)."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"message": str(text), "lang": "en"}


def _told(language: Language, kept: Any, limit: int, depth: int) -> Markup:
    if not isinstance(kept, Mapping):
        return escape(formats.shown(kept, limit))
    inner = kept.get("said")
    if isinstance(inner, str):
        inner = decoded(inner)
    said = inner if isinstance(inner, Mapping) else kept
    key, values = str(said.get("key", "")), said.get("values")
    if words.has(key) and isinstance(values, Mapping) and depth > 0:
        try:
            holes = {str(name): _hole(language, str(name), value, limit, depth) for name, value in values.items()}
            return Markup(words.text(language, key)).format_map(holes)  # the catalogue is ours; holes escape  # nosec B704
        except words.UNTELLABLE:
            pass
    message = kept.get("message", kept.get("pesan"))
    if message in (None, ""):
        return Markup()
    given = kept.get("lang")
    lang = given if given in words.LANGUAGES else "id"
    told = escape(formats.shown(message, limit))
    return told if lang == language else Markup('<span lang="{}">{}</span>').format(lang, told)


def _hole(language: Language, name: str, value: Any, limit: int, depth: int) -> Markup:
    if isinstance(value, list) and depth > 0:
        return escape(words.joint(name)).join(_hole(language, name, one, limit, depth - 1) for one in value)
    if isinstance(value, Mapping):
        return _told(language, value, limit, depth - 1)
    for section in _SECTIONS.get(name, ()):
        if words.has(f"{section}.{value}"):
            return escape(words.text(language, f"{section}.{value}").lower())
    if name in _INSTANTS and isinstance(value, str):
        value = _DAY.sub(r"\3-\2-\1", value, count=1)
    text = escape("" if value == "" else formats.shown(value, limit))
    return Markup('<span class="whole">{}</span>').format(text) if _WHOLE.fullmatch(text) else text
