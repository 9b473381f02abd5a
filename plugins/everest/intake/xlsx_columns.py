"""A sheet in which nothing is out of the ordinary, taken column by column (`plain_columns`).

What programs write for a table of texts and numbers is the same few tags again and again. Here the XML of a sheet, or
of the texts it shares, is taken apart by exactly these: every character belongs to one of them, or this ends, and
`xlsx_book` reads element by element what stands there. Formulas, dates, rich texts, comments and whatever is out of its
order are its business. expat has passed the whole part before, so what looks like a tag is one.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterator, Sequence
from itertools import islice, product
from string import ascii_uppercase
from typing import NamedTuple
from xml.parsers.expat import ExpatError, XMLParserType

from everest.intake import plain_columns
from everest.intake.plain_columns import Column, PlainTable
from everest.intake.submission import MAX_LINES, Line
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS
from everest.spreadsheets import typed_number

MAX_BYTES = 16 * 1024 * 1024
"""Of a part that is held whole: 50,000 lines of a usual sheet."""

MAX_ELEMENT_CHARS = 64 * 1024
"""Of one row or one text."""

MAX_ROWS = 1_048_576
"""Of an Excel sheet; a file may claim any row number."""

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_ATTRIBUTES = r'(?: [\w:.-]+="[^"<>&]*")*'
_BEGINNING = re.compile(
    r"(?:<\?xml version=[\"']1\.0[\"'](?: encoding=[\"'](?i:utf-8)[\"'])?(?: standalone=[\"'][a-z]+[\"'])? ?\?>)?\s*"
    rf"<(?P<root>\w+){_ATTRIBUTES}>"
)
_DEFAULT_NAMESPACE = re.compile(r"xmlns(?!:)")

_EMPTY_ROWS = re.compile(rf'(?:<row r="[0-9]{{1,7}}"{_ATTRIBUTES}/>)*')
_OPENING = re.compile(rf'{_EMPTY_ROWS.pattern}<row r="[0-9]{{1,7}}"{_ATTRIBUTES}>')
_ROW_NUMBER = re.compile(r'<row r="([0-9]+)"')
_T = r'<t(?: xml:space="preserve")?>([^<]*)</t>'
_CELL = re.compile(
    r'<c r="([A-Z]{1,3})([0-9]{1,7})"(?: s="([0-9]{1,6})")?(?: t="(n|s|inlineStr)")?'
    rf"(?:/>|>(?:<v>([^<&]*)</v>|<is>{_T}</is>)?</c>)"
)
_STEP = 1 + _CELL.groups
"""`_CELL.split` gives what stands before a cell, then its groups."""

_SHARED_TEXT = re.compile(rf"<si>(?:{_T}|<t/>)</si>")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


_Stored = tuple[str | None, str | None, str | None, str | None]
"""A cell as it stands there: style, kind, value (of a number, or the place of a shared text), its own text."""

_NOTHING: _Stored = (None, None, None, None)


class _Cells(NamedTuple):
    """A column, by row: '' is empty."""

    texts: list[str]
    are_numbers: list[bool]


def content_of(part: bytes, root: str, container: str, guard: XMLParserType) -> str | None:
    """What stands between the tags of a container, the first of that name in a part of that root element. None if the
    part can't be taken apart by its characters."""
    try:
        guard.Parse(part, True)
        text = part.decode("utf-8")
    except (ExpatError, UnicodeDecodeError):
        return None
    beginning = _BEGINNING.match(text)
    if beginning is None or beginning["root"] != root or f' xmlns="{_MAIN}"' not in beginning[0]:
        return None
    # No comment, no CDATA, no instruction, no second namespace: each < begins a tag, and each tag means what it says.
    if "<!" in text or text.find("<?", 1) >= 0 or len(_DEFAULT_NAMESPACE.findall(text)) > 1:
        return None
    start = beginning.end() if container == root else text.find(f"<{container}")
    if container != root:
        if not text.startswith(f"<{container}>", start):
            return None
        start += len(f"<{container}>")
    content = text[start : text.find(f"</{container}>", start)]
    return None if "\r" in content else content  # XML means a line feed by it


def shared_texts(content: str, most: int) -> list[str] | None:
    """The texts that cells point at, None if one of them has to be looked at by itself, or there are too many."""
    parts = _SHARED_TEXT.split(content)
    texts = [text or "" for text in parts[1::2]]
    if any(parts[::2]) or len(texts) > most or max(map(len, texts), default=0) > MAX_ELEMENT_CHARS:
        return None
    return None if any("&#" in text for text in texts) else list(map(_meant, texts))


def unescaped(text: str) -> str:
    """_x000D_ stands for a character, and _x005F_ for the underline of a text that only looks like that."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def plain_table(
    content: str,
    names: Sequence[str | None],
    shared: Sequence[str],
    date_styles: Container[int],
    decimal: DecimalLocale | None,
    may_be_guarded: bool,
) -> PlainTable | None:
    """The rows below the first one, None if a cell of them has to be looked at by itself. names: the field of each
    column. shared: the texts that cells point at. date_styles: of cells that hold a day or a time. may_be_guarded: an
    apostrophe in front of a text may be what disarmed a formula."""
    taken = _taken_apart(content, len(names))
    if taken is None:
        return None
    file_lines, stored = taken
    found: list[_Cells] = []
    for as_stored in stored:
        cells = _cells(as_stored, shared, date_styles)
        if cells is None:
            return None
        found.append(cells)
    kept = [place for place, row in enumerate(zip(*(cells.texts for cells in found), strict=True)) if any(row)]
    if not kept or len(kept) > MAX_LINES:
        return None
    if len(kept) < len(file_lines):
        file_lines = [file_lines[place] for place in kept]
        found = [_Cells(*([one[place] for place in kept] for one in cells)) for cells in found]  # type: ignore[arg-type]
    columns: dict[str, Column] = {}
    header: dict[str, tuple[int, str]] = {}
    for name, cells in zip(names, found, strict=True):
        if name in DECIMAL_COLUMNS:
            column: Column | None = _numbers(name, cells, decimal)
        elif name is None or any(cells.are_numbers):
            return None
        elif name in Line._fields:
            column = plain_columns.codes_or_texts(name, cells.texts, may_be_guarded=may_be_guarded)
        else:
            value = plain_columns.one_value(cells.texts)
            if value is None:
                return None
            if value[0]:
                header[name] = value
            continue
        if column is None:
            return None
        columns[name] = column
    lines = plain_columns.lines_of(columns, len(file_lines))
    return None if lines is None else PlainTable(lines, file_lines, header)


def _taken_apart(content: str, count: int) -> tuple[list[int], list[tuple[_Stored, ...]]] | None:
    """Numbers of the rows below the first, and so many columns of them. None if a row is not plain, or has something
    in a column behind these."""
    usual = list(islice(_letters(), count))
    *rows, rest = content.split("</row>")
    file_lines: list[int] = []
    found: list[Sequence[_Stored]] = []
    last = 0
    for row in rows:
        opening, *parts = _CELL.split(row)
        if not _OPENING.fullmatch(opening) or any(parts[_STEP - 1 :: _STEP]) or len(row) > MAX_ELEMENT_CHARS:
            return None
        is_first = last == 0
        for number in map(int, _ROW_NUMBER.findall(opening)):
            if number <= last:
                return None
            last = number
        letters, places = parts[0::_STEP], parts[1::_STEP]
        if (places and {*places} != {str(last)}) or (is_first and last > 1):
            return None
        if is_first:
            continue
        cells = list(zip(*(parts[at::_STEP] for at in range(2, _STEP - 1)), strict=True))
        if letters != usual:
            by_letter = dict(zip(letters, cells, strict=True))
            rising = sorted(by_letter, key=_place)
            beyond = (by_letter.pop(letter) for letter in rising if letter not in usual)
            if rising != letters or any(value or text for _, _, value, text in beyond):
                return None
            cells = [by_letter.get(letter, _NOTHING) for letter in usual]
        file_lines.append(last)
        found.append(cells)
    behind = [last, *map(int, _ROW_NUMBER.findall(rest))]
    if not found or not _EMPTY_ROWS.fullmatch(rest) or behind != sorted({*behind}) or behind[-1] > MAX_ROWS:
        return None
    return file_lines, list(zip(*found, strict=True))


def _letters() -> Iterator[str]:
    """A, B, ... Z, AA, AB, ..."""
    for length in (1, 2, 3):
        yield from map("".join, product(ascii_uppercase, repeat=length))


def _place(letters: str) -> tuple[int, str]:
    return len(letters), letters


def _cells(column: Sequence[_Stored], shared: Sequence[str], date_styles: Container[int]) -> _Cells | None:
    """What the cells of a column hold; None if one of them holds neither a text nor a number."""
    texts: list[str] = []
    are_numbers: list[bool] = []
    for style, kind, value, text in column:
        is_number = False
        if kind == "inlineStr":
            found = _meant(text or "")
            if "&#" in (text or ""):
                return None
        elif not value:
            found = ""
        elif kind == "s":
            if not value.isdecimal() or int(value) >= len(shared):
                return None
            found = shared[int(value)]
        else:
            found, is_number = value, True
            if style is not None and int(style) in date_styles:
                return None
        texts.append(found)
        are_numbers.append(is_number)
    return _Cells(texts, are_numbers)


def _meant(text: str) -> str:
    if "&" in text:
        text = html.unescape(text)
    return unescaped(text) if "_x" in text else text


def _numbers(name: str, cells: _Cells, decimal: DecimalLocale | None) -> Column | None:
    """What stands there as a number needs no locale to be read, what stands there as a text does."""
    typed = [typed_number(text) if is_number else "" for text, is_number in zip(*cells, strict=True)]
    if None in typed:
        return None
    exact = plain_columns.numbers(name, typed, "en")  # type: ignore[arg-type]
    if exact is None or all(cells.are_numbers):
        return exact
    written = ["" if is_number else text for text, is_number in zip(*cells, strict=True)]
    if not any(written):
        return exact
    read = plain_columns.numbers(name, written, decimal)
    if read is None:
        return None
    return [one if is_number else two for one, two, is_number in zip(exact, read, cells.are_numbers, strict=True)]
