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
from functools import lru_cache
from itertools import islice, product, repeat
from operator import lt
from string import ascii_uppercase
from typing import NamedTuple
from xml.parsers.expat import XMLParserType

from everest.intake import plain_columns
from everest.intake.plain_columns import Column, PlainTable
from everest.intake.submission import MAX_LINES, Line
from everest.intake.xlsx_archive import UNREADABLE_XML
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS
from everest.spreadsheets import SIGNIFICANT_DIGITS, typed_number

MAX_BYTES = 16 * 1024 * 1024
"""Of a part that is held whole: 50,000 lines of a usual sheet."""

MAX_ELEMENT_CHARS = 64 * 1024
"""Of one row or one text."""

MAX_CELLS = 1_000_000
"""Of a sheet, with those that are missing in their rows: 40 MB of pieces while it is taken apart."""

MAX_ROWS = 1_048_576
"""Of an Excel sheet; a file may claim any row number."""

MAX_PLACE_CHARS = 9
"""Of the place of a shared text; Python makes no number of thousands of digits."""

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_ATTRIBUTES = r'(?: [\w:.-]+="[^"<>&]*")*'
_BEGINNING = re.compile(
    r"(?:<\?xml version=[\"']1\.0[\"'](?: encoding=[\"'](?i:utf-8)[\"'])?(?: standalone=[\"'][a-z]+[\"'])? ?\?>)?\s*"
    rf"<(?P<root>\w+){_ATTRIBUTES}>"
)
_DEFAULT_NAMESPACE = re.compile(r"xmlns(?!:)")

_ROW = rf'<row r="([0-9]{{1,7}})"{_ATTRIBUTES}'
_EMPTY_ROW = re.compile(rf"{_ROW}/>")
_T = r'<t(?: xml:space="preserve")?>([^<]*)</t>'
_STYLE = r'(?: s="([0-9]{1,6})")?'
_CONTENT = rf'(?: t="(n|s|inlineStr)")?(?:/>|>(?:<v>([^<&]*)</v>|<is>{_T}</is>)?</c>)'
_CELL_GROUPS = 5
_EMPTY_CELL = r'<c r="[A-Z]{1,3}[0-9]{1,7}"(?: s="[0-9]{1,6}")?/>'
_PLACE = re.compile(r' r="([A-Z]+)([0-9]+)"')

_SHARED_TEXT = re.compile(rf"<si>(?:{_T}|<t/>)</si>")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


_Stored = Sequence[str | None]
"""Of all cells of a column one thing, by row: the style, the kind, the value (a number, or the place of a shared text),
or the text that stands in the cell itself."""


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
    except UNREADABLE_XML:
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
    kept: Sequence[int] = range(len(file_lines))
    if all("" in cells.texts for cells in found):  # else no row is empty
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


def _taken_apart(content: str, count: int) -> tuple[list[int], list[list[_Stored]]] | None:
    """Numbers of the rows below the first, and so many columns of them. None if a row is not plain, or has something
    in a column behind these."""
    if content.count("<row ") > content.count("</row>"):
        content = _EMPTY_ROW.sub(r'<row r="\1"></row>', content)
    rows = content.split("</row>")
    if len(rows) * count > MAX_CELLS or max(map(len, rows)) > MAX_ELEMENT_CHARS:
        return None
    parts = _row_of(count).split(content)
    step = 3 + _CELL_GROUPS * count
    numbers, behind = parts[1::step], parts[step - 1 :: step]
    if any(parts[::step]) or numbers[:1] != ["1"] or not all(map(_is_nothing, numbers, behind, repeat(count))):
        return None
    file_lines = list(map(int, numbers))
    if file_lines[-1] > MAX_ROWS or not all(map(lt, file_lines, file_lines[1:])):
        return None
    columns: list[list[_Stored]] = []
    for first in range(2, step - 1, _CELL_GROUPS):
        places, *stored = (parts[first + at :: step] for at in range(_CELL_GROUPS))
        if places != numbers and any(one not in (number, None) for number, one in zip(numbers, places, strict=True)):
            return None
        columns.append([cells[1:] for cells in stored])
    return file_lines[1:], columns


@lru_cache
def _row_of(count: int) -> re.Pattern[str]:
    """A row with so many columns, any of which may be missing, and empty cells behind them. Its groups are its number,
    five of each column (row, style, kind, value, text), and what stands behind. What was taken is not given back (`?+`,
    `*+`), or a row that ends otherwise would be tried once for each column and each empty cell."""
    cells = "".join(rf'(?:<c r="{letters}([0-9]{{1,7}})"{_STYLE}{_CONTENT})?+' for letters in islice(_letters(), count))
    return re.compile(rf"{_ROW}>{cells}((?:{_EMPTY_CELL})*+)</row>")


def _is_nothing(row: str, behind: str, count: int) -> bool:
    """Whether the cells behind the columns of a row are in their places."""
    if not behind:
        return True
    letters, places = zip(*_PLACE.findall(behind), strict=True)
    last = next(islice(_letters(), count - 1, None))
    return {*places} == {row} and all(map(lt, map(_place, (last, *letters)), map(_place, letters)))


def _letters() -> Iterator[str]:
    """A, B, ... Z, AA, AB, ..."""
    for length in (1, 2, 3):
        yield from map("".join, product(ascii_uppercase, repeat=length))


def _place(letters: str) -> tuple[int, str]:
    return len(letters), letters


def _cells(column: Sequence[_Stored], shared: Sequence[str], date_styles: Container[int]) -> _Cells | None:
    """What the cells of a column hold; None if one of them holds neither a text nor a number."""
    styles, kinds, values, _ = column
    kind_of_all = set(kinds)
    # Mostly they are all numbers, or all texts that others share.
    if kind_of_all <= {None, "n"} and None not in values and "" not in values:
        has_date = any(style is not None and int(style) in date_styles for style in set(styles))
        return None if has_date else _Cells(list(values), [True] * len(values))  # type: ignore[arg-type]
    if kind_of_all == {"s"} and None not in values and "" not in values:
        longest = max(map(len, values), default=0)  # type: ignore[arg-type]
        if longest > MAX_PLACE_CHARS or not "".join(values).isdecimal():  # type: ignore[arg-type]
            return None
        places = list(map(int, values))  # type: ignore[arg-type]
        if max(places) >= len(shared):
            return None
        return _Cells([shared[place] for place in places], [False] * len(values))
    texts: list[str] = []
    are_numbers: list[bool] = []
    for style, kind, value, text in zip(*column, strict=True):
        is_number = False
        if kind == "inlineStr":
            found = _meant(text or "")
            if "&#" in (text or ""):
                return None
        elif not value:
            found = ""
        elif kind == "s":
            if len(value) > MAX_PLACE_CHARS or not value.isdecimal() or int(value) >= len(shared):
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
    if all(cells.are_numbers) and max(map(len, cells.texts)) <= SIGNIFICANT_DIGITS and "," not in "".join(cells.texts):
        typed_so = plain_columns.numbers(name, cells.texts, "en")  # so few digits survive the double in between
        if typed_so is not None:
            return typed_so
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
