"""From a file to a document, or to everything that is wrong with it. Reads only: nothing in a file is executed,
followed or evaluated, and nothing is stored unless all of it is sound.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from everest.collector import no_collection
from everest.errors import EverestError, Problem
from everest.intake.cells import FileProblem
from everest.intake.csv_file import COLUMN_NAMES, CsvReader, Progress
from everest.intake.header import HeaderReader
from everest.intake.json_file import JsonReader
from everest.intake.problem_list import ProblemList
from everest.intake.submission import Submission
from everest.intake.xlsx_file import XlsxReader, at_cell, cell_name
from everest.opname.amounts import DecimalLocale
from everest.words import say
from ingest_consumer.plurals import count

MAX_FILE_BYTES = 32 * 1024 * 1024
"""100,000 lines of JSON with long texts take about 25 MiB."""

FileFormat = Literal["csv", "json", "xlsx"]
FORMATS: Mapping[str, FileFormat] = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json", ".xlsx": "xlsx"}

_ZIP = b"PK\x03\x04"
_NOT_TEXT = {
    _ZIP: "file.is_zip",
    b"\xd0\xcf\x11\xe0": "file.is_xls",
    b"\xff\xfe": "file.is_utf16",
    b"\xfe\xff": "file.is_utf16",
    b"\x1f\x8b": "file.is_gzip",
    b"%PDF": "file.is_pdf",
}
"""Sentences about files, by what they begin with."""


class FileUnreadable(EverestError):
    """The file cannot be read."""

    code = 404


class FileRefused(EverestError):
    """The file is not a document we can store; `problems` says why, all of it. left_out: problems that were counted
    and not kept."""

    code = 422

    def __init__(self, path: Path, problems: Sequence[FileProblem], left_out: int = 0) -> None:
        super().__init__(f"{path} was refused: {count(len(problems) + left_out, 'problem')}, nothing was stored")
        more = [FileProblem(None, "", say("id", "file.more_problems", n=left_out))] if left_out else []
        self.problems = (*problems, *more)


@dataclass(frozen=True)
class Reading:
    """How to read a file. header: values given beside the file, as text, by field (None = not given)."""

    header: Mapping[str, str | None] = field(default_factory=dict)
    file_format: FileFormat | None = None
    decimal: DecimalLocale | None = None
    delimiter: str | None = None
    sheet: str | None = None
    is_correction: bool = False


@dataclass(frozen=True)
class FileDocument:
    """A sound file: the document, and the line of the file for each of its lines (none for JSON). columns: of a sheet,
    by position; a line of text has no cells."""

    submission: Submission
    file_lines: tuple[int, ...] = ()
    columns: tuple[str | None, ...] = ()

    def file_line(self, baris: int | None) -> int | None:
        return self.file_lines[baris - 1] if baris and baris <= len(self.file_lines) else None

    def placed(self, problem: Problem) -> FileProblem:
        """What the rules of posting say about a line, where the person who wrote the file finds it."""
        line, pesan = self.file_line(problem.baris), problem.pesan
        if line is not None and problem.kolom in self.columns:
            pesan = at_cell(cell_name(self.columns.index(problem.kolom) + 1, line), pesan)
        return FileProblem(problem.baris, problem.kolom, pesan, line)


def _silent(done: int) -> None:
    pass


def file_size(path: Path) -> int:
    """Bytes of a regular file. Raises FileUnreadable with a sentence for everything else."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        raise FileUnreadable(f"{path} cannot be read: {_reason(error)}") from None
    if not stat.S_ISREG(found.st_mode):
        raise FileUnreadable(f"{path} is not a regular file; give a CSV, XLSX or JSON file")
    if found.st_size > MAX_FILE_BYTES:
        raise FileUnreadable(f"{path} has {found.st_size:,} bytes, more than {MAX_FILE_BYTES:,}; split the document")
    return found.st_size


def read_file(path: Path, reading: Reading, progress: Progress = _silent) -> FileDocument:
    """Raises FileUnreadable when there is no file to read, FileRefused with every problem at once."""
    with no_collection():
        return _read_file(path, reading, progress)


def _read_file(path: Path, reading: Reading, progress: Progress) -> FileDocument:
    file_format = reading.file_format or FORMATS.get(path.suffix.lower())
    if file_format is None:
        raise FileUnreadable(f"{path}: neither .csv, .xlsx nor .json; say which with --format")
    size = file_size(path)
    problems = ProblemList()
    header = HeaderReader(problems, {} if file_format == "json" else COLUMN_NAMES)
    reader: CsvReader | XlsxReader | JsonReader
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            _look_inside(stream, file_format, problems)
            if problems:
                raise FileRefused(path, problems)
            if file_format == "csv":
                reader = CsvReader(problems, header, reading.decimal, reading.delimiter)
                reader.read(stream, progress)
            elif file_format == "xlsx":
                reader = XlsxReader(problems, header, reading.decimal, reading.sheet)
                reader.read(stream, progress)
            else:
                reader = JsonReader(problems, header, reading.decimal)
                # One byte more than it had a moment ago would mean that it is still being written.
                reader.read(stream.read(size + 1))
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {_reason(error)}") from None
    progress(size)
    header.take_options(reading.header)
    if not problems and not reader.lines:
        problems.append(FileProblem(None, "baris", say("id", "file.no_rows")))
    submission = header.submission(reader.lines, reading.is_correction)
    if submission is None:
        raise FileRefused(path, sorted(problems, key=_place), problems.left_out)
    if isinstance(reader, JsonReader):
        return FileDocument(submission)
    columns = tuple(reader.columns) if isinstance(reader, XlsxReader) else ()
    return FileDocument(submission, tuple(reader.file_lines), columns)


def _look_inside(stream: BinaryIO, file_format: FileFormat, problems: list[FileProblem]) -> None:
    start = stream.read(8)
    stream.seek(0)
    if file_format == "xlsx":
        if start.startswith(_ZIP):
            return
        if not start.startswith(tuple(_NOT_TEXT)):
            problems.append(FileProblem(None, "", say("id", "file.no_book")))
    for magic, key in _NOT_TEXT.items():
        if start.startswith(magic):
            problems.append(FileProblem(None, "", say("id", key)))


def _place(problem: FileProblem) -> tuple[Any, ...]:
    return (problem.baris or 0, problem.file_line or 0)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
