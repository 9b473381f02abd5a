"""JSON: one object with the header's fields and `baris`, a list of objects with the fields of a line.

Numbers are taken from their text, so 9007199254740993.1234 stays what it is; a code written as a number is refused,
because its leading zeros are gone before anybody could look.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from everest.intake.cells import FileProblem, JsonNumber, said_by, shown, wrong
from everest.intake.header import AUTHORITY, FORBIDDEN, HEADER_FIELDS, HeaderReader
from everest.intake.lines import LINE_FIELDS, REQUIRED_COLUMNS, read_line
from everest.intake.submission import MAX_LINES, Line
from everest.opname.amounts import DecimalLocale
from everest.words import said_of, say

LINES_KEY = "baris"
# Signs of the largest document, each with room for those inside of its texts. What has more of them would be gigabytes
# once it is parsed: an empty object of two bytes takes hundreds.
MAX_SIGNS = {
    b"{": 3 * MAX_LINES,
    b"[": 3 * MAX_LINES,
    b":": (len(LINE_FIELDS) + 4) * MAX_LINES,
    b",": 2 * (len(LINE_FIELDS) + 2) * MAX_LINES,
}
MAX_BROKEN_LINES = 1000
"""Lines with broken encoding that are named; a file that is not text at all has one on every line."""


class _Object(dict[str, Any]):
    """A JSON object that remembers the keys it had twice."""

    twice: tuple[str, ...] = ()


class JsonReader:
    """One reading of one file; `lines` holds what was found."""

    def __init__(self, problems: list[FileProblem], header: HeaderReader, decimal: DecimalLocale | None) -> None:
        self.lines: list[Line] = []
        self._problems = problems
        self._header = header
        self._decimal = decimal

    def read(self, content: bytes) -> None:
        document = self._parse(content)
        if document is None:
            return
        self._keys(document, (*HEADER_FIELDS, LINES_KEY), None)
        for name in HEADER_FIELDS:
            self._header.take(name, document.get(name))
        lines = document.get(LINES_KEY)
        if not isinstance(lines, list):
            self._say(None, LINES_KEY, "no_lines", example="[{...}, {...}]")
            return
        if len(lines) > MAX_LINES:
            self._say(None, LINES_KEY, "lines", n=len(lines), most=MAX_LINES)
            return
        for baris, given in enumerate(lines, start=1):
            self._line(given, baris)

    def _line(self, given: Any, baris: int) -> None:
        if not isinstance(given, _Object):
            self._say(baris, "", "not_an_object", value=shown(given), example='{"kode_barang": "BRG-1", ...}')
            return
        self._keys(given, LINE_FIELDS, baris)
        missing = [name for name in REQUIRED_COLUMNS if name not in given]
        for name in missing:
            self._say(baris, name, "missing_here")
        stand_in = {"kode_barang": "-"} if "kode_barang" in missing else {}
        line = read_line({**given, **stand_in}, baris, None, self._decimal, self._problems)
        if line is not None:
            self.lines.append(line)

    def _keys(self, given: _Object, known: tuple[str, ...], baris: int | None) -> None:
        for key in given.twice:
            self._say(baris, shown(key), "name_twice")
        for key in given:
            if key in FORBIDDEN:
                self._say(baris, key, AUTHORITY.removeprefix("file."))
            elif key not in known:
                self._say(baris, shown(key), "unknown_name", names=", ".join(known))

    def _parse(self, content: bytes) -> _Object | None:
        for sign, most in MAX_SIGNS.items():
            found = content.count(sign)
            if found > most:
                self._say(None, "", "signs", sign=sign.decode(), n=found, lines=MAX_LINES, most=most)
                return None
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._broken_lines(content)
            return None
        try:
            document = json.loads(
                text,
                object_pairs_hook=_object,
                parse_float=JsonNumber,
                parse_int=JsonNumber,
                parse_constant=_no_constant,
            )
        except json.JSONDecodeError as error:
            self._say(None, "", "not_json", error.lineno, why={"message": error.msg, "lang": "en"}, at=error.colno)
            return None
        except (ValueError, RecursionError) as error:
            ours = said_of(said_by(error)) if isinstance(error, ValueError) else say("id", "file.too_deep")
            self._say(None, "", "json_unreadable", why=ours or {"message": str(error), "lang": "en"})
            return None
        if not isinstance(document, _Object):
            self._say(None, "", "one_object", example="{...}", name=LINES_KEY)
            return None
        return document

    def _broken_lines(self, content: bytes) -> None:
        broken = 0
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                broken += 1
                if broken <= MAX_BROKEN_LINES:
                    self._say(None, "", "broken_byte", number, at=error.start + 1)
        if broken > MAX_BROKEN_LINES:
            self._say(None, "", "broken_lines", n=broken - MAX_BROKEN_LINES)

    def _say(self, baris: int | None, kolom: str, key: str, file_line: int | None = None, **values: Any) -> None:
        self._problems.append(FileProblem(baris, kolom, say("id", f"file.{key}", **values), file_line))


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        found.twice = tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return found


def _no_constant(name: str) -> Any:
    raise wrong("not_a_number", value=name)
