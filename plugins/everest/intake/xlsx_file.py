"""XLSX: the columns of the CSV in a sheet. What a cell holds is taken as it is stored; nothing is evaluated or guessed.

A spreadsheet holds numbers as binary doubles: one of up to 15 significant digits is what a person typed, others are
refused. A code that stands there as a number is refused, because its leading zeros are gone before anybody could look.
Formulas are refused: the value beside one is what some program thought of it at some time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, BinaryIO

from everest.intake.cells import FileProblem, JsonNumber, shown
from everest.intake.csv_file import HEADER_BY_COLUMN, ROWS_PER_REPORT, Progress, named_columns
from everest.intake.header import HeaderReader
from everest.intake.lines import REQUIRED_COLUMNS, read_line
from everest.intake.submission import MAX_LINES, Line
from everest.intake.xlsx_archive import archive_flaw
from everest.opname.amounts import DecimalLocale
from everest.opname.document import DECIMAL_COLUMNS
from everest.spreadsheets import SIGNIFICANT_DIGITS, decimal_of, significant_digits

MAX_ROWS = 1_048_576
"""Of an Excel sheet; a file may claim any row number."""

_NUMBER_COLUMNS = frozenset({*DECIMAL_COLUMNS, "transaksi_id"})
_DATE_COLUMNS = frozenset({"tanggal_opname", "tanggal_posting", "snapshot_at"})
_DIGITS = f"lebih dari {SIGNIFICANT_DIGITS} digit, lembar kerja tidak menyimpannya dengan tepat; tulis sebagai teks"


class XlsxReader:
    """One reading of one file. `lines` and `file_lines` (row of the sheet, by baris - 1) hold what was found."""

    def __init__(
        self, problems: list[FileProblem], header: HeaderReader, decimal: DecimalLocale | None, sheet: str | None
    ) -> None:
        self.lines: list[Line] = []
        self.file_lines: list[int] = []
        self._problems = problems
        self._header = header
        self._decimal = decimal
        self._sheet = sheet

    def read(self, stream: BinaryIO, progress: Progress) -> None:
        """Collects lines and problems; whatever is wrong with the workbook itself is one problem and the end."""
        flaw = archive_flaw(stream)
        if flaw:
            self._say(flaw)
            return
        import openpyxl  # 0.2 s that only a workbook should cost

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions that nobody asks for here
            try:
                book = openpyxl.load_workbook(stream, read_only=True, data_only=False, keep_links=False)
                try:
                    sheet = self._chosen(book)
                    if sheet is not None:
                        sheet.reset_dimensions()  # what a file says about its size is not what it holds
                        self._read_rows(sheet.iter_rows(max_row=MAX_ROWS), progress, stream)
                finally:
                    book.close()
            except Exception as error:  # openpyxl raises whatever its parsing runs into
                self._say(
                    f"buku kerja ini tidak terbaca ({type(error).__name__}); simpan ulang dari Excel sebagai .xlsx"
                )

    def _chosen(self, book: Any) -> Any:
        names = [sheet.title for sheet in book.worksheets]
        if self._sheet is not None:
            if self._sheet in names:
                return book[self._sheet]
            self._say(f"tidak ada lembar {shown(self._sheet)}; yang ada: {', '.join(map(shown, names[:20]))}")
            return None
        visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        if not visible:
            self._say("buku kerja ini tidak punya lembar yang terlihat")
        return visible[0] if visible else None

    def _read_rows(self, rows: Iterable[Sequence[Any]], progress: Progress, stream: BinaryIO) -> None:
        names: list[str | None] = []
        baris = 0
        for number, row in enumerate(rows, start=1):
            if number == 1:
                titles = ["" if cell.value is None else str(cell.value) for cell in row]
                while titles and not titles[-1].strip():
                    titles.pop()
                names = named_columns(titles, self._problems)
                if not names:
                    return
                continue
            if all(cell.value is None or cell.value == "" for cell in row):
                continue
            baris += 1
            if baris > MAX_LINES:
                pesan = f"lebih dari {MAX_LINES} baris; bagi menjadi beberapa dokumen"
                self._problems.append(FileProblem(None, "", pesan, number))
                return
            self._read_row(row, names, baris, number)
            if baris % ROWS_PER_REPORT == 0:
                progress(stream.tell())
        if not names:
            self._say("baris pertama harus judul kolom; di sini tidak ada apa-apa")

    def _read_row(self, row: Sequence[Any], names: list[str | None], baris: int, number: int) -> None:
        from openpyxl.utils import get_column_letter

        said = len(self._problems)
        given: dict[str, Any] = dict.fromkeys(name for name in REQUIRED_COLUMNS if name in names)
        for position, cell in enumerate(row):
            name = names[position] if position < len(names) else None
            if cell.value is None:
                continue
            if position >= len(names):
                pesan = f"sel {get_column_letter(position + 1)}{number} berisi, padahal kolomnya tidak berjudul"
                self._problems.append(FileProblem(baris, "", pesan, number))
                continue
            if name is None:
                continue
            try:
                value = stored(name, cell)
            except ValueError as flaw:
                self._problems.append(FileProblem(baris, name, str(flaw), number))
                given[name] = "-" if name == "kode_barang" else None
                continue
            if name in HEADER_BY_COLUMN:
                self._header.take(HEADER_BY_COLUMN[name], value, baris, number)
            else:
                given[name] = value
        if "kode_barang" not in given:
            given["kode_barang"] = "-"  # the whole column is missing, which is said once, for the header
        line = read_line(given, baris, number, self._decimal, self._problems)
        for index in range(said, len(self._problems)):
            problem = self._problems[index]
            if problem.kolom in names:
                place = f"{get_column_letter(names.index(problem.kolom) + 1)}{number}"
                self._problems[index] = replace(problem, pesan=f"sel {place}: {problem.pesan}")
        if line is not None:
            self.lines.append(line)
            self.file_lines.append(number)

    def _say(self, pesan: str) -> None:
        self._problems.append(FileProblem(None, "", pesan))


def stored(name: str, cell: Any) -> str | None:
    """What a cell holds, as the text the other formats would have. Raises ValueError with a sentence."""
    from openpyxl.utils.escape import unescape

    value, kind = cell.value, cell.data_type
    if kind == "f":
        raise ValueError("berisi rumus; rumus tidak dihitung di sini, tempel hasilnya sebagai nilai")
    if kind == "e":
        raise ValueError(f"berisi kesalahan {shown(value)}")
    if isinstance(value, bool):
        raise ValueError("berisi TRUE atau FALSE, bukan teks atau angka")
    if isinstance(value, (datetime, date, time)):
        return _day(name, value)
    if isinstance(value, (int, float)):
        if name not in _NUMBER_COLUMNS:
            raise ValueError(
                f"{value} tersimpan sebagai angka, nol di depannya mungkin sudah hilang; ubah format kolom menjadi Teks"
                " lalu tulis ulang"
            )
        return _number(value)
    if not isinstance(value, str):
        raise ValueError(f"berisi {type(value).__name__}, bukan teks atau angka")
    return unescape(value) or None


def _number(value: float) -> JsonNumber:
    exact = Decimal(value) if isinstance(value, int) else decimal_of(value)
    if exact is None or significant_digits(exact) > SIGNIFICANT_DIGITS:
        raise ValueError(f"{value!r} {_DIGITS}")
    return JsonNumber(f"{exact:f}")


def _day(name: str, value: datetime | date | time) -> str:
    if name not in _DATE_COLUMNS:
        raise ValueError("berisi tanggal atau jam; Excel mungkin mengubah yang Anda tulis, tulis ulang sebagai teks")
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}" if value.time() == time() and name != "snapshot_at" else f"{value:%Y-%m-%d %H:%M:%S}"
    return value.isoformat()
