"""JSON: one object with the header's fields and `baris`, a list of objects with the fields of a line.

Numbers are taken from their text, so 9007199254740993.1234 stays what it is; a code written as a number is refused,
because its leading zeros are gone before anybody could look.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from everest.intake.cells import FileProblem, JsonNumber, shown
from everest.intake.header import FORBIDDEN, FORBIDDEN_SENTENCE, HEADER_FIELDS, HeaderReader
from everest.intake.lines import LINE_FIELDS, REQUIRED_COLUMNS, read_line
from everest.intake.submission import MAX_LINES, Line
from everest.opname.amounts import DecimalLocale

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
            self._say(None, LINES_KEY, "tidak ada; isi dengan daftar baris: [{...}, {...}]")
            return
        if len(lines) > MAX_LINES:
            self._say(None, LINES_KEY, f"{len(lines)} baris, paling banyak {MAX_LINES}; bagi menjadi beberapa dokumen")
            return
        for baris, given in enumerate(lines, start=1):
            self._line(given, baris)

    def _line(self, given: Any, baris: int) -> None:
        if not isinstance(given, _Object):
            self._say(baris, "", f'{shown(given)} bukan objek; tulis seperti {{"kode_barang": "BRG-1", ...}}')
            return
        self._keys(given, LINE_FIELDS, baris)
        missing = [name for name in REQUIRED_COLUMNS if name not in given]
        for name in missing:
            self._say(baris, name, "tidak ada di baris ini (tulis null bila memang kosong)")
        stand_in = {"kode_barang": "-"} if "kode_barang" in missing else {}
        line = read_line({**given, **stand_in}, baris, None, self._decimal, self._problems)
        if line is not None:
            self.lines.append(line)

    def _keys(self, given: _Object, known: tuple[str, ...], baris: int | None) -> None:
        for key in given.twice:
            self._say(baris, shown(key), "nama ini ada dua kali")
        for key in given:
            if key in FORBIDDEN:
                self._say(baris, key, FORBIDDEN_SENTENCE)
            elif key not in known:
                self._say(baris, shown(key), f"nama tidak dikenal; yang dikenal: {', '.join(known)}")

    def _parse(self, content: bytes) -> _Object | None:
        for sign, most in MAX_SIGNS.items():
            found = content.count(sign)
            if found > most:
                pesan = f"tanda {sign.decode()} ada {found} kali; dokumen dengan {MAX_LINES} baris paling banyak {most}"
                self._say(None, "", f"{pesan}; bagi menjadi beberapa dokumen")
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
            self._say(None, "", f"bukan JSON: {error.msg} (kolom {error.colno})", error.lineno)
            return None
        except (ValueError, RecursionError) as error:
            reason = "susunannya terlalu dalam" if isinstance(error, RecursionError) else str(error)
            self._say(None, "", f"bukan JSON yang bisa dibaca: {reason}")
            return None
        if not isinstance(document, _Object):
            self._say(None, "", f"berkas harus berisi satu objek {{...}} dengan header dan {LINES_KEY}")
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
                    self._say(None, "", f"byte ke-{error.start + 1} bukan UTF-8; simpan berkas sebagai UTF-8", number)
        if broken > MAX_BROKEN_LINES:
            self._say(None, "", f"dan {broken - MAX_BROKEN_LINES} baris lain yang bukan UTF-8")

    def _say(self, baris: int | None, kolom: str, pesan: str, file_line: int | None = None) -> None:
        self._problems.append(FileProblem(baris, kolom, pesan, file_line))


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        found.twice = tuple(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} bukan angka")
