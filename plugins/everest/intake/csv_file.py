"""CSV as spreadsheets write it: UTF-8, a header row, comma, semicolon or tab. Front to back, cell by cell, unless
nothing in the file needs that (`csv_columns`).

Codes stay text: nothing here turns '00123', 'NA' or '1e5' into something else. A row with nothing in any cell is
skipped; `baris` counts the others, and every problem names the line of the file as well.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, BinaryIO

from everest.intake.cells import FileProblem, shown
from everest.intake.csv_columns import MAX_LINE_CHARS, plain_table
from everest.intake.header import AUTHORITY, FORBIDDEN, HEADER_FIELDS, HeaderReader
from everest.intake.lines import LINE_FIELDS, REQUIRED_COLUMNS, read_line
from everest.intake.submission import MAX_LINES, Line
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS
from everest.spreadsheets import unguarded
from everest.words import said_of, say

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t"}
WAREHOUSE_OF_DOCUMENT = "gudang_dokumen"
"""The header's warehouse, as a column: `gudang_kode` is the line's own."""

COLUMN_NAMES = {"gudang_kode": WAREHOUSE_OF_DOCUMENT}
HEADER_BY_COLUMN = {COLUMN_NAMES.get(name, name): name for name in HEADER_FIELDS}
KNOWN_COLUMNS = (*LINE_FIELDS, *HEADER_BY_COLUMN)
MAX_COLUMNS = 64

ROWS_PER_REPORT = 500
Progress = Callable[[int], None]
"""Told how many bytes of the file were read."""


class CsvReader:
    """One reading of one file. `lines` and `file_lines` (line of the file, by baris - 1) hold what was found."""

    def __init__(
        self, problems: list[FileProblem], header: HeaderReader, decimal: DecimalLocale | None, delimiter: str | None
    ) -> None:
        self.lines: list[Line] = []
        self.file_lines: list[int] = []
        self._problems = problems
        self._header = header
        self._decimal = decimal
        self._delimiter = delimiter

    def read(self, stream: BinaryIO, progress: Progress) -> None:
        """Collects lines and problems; stops early only where the shape of the file itself is lost."""
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            first, blank = text.readline(MAX_LINE_CHARS + 1), 0
            while first and not first.strip():
                first, blank = text.readline(MAX_LINE_CHARS + 1), blank + 1
            delimiter = self._delimiter or self._find_delimiter(first, blank + 1)
            if delimiter is None:
                return
            rows = _Rows(_bounded(first, text), delimiter, self._problems, blank)
            names = self._columns(rows)
            if names and (blank or not self._take_at_once(stream, names, delimiter)):
                self._read_rows(rows, names, progress, stream)
        finally:
            text.detach()

    def _find_delimiter(self, first: str, file_line: int) -> str | None:
        present = [mark for mark in DELIMITERS.values() if mark in first]
        if len(present) <= 1:
            return present[0] if present else ","
        fitting = [mark for mark in present if all(name in KNOWN_COLUMNS for name in _names(first, mark))]
        if len(fitting) == 1:
            return fitting[0]
        found: list[str] = [name for name, mark in DELIMITERS.items() if mark in present]
        both = reduce(lambda one, other: say("id", "file.both", one=one, other=other), found)
        pesan = say("id", "file.delimiter", names=both)
        self._problems.append(FileProblem(None, "", pesan, file_line))
        return None

    def _columns(self, rows: _Rows) -> list[str | None]:
        """The field of each column, None for one that is not used; empty when there is nothing to go on with."""
        row = rows.titles()
        if row is None:
            return []
        if not any(row):
            pesan = say("id", "file.no_titles")
            self._problems.append(FileProblem(None, "", pesan, rows.file_line))
            return []
        return named_columns(row, self._problems, rows.file_line)

    def _take_at_once(self, stream: BinaryIO, names: list[str | None], delimiter: str) -> bool:
        """Whether the file is so plain that its columns could be taken whole; else nothing has happened."""
        place = stream.tell()
        stream.seek(0)
        plain = plain_table(stream.read(), delimiter, names, self._decimal)
        stream.seek(place)
        if plain is None or len(plain.lines) > MAX_LINES:
            return False
        self.lines, self.file_lines = plain.lines, plain.file_lines
        for name, (baris, raw) in plain.header.items():
            self._header.take(HEADER_BY_COLUMN[name], raw, baris, plain.file_lines[baris - 1])
        return True

    def _read_rows(self, rows: _Rows, names: list[str | None], progress: Progress, stream: BinaryIO) -> None:
        baris = 0
        for row in rows:
            if not any(row):
                continue
            baris += 1
            if baris > MAX_LINES:
                pesan = say("id", "file.more_lines", most=MAX_LINES)
                self._problems.append(FileProblem(None, "", pesan, rows.file_line))
                return
            self._read_row(row, names, baris, rows.file_line)
            if baris % ROWS_PER_REPORT == 0:
                progress(stream.tell())

    def _read_row(self, row: list[str], names: list[str | None], baris: int, file_line: int) -> None:
        if len(row) > len(names):
            pesan = say("id", "file.row_too_wide", n=len(row), titles=len(names))
            self._problems.append(FileProblem(baris, "", pesan, file_line))
            return
        given: dict[str, str | None] = {}
        # Spreadsheets leave trailing blank cells out; only columns that may be blank may be missing like that.
        for position, name in enumerate(names):
            if name is None:
                continue
            if position >= len(row):
                if name in REQUIRED_COLUMNS:
                    pesan = say("id", "file.row_too_short", n=len(row), titles=len(names))
                    self._problems.append(FileProblem(baris, name, pesan, file_line))
                continue
            cell = row[position]
            if "'" in cell and name not in DECIMAL_COLUMNS:
                cell = unguarded(cell)  # as our own reports wrote a text that looks like a formula
            if name in HEADER_BY_COLUMN:
                self._header.take(HEADER_BY_COLUMN[name], cell, baris, file_line)
            else:
                given[name] = cell or None
        if "kode_barang" not in given:
            given["kode_barang"] = "-"  # the whole column is missing, which is said once, for the header
        line = read_line(given, baris, file_line, self._decimal, self._problems)
        if line is not None:
            self.lines.append(line)
            self.file_lines.append(file_line)


def named_columns(row: list[str], problems: list[FileProblem], file_line: int = 1) -> list[str | None]:
    """The field of each column by its title, None for one that is not used; empty when there are too many."""
    if len(row) > MAX_COLUMNS:
        pesan = say("id", "file.columns", n=len(row), most=MAX_COLUMNS)
        problems.append(FileProblem(None, "", pesan, file_line))
        return []
    names: list[str | None] = []
    for position, cell in enumerate(row, start=1):
        name = _column_name(cell)
        flaw = None
        if name in FORBIDDEN:
            flaw = say("id", AUTHORITY)
        elif name not in KNOWN_COLUMNS:
            flaw = say("id", "file.unknown_column", at=position, names=", ".join(KNOWN_COLUMNS))
        elif name in names:
            flaw = say("id", "file.column_twice", one=names.index(name) + 1, other=position)
        if flaw:
            kolom = name if name in KNOWN_COLUMNS or name in FORBIDDEN else shown(cell)
            problems.append(FileProblem(None, kolom, flaw, file_line))
        names.append(None if flaw else name)
    for name in REQUIRED_COLUMNS:
        if name not in names:
            problems.append(FileProblem(None, name, say("id", "file.column_missing"), file_line))
    return names


class _Rows:
    """Rows of the file; `file_line` is where the newest one began. A quote in the wrong place is a problem of its row,
    and the end of reading only when it has swallowed the rows after it. blank: lines of the file before the first."""

    def __init__(self, text: Iterator[str], delimiter: str, problems: list[FileProblem], blank: int) -> None:
        self._reader = csv.reader(text, delimiter=delimiter, strict=True)
        self._problems = problems
        self._blank = blank
        self.file_line = 0

    def titles(self) -> list[str] | None:
        """The first row, [] where the file has none. None when it can't be read: its cells name the columns of all
        others, so the next row must not take its place."""
        said = len(self._problems)
        row = next(iter(self), [])
        return row if len(self._problems) == said else None

    def __iter__(self) -> Iterator[list[str]]:
        while True:
            self.file_line = self._blank + self._reader.line_num + 1
            try:
                row = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                last = self._blank + self._reader.line_num
                is_whole_row = last <= self.file_line
                which = {"line": self.file_line, "last": last, "why": _theirs(error)}
                pesan = say("id", "file.unreadable_row" if is_whole_row else "file.unreadable_rows", **which)
                self._problems.append(FileProblem(None, "", pesan, self.file_line))
                if not is_whole_row:
                    return
                continue
            yield row


def _bounded(first: str, rest: io.TextIOWrapper) -> Iterator[str]:
    for line in itertools.chain([first] if first else [], rest):
        if len(line) > MAX_LINE_CHARS:
            raise csv.Error(say("en", "file.line_length", most=MAX_LINE_CHARS))
        yield line


def _theirs(error: csv.Error) -> dict[str, Any]:
    """Why a row can't be read: in our words, or in those of Python's reader, which are English."""
    return said_of(error.args[0] if error.args else "") or {"message": str(error), "lang": "en"}


def _names(line: str, delimiter: str) -> list[str]:
    return [_column_name(cell) for cell in line.rstrip("\r\n").split(delimiter)]


def _column_name(cell: str) -> str:
    return cell.strip().strip('"').strip().lower()
