"""The rows of a workbook as they are stored, or one sentence why there are none.

openpyxl knows the package (parts, sheets, styles). Rows and texts are taken from the XML here, because openpyxl passes
over what must not get lost: a row or cell out of its order, digits beyond a double, `_x0041_` as the text it is.
`xlsx_archive` has looked at the file before; what a part may do to a parser is bounded here while it is read.
"""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import IO, Any, BinaryIO, NamedTuple, cast
from xml.etree.ElementTree import Element, ParseError, fromstring, iterparse
from xml.parsers import expat

from openpyxl.cell.text import Text
from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.stylesheet import apply_stylesheet
from openpyxl.utils.cell import coordinate_to_tuple
from openpyxl.utils.datetime import from_excel
from openpyxl.xml.constants import ARC_CUSTOM, SHARED_STRINGS, SHEET_MAIN_NS

from everest.intake import xlsx_columns
from everest.intake.xlsx_archive import UNREADABLE_XML
from everest.intake.xlsx_columns import unescaped
from everest.spreadsheets import TEXT_AS_IT_IS
from everest.words import say

MAX_PART_BYTES = 8 * 1024 * 1024
"""Of a part that is read as a whole: styles, list of sheets."""

MAX_ELEMENT_BYTES = 1024 * 1024
"""Of the XML of one row or one text."""

MAX_TEXTS = 1_000_000
_NS = f"{{{SHEET_MAIN_NS}}}"


class BookFlaw(ValueError):
    """The workbook can't be read, or not safely; the sentence is for the person who sent it."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(say("id", f"file.{key}", **values))


class Cell(NamedTuple):
    """One cell that is not empty. kind: text, number, date, boolean, error or formula; text: what is stored, as it
    stands there (of a date: ISO)."""

    kind: str
    text: str


class Sheet(NamedTuple):
    name: str
    is_visible: bool
    part: str


class Book:
    """An open workbook. Raises BookFlaw from every method."""

    def __init__(self, stream: BinaryIO) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what openpyxl can't keep: of no use to a count
                self._reader = _Package(stream)
                self._reader.read()
                self._sheets = [
                    Sheet(sheet.name, sheet.state == "visible", relation.target)
                    for sheet, relation in self._reader.parser.find_sheets()
                    if relation.Type.endswith("/worksheet")
                ]
        except Exception as error:  # openpyxl and zipfile raise whatever they stumble upon
            raise _flaw(error) from None

    @property
    def is_text_as_it_is(self) -> bool:
        """Whether we wrote the workbook, and whoever saved it since left that in it."""
        with suppress(ParseError, *UNREADABLE_XML):  # what else is wrong with these properties is of no use to a count
            return self._reader.has_property(TEXT_AS_IT_IS)
        return False

    @property
    def sheets(self) -> list[Sheet]:
        return self._sheets

    def plain(self, part: str) -> str | None:
        """The XML of all rows, if the sheet is one that `xlsx_columns` may take apart."""
        return self._reader.content(part, "worksheet", "sheetData")

    @property
    def texts(self) -> list[str]:
        """What cells with a shared text point at."""
        return self._reader.shared_strings

    @property
    def date_styles(self) -> set[int]:
        return set(self._reader.wb._date_formats)

    def rows(self, part: str) -> Iterator[tuple[int, dict[int, Cell]]]:
        """Rows with their number on the sheet, from top to bottom; each its cells by column, from 1."""
        try:
            number = 0
            with self._reader.archive.open(part) as source:
                for element in _items(source, "sheetData", "row"):
                    given = int(element.get("r", number + 1))
                    if given <= number:
                        raise BookFlaw("row_order", line=given, before=number)
                    number = given
                    yield number, self._cells(element, number)
        except Exception as error:
            raise _flaw(error) from None

    def _cells(self, row: Element, number: int) -> dict[int, Cell]:
        cells: dict[int, Cell] = {}
        column = 0
        for element in row.iterfind(f"{_NS}c"):
            place = element.get("r")
            at, given = coordinate_to_tuple(place) if place else (number, column + 1)
            if at != number or given <= column:
                raise BookFlaw("cell_order", place=place, line=number)
            column = given
            cell = self._cell(element)
            if cell is not None:
                cells[column] = cell
        return cells

    def _cell(self, element: Element) -> Cell | None:
        if element.find(f"{_NS}f") is not None:
            return Cell("formula", "")
        kind = element.get("t", "n")
        if kind == "inlineStr":
            inline = element.find(f"{_NS}is")
            text = "" if inline is None else _text(inline)
            return Cell("text", text) if text else None
        value = element.findtext(f"{_NS}v") or ""
        if not value:
            return None
        if kind == "s":
            texts = self._reader.shared_strings
            if not value.isdecimal() or int(value) >= len(texts):
                raise BookFlaw("cell_of_no_text", place=element.get("r"))
            return Cell("text", texts[int(value)]) if texts[int(value)] else None
        if kind == "n":
            if int(element.get("s", 0)) in self._reader.wb._date_formats:
                return Cell("date", self._date(value))
            return Cell("number", value)
        kinds = {"str": "text", "b": "boolean", "e": "error", "d": "date"}
        if kind not in kinds:
            raise BookFlaw("cell_type", place=element.get("r"), type=repr(kind))
        return Cell(kinds[kind], unescaped(value) if kind == "str" else value)

    def _date(self, serial: str) -> str:
        try:
            value = from_excel(float(serial), self._reader.wb.epoch)
        except (ValueError, OverflowError):
            return serial
        return value.isoformat() if isinstance(value, datetime) else str(value)


class _Package(ExcelReader):
    """openpyxl's reader of packages, over an archive with limits and without the parts that a count does not need."""

    archive: Any
    parser: Any
    wb: Any

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream, read_only=True, data_only=True, keep_links=False)
        self.archive = _Archive(stream)
        self.shared_strings: list[str] = []

    def read(self) -> None:
        self.read_manifest()
        self.read_workbook()
        apply_stylesheet(self.archive, self.wb)
        self.read_strings()

    def has_property(self, name: str) -> bool:
        if ARC_CUSTOM not in self.archive.namelist():
            return False
        # The guard of the archive has seen every byte before this parser does.
        return any(one.get("name") == name for one in fromstring(self.archive.read(ARC_CUSTOM)))  # nosec B314

    def content(self, part: str, root: str, container: str) -> str | None:
        """`xlsx_columns.content_of` a part, None where it is too large, or broken."""
        with suppress(zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, NotImplementedError, RuntimeError):
            if self.archive.getinfo(part).file_size <= xlsx_columns.MAX_BYTES:
                with self.archive.open(part) as source:
                    return xlsx_columns.content_of(source.read(), root, container, _guard())
        return None

    def read_strings(self) -> None:
        part = cast(Any, self.package).find(SHARED_STRINGS)
        if part is None:
            return
        content = self.content(part.PartName[1:], "sst", "sst")
        texts = None if content is None else xlsx_columns.shared_texts(content, MAX_TEXTS)
        if texts is not None:
            self.shared_strings = texts
            return
        with self.archive.open(part.PartName[1:]) as source:
            for element in _items(source, "sst", "si"):
                if len(self.shared_strings) >= MAX_TEXTS:
                    raise BookFlaw("texts", most=MAX_TEXTS)
                self.shared_strings.append(_text(element))


class _Archive(zipfile.ZipFile):
    """A zip file that `archive_flaw` has passed, whose parts can be read as a whole only if they are small."""

    def read(self, name: str | zipfile.ZipInfo, pwd: bytes | None = None) -> bytes:
        info = name if isinstance(name, zipfile.ZipInfo) else self.getinfo(name)
        if info.file_size > MAX_PART_BYTES:
            raise BookFlaw("part_size", name=repr(info.filename))
        content = super().read(info, pwd)
        _guard().Parse(content, True)
        return content


class _Part:
    """A part that is read through the guard, and bounded between two calls of `mark`."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._guard = _guard()
        self._since_mark = 0

    def mark(self) -> None:
        self._since_mark = 0

    def read(self, size: int = -1) -> bytes:
        if self._since_mark > MAX_ELEMENT_BYTES:
            raise BookFlaw("element_size")
        data = self._source.read(size)
        self._since_mark += len(data)
        self._guard.Parse(data, not data)
        return data


def _items(source: IO[bytes], container: str, item: str) -> Iterator[Element]:
    """The items of a container one after the other, each gone when the next one is asked for."""
    part = _Part(source)
    inside: Element | None = None
    # The guard of _Part has seen every byte before this parser does.
    for event, element in iterparse(cast(Any, part), ("start", "end")):  # nosec B314
        if event == "start":
            if inside is None and element.tag == _NS + container:
                inside = element
        elif inside is not None:
            if element is inside:
                return
            if element.tag == _NS + item:
                yield element
                inside.clear()
                part.mark()
    raise BookFlaw("no_container", name=container)


def _guard() -> expat.XMLParserType:
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise BookFlaw("doctype")

    parser.StartDoctypeDeclHandler = refuse
    return parser


def _text(element: Element) -> str:
    """All runs of a text, without how Japanese would read it aloud."""
    return unescaped(cast(Any, Text).from_tree(element).content or "")


def _flaw(error: Exception) -> BookFlaw:
    if isinstance(error, BookFlaw):
        return error
    return BookFlaw("book_unreadable", type=type(error).__name__)
