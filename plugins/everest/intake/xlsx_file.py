"""XLSX: the columns of the CSV in a sheet. What a cell holds is taken as it is stored; nothing is evaluated or guessed.

A spreadsheet holds numbers as binary doubles: one of up to 15 significant digits is what a person typed, others are
refused. A code that stands there as a number is refused, because its leading zeros are gone before anybody could look.
Formulas are refused: the value beside one is what some program thought of it at some time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

from everest.intake.cells import FileProblem, JsonNumber, said_by, shown, wrong
from everest.intake.csv_file import HEADER_BY_COLUMN, MAX_COLUMNS, ROWS_PER_REPORT, Progress, named_columns
from everest.intake.header import HeaderReader
from everest.intake.lines import REQUIRED_COLUMNS, read_line
from everest.intake.submission import MAX_LINES, Line
from everest.intake.xlsx_archive import archive_flaw
from everest.intake.xlsx_columns import MAX_ROWS, plain_table
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS
from everest.spreadsheets import SIGNIFICANT_DIGITS, typed_number, unguarded
from everest.words import Said, said_of, say

if TYPE_CHECKING:
    from everest.intake.xlsx_book import Book, Cell, Sheet

_NUMBER_COLUMNS = frozenset({*DECIMAL_COLUMNS, "transaksi_id"})
_DATE_COLUMNS = frozenset({"tanggal_opname", "tanggal_posting", "snapshot_at"})


class XlsxReader:
    """One reading of one file. `lines` and `file_lines` (row of the sheet, by baris - 1) hold what was found."""

    def __init__(
        self, problems: list[FileProblem], header: HeaderReader, decimal: DecimalLocale | None, sheet: str | None
    ) -> None:
        self.lines: list[Line] = []
        self.file_lines: list[int] = []
        self.columns: list[str | None] = []
        self._problems = problems
        self._header = header
        self._decimal = decimal
        self._sheet = sheet
        self._is_text_as_it_is = False

    def read(self, stream: BinaryIO, progress: Progress) -> None:
        """Collects lines and problems; whatever is wrong with the workbook itself is one problem and the end."""
        flaw = archive_flaw(stream)
        if flaw:
            self._say(flaw)
            return
        from everest.intake.xlsx_book import Book, BookFlaw  # openpyxl: 0.2 s that only a workbook should cost

        try:
            book = Book(stream)
            self._is_text_as_it_is = book.is_text_as_it_is
            sheet = self._chosen(book.sheets)
            if sheet is not None:
                self._read_sheet(book, sheet.part, progress, stream)
        except BookFlaw as wrong_with_it:
            self._say(said_by(wrong_with_it))

    def _chosen(self, sheets: Sequence[Sheet]) -> Sheet | None:
        names = [sheet.name for sheet in sheets]
        if self._sheet is not None:
            if self._sheet in names:
                return sheets[names.index(self._sheet)]
            some = ", ".join(map(shown, names[:20]))
            self._say(say("id", "file.no_sheet", value=shown(self._sheet), names=some))
            return None
        visible = [sheet for sheet in sheets if sheet.is_visible]
        if not visible:
            self._say(say("id", "file.no_visible_sheet"))
        return visible[0] if visible else None

    def _read_sheet(self, book: Book, part: str, progress: Progress, stream: BinaryIO) -> None:
        rows = book.rows(part)
        first = next(rows, None)
        if first is None:
            self._say(say("id", "file.no_titles"))
            return
        number, titles = first
        self.columns = self._named(number, titles) if self._is_on_the_sheet(number) else []
        if self.columns and not self._take_at_once(book, part):
            self._read_rows(rows, self.columns, progress, stream)

    def _named(self, number: int, row: Mapping[int, Cell]) -> list[str | None]:
        """The field of each column, None for one that is not used; empty when there is nothing to go on with."""
        titled = [column for column, cell in row.items() if cell.text.strip()] if number == 1 else []
        # One column beyond the limit is refused just like the last one of a sheet, 16,384.
        last = min(max(titled, default=0), MAX_COLUMNS + 1)
        titles = [row[column].text if column in row else "" for column in range(1, last + 1)]
        return named_columns(titles, self._problems)

    def _take_at_once(self, book: Book, part: str) -> bool:
        """Whether the sheet is so plain that its columns could be taken whole; else nothing has happened."""
        content = None if None in self.columns else book.plain(part)
        may_be_guarded = not self._is_text_as_it_is
        plain = content and plain_table(
            content, self.columns, book.texts, book.date_styles, self._decimal, may_be_guarded
        )
        if not plain:
            return False
        self.lines, self.file_lines = plain.lines, plain.file_lines
        for name, (baris, raw) in plain.header.items():
            said, number = len(self._problems), plain.file_lines[baris - 1]
            self._header.take(HEADER_BY_COLUMN[name], raw, baris, number)
            self._name_cells(said, self.columns, number)
        return True

    def _is_on_the_sheet(self, number: int) -> bool:
        if number > MAX_ROWS:
            self._say(say("id", "file.row_beyond", line=number))
        return number <= MAX_ROWS

    def _read_rows(
        self,
        rows: Iterable[tuple[int, Mapping[int, Cell]]],
        names: list[str | None],
        progress: Progress,
        stream: BinaryIO,
    ) -> None:
        baris = 0
        for number, row in rows:
            if not self._is_on_the_sheet(number):
                return
            if not row:
                continue
            baris += 1
            if baris > MAX_LINES:
                pesan = say("id", "file.more_lines", most=MAX_LINES)
                self._problems.append(FileProblem(None, "", pesan, number))
                return
            self._read_row(row, names, baris, number)
            if baris % ROWS_PER_REPORT == 0:
                progress(stream.tell())

    def _read_row(self, row: Mapping[int, Cell], names: list[str | None], baris: int, number: int) -> None:
        said = len(self._problems)
        given: dict[str, Any] = dict.fromkeys(name for name in REQUIRED_COLUMNS if name in names)
        for column, cell in row.items():
            name = names[column - 1] if column <= len(names) else None
            if column > len(names):
                pesan = say("id", "file.untitled_cell", place=cell_name(column, number))
                self._problems.append(FileProblem(baris, "", pesan, number))
                continue
            if name is None:
                continue
            try:
                value = stored(name, cell, self._is_text_as_it_is)
            except ValueError as flaw:
                self._problems.append(FileProblem(baris, name, said_by(flaw), number))
                given[name] = "-" if name == "kode_barang" else None
                continue
            if name in HEADER_BY_COLUMN:
                self._header.take(HEADER_BY_COLUMN[name], value, baris, number)
            else:
                given[name] = value
        if "kode_barang" not in given:
            given["kode_barang"] = "-"  # the whole column is missing, which is said once, for the header
        line = read_line(given, baris, number, self._decimal, self._problems)
        self._name_cells(said, names, number)
        if line is not None:
            self.lines.append(line)
            self.file_lines.append(number)

    def _name_cells(self, said: int, names: list[str | None], number: int) -> None:
        """What was said of a row, from so many problems on, says its cell, too."""
        for index in range(said, len(self._problems)):
            problem = self._problems[index]
            if problem.kolom in names:
                place = cell_name(names.index(problem.kolom) + 1, number)
                self._problems[index] = replace(problem, pesan=at_cell(place, problem.pesan))

    def _say(self, pesan: str) -> None:
        self._problems.append(FileProblem(None, "", pesan))


def at_cell(place: str, pesan: str) -> Said:
    """What is said of a cell, with its name in front."""
    return say("id", "file.at_cell", place=place, why=said_of(pesan) or {"message": pesan})


def cell_name(column: int, row: int) -> str:
    """C4 for column 3 of row 4."""
    from openpyxl.utils import get_column_letter

    return f"{get_column_letter(column)}{row}"


def stored(name: str, cell: Cell, is_text_as_it_is: bool = False) -> str | None:
    """What a cell holds, as the text the other formats would have. is_text_as_it_is: no apostrophe in the workbook
    disarms a formula. Raises ValueError with a sentence."""
    if cell.kind == "formula":
        raise wrong("formula")
    if cell.kind == "error":
        raise wrong("error_cell", value=shown(cell.text))
    if cell.kind == "boolean":
        raise wrong("boolean_cell")
    if cell.kind == "date":
        return _day(name, cell.text)
    if cell.kind == "number":
        if name not in _NUMBER_COLUMNS:
            raise wrong("code_as_number", value=cell.text[:40])
        return _number(cell.text)
    # A report of ours as CSV, opened and saved as a workbook, keeps the apostrophe that disarms a formula.
    return cell.text if is_text_as_it_is or name in DECIMAL_COLUMNS else unguarded(cell.text)


def _number(stored: str) -> JsonNumber:
    typed = typed_number(stored)
    if typed is None:
        raise wrong("digits", value=stored[:40], most=SIGNIFICANT_DIGITS)
    exact = Decimal(typed)
    return JsonNumber(f"{exact:.0f}" if exact == exact.to_integral_value() else f"{exact.normalize():f}")


def _day(name: str, iso: str) -> str:
    if name not in _DATE_COLUMNS:
        raise wrong("date_cell")
    return iso.removesuffix("T00:00:00") if name != "snapshot_at" else iso.replace("T", " ")
