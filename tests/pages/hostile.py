"""Hostile names, and what is wrong with a page that holds them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

LONG = 10_000

HOSTILE = {
    "10,000 characters": "x" * LONG,
    "long, of four bytes": "😀" * 1_000,
    "null bytes": "a\0b\0",
    "right to left": "\u202egnp.exe\u2066\u200f",
    "a formula": '=HYPERLINK("http://evil")',
    "another formula": "@SUM(1+1)*cmd|' /C calc'!A0",
    "a script": "</td><script>alert(1)</script>",
    "an attribute": "\"' onmouseover=alert(1) x=",
    "a template": "{{ 7 * 7 }}{% raw %}",
    "SQL": "' OR 1=1; -- %s %(x)s",
    "wildcards": "%_\\%",
    "half a character": "\udcff\ud800",
    "numbers that are none": "٣.1e999999-0x1",
    "control characters": "\x1b[31m\r\n\x7f\x85",
}

MARKS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\0\x1b\x7f\x85]")


class Page(HTMLParser):
    """A page as a browser takes it apart. Fields hold what somebody typed, exactly, and keep it to themselves."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.flaws: list[str] = []
        self._field = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._field = tag == "textarea"
        given = dict(attrs)
        if tag in ("img", "iframe", "object") or (tag == "script" and "src" not in given):
            self.flaws.append(tag)
        self.flaws += [name for name in given if name.startswith("on")]
        for name, value in given.items():
            if name != "value" and MARKS.search(value or ""):
                self.flaws.append(f"{tag} {name}")

    def handle_endtag(self, tag: str) -> None:
        self._field = False

    def handle_data(self, text: str) -> None:
        if not self._field and (MARKS.search(text) or "Traceback" in text or "MySQLdb" in text):
            self.flaws.append(text)


def flaws(page: str) -> list[str]:
    """Markup of theirs, marks that turn the direction of writing, a template that was run, a trace."""
    return [*Page(page).flaws, *(["template"] if "49{" in page else [])]
