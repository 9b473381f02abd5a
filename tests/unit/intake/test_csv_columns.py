"""A plain file taken by columns is the file that the cell-by-cell reading finds, and any other is left to it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everest.intake.cells import FileProblem
from everest.intake.csv_columns import plain_table
from everest.intake.csv_file import COLUMN_NAMES, CsvReader
from everest.intake.header import HeaderReader
from everest.opname.amounts import DecimalLocale

TITLES = ["kode_barang", "lot", "gudang_kode", "qty_sistem", "qty_fisik", "harga_pokok", "alasan", "nomer_nota"]
NUMBERS = ["", "0", "-0", "7", "-3", "13,75", "13.75", "1.000", "1,000", "1.234,5", "1,234.5", "00012", "1e5", " 4"]
NUMBERS += ["9" * 14, "9" * 15, "0,00001", "0.00001", "0" * 70, "١٢", "NaN", "--1"]
TEXTS = ["", "A-1", "a b", " A", "'=A1", "'A", "''=A", "NA", "00123", "x" * 300, "é", "a\u200bb", "a\nb", 'a"b', "a;b"]

numbers = st.one_of(st.sampled_from(NUMBERS), st.decimals(0, 10**6, places=4).map(str))
texts = st.one_of(st.sampled_from(TEXTS), st.text("AB1-", min_size=1, max_size=6))
row = st.tuples(texts, texts, texts, numbers, numbers, numbers, texts, st.sampled_from(["SO-1", "SO-1", "", "SO-2"]))
plain_number = st.integers(0, 10**6).map(str)
plain_row = st.tuples(
    st.text("AB1-", min_size=1, max_size=6),
    st.sampled_from(["", "L1"]),
    st.sampled_from(["", "GD-A"]),
    plain_number,
    plain_number,
    plain_number,
    st.sampled_from(["", "rusak di rak 3"]),
    st.just("SO-1"),
)


def written(rows: list[tuple[str, ...]], end: str = "\n") -> bytes:
    target = io.StringIO(newline="")
    csv.writer(target, delimiter=";", lineterminator=end).writerows([TITLES, *rows])
    return target.getvalue().encode()


def read(content: bytes, decimal: DecimalLocale | None) -> tuple[Any, ...]:
    problems: list[FileProblem] = []
    header = HeaderReader(problems, COLUMN_NAMES)
    reader = CsvReader(problems, header, decimal, None)
    reader.read(io.BytesIO(content), lambda done: None)
    exact = [tuple(map(str, line)) for line in reader.lines]  # 1.0 and 1.0000 are the same number
    return exact, reader.file_lines, [str(problem) for problem in problems], header._values


def cell_by_cell(content: bytes, decimal: DecimalLocale | None) -> tuple[Any, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("everest.intake.csv_file.plain_table", lambda *given: None)
        return read(content, decimal)


@given(
    rows=st.one_of(st.lists(row, max_size=4), st.lists(plain_row, max_size=6)),
    decimal=st.sampled_from(["id", "en", None]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@example([("A-1", "", "", "-0", "1", "2", "", "")], "id", "\n")
@example([("A-1", "", "", "1.000", "1", "2", "", "")], None, "\n")
@example([("", "", "", "", "", "", "", ""), ("A", "", "GD-A", "1", "", "2", "", "SO-1")], "id", "\n")
def test_both_ways_read_the_same_lines_and_find_the_same_problems(
    rows: list[tuple[str, ...]], decimal: DecimalLocale | None, end: str
) -> None:
    content = written(rows, end)
    assert read(content, decimal) == cell_by_cell(content, decimal)


@given(st.lists(plain_row, min_size=1, max_size=6))
def test_a_plain_file_goes_by_columns(rows: list[tuple[str, ...]]) -> None:
    assert plain_table(written(rows), ";", TITLES, "id") is not None


@pytest.mark.parametrize(
    "content",
    [
        b"\xffA-1;;;1;1;1;;",
        b'"A\n1";;;1;1;1;;',
        b"A-1;;;1;1",
        b"A-1;;;1;1;1;;;more",
        b'A"-1;;;1;"1"x;1;;',
        b"A-1;;;1;1;1;" + b"x" * 70_000 + b";",
        b"",
    ],
)
def test_a_file_whose_shape_is_not_plain_is_left_to_the_other_reading(content: bytes) -> None:
    whole = ";".join(TITLES).encode() + b"\n" + content
    assert plain_table(whole, ";", TITLES, "id") is None
    assert read(whole, "id") == cell_by_cell(whole, "id")
