"""Workbooks as nobody honest would send them, or as programs other than Excel write them: exact or refused."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st

from everest.intake.files import FileDocument, FileRefused, Reading, read_file
from everest.spreadsheets import guarded

HEADER = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}
COLUMNS = ("kode_barang", "qty_sistem", "qty_fisik", "harga_pokok", "lot", "alasan")
SHEET = "xl/worksheets/sheet1.xml"
DTD = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'

Send = Callable[[bytes], Path]


@pytest.fixture
def send(tmp_path: Path) -> Send:
    def send(content: bytes) -> Path:
        (tmp_path / "opname.xlsx").write_bytes(content)
        return tmp_path / "opname.xlsx"

    return send


def excel(*rows: Sequence[Any]) -> bytes:
    """A workbook as Excel stores it: each text once, in a table of its own. Text stays text whatever it looks like."""
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        page = book.add_worksheet("Opname")
        for row, cells in enumerate((COLUMNS, *rows)):
            for column, value in enumerate(cells):
                if isinstance(value, str):
                    page.write_string(row, column, value)
                elif value is not None:
                    page.write_number(row, column, value)
    return stream.getvalue()


TWO = excel(("A", 1, 2, 3.5, "L1", "rusak"), ("B", 1, 2, 3))


def changed(change: Callable[[bytes], bytes], part: str = SHEET, book: bytes = TWO) -> bytes:
    """The same workbook with one part rewritten."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == part else old.read(name))
    return stream.getvalue()


def read(path: Path, **options: Any) -> FileDocument:
    return read_file(path, Reading(HEADER, **options))


def refusal(path: Path) -> str:
    with pytest.raises(FileRefused) as refused:
        read(path)
    return "\n".join(map(str, refused.value.problems))


def test_h45_codes_that_look_like_escapes_are_not_turned_into_other_codes(send: Send) -> None:
    codes = ["_x0041_", "Bx005F_C", "_x005F_", "00123", "1e5", "é😀"]

    document = read(send(excel(*((code, 1, 1, 1, code) for code in codes))))

    assert [(line.kode_barang, line.lot) for line in document.submission.lines] == [(code, code) for code in codes]


def test_a_code_guarded_in_a_csv_report_comes_back_out_of_a_workbook_it_was_saved_to(send: Send) -> None:
    codes = ["=1+1", "+62", "-5", "@A", "'kutip"]

    document = read(send(excel(*((guarded(code), 1, 1, 1, None, guarded(code)) for code in codes))))

    assert [(line.kode_barang, line.alasan) for line in document.submission.lines] == [(code, code) for code in codes]


@pytest.mark.parametrize("stored", ["0.10000000000000001", "1E-1", ".1", "0.1"])
def test_seventeen_digits_of_a_double_are_what_was_typed(send: Send, stored: str) -> None:
    book = changed(lambda xml: xml.replace(b"<v>3.5</v>", f"<v>{stored}</v>".encode()))

    assert read(send(book)).submission.lines[0].harga_pokok == Decimal("0.1")


@pytest.mark.parametrize(
    "stored", ["9007199254740993", "10000000000000.0001", "100000000000000000001", "1e999", "nan", "1_0", "9" * 5000]
)
def test_digits_that_no_spreadsheet_holds_are_refused_by_cell_and_never_rounded(send: Send, stored: str) -> None:
    book = changed(lambda xml: xml.replace(b"<v>3.5</v>", f"<v>{stored}</v>".encode()))

    assert refusal(send(book)).startswith("baris 1 (baris 2 di berkas), harga_pokok: sel D2: ")


@pytest.mark.parametrize(
    "change",
    [
        lambda xml: xml.replace(b'<row r="3"', b'<row r="2"'),
        lambda xml: xml.replace(b'<row r="3"', b'<row r="1"'),
        lambda xml: xml.replace(b'<row r="3"', b'<row r="9999999"').replace(b'3"', b'9999999"'),
        lambda xml: xml.replace(b'<c r="C3"', b'<c r="B3"'),
        lambda xml: xml.replace(b'<c r="C3"', b'<c r="C2"'),
        lambda xml: xml.replace(b'<c r="B3"', b'<c r="B3" t="zzz"'),
        lambda xml: xml.replace(b'<c r="B3"', b'<c r="B3" s="x"'),
        lambda xml: xml.replace(b't="s"><v>0</v>', b't="s"><v>-1</v>'),
        lambda xml: xml.replace(b't="s"><v>0</v>', b't="s"><v>999</v>'),
        lambda xml: xml.replace(b"</sheetData>", b""),
        lambda xml: xml.replace(b"sheetData", b"other"),
        lambda xml: xml.replace(b"</row>", b"<c><v>1</v></c>" * 100_000 + b"</row>", 1),
        lambda xml: b"",
        lambda xml: b"<a>" * 100_000,
    ],
)
def test_a_sheet_that_is_not_sound_is_refused_and_no_line_of_it_gets_lost(
    send: Send, change: Callable[[bytes], bytes]
) -> None:
    assert "buku kerja ini" in refusal(send(changed(change)))


def test_a_cell_in_the_last_column_of_a_sheet_makes_no_wide_list(send: Send) -> None:
    far = b'<c r="XFD1" t="str"><v>x</v></c></row>'

    assert "65 kolom, paling banyak 64" in refusal(send(changed(lambda xml: xml.replace(b"</row>", far, 1))))


def test_more_texts_than_a_document_needs_are_refused(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everest.intake.xlsx_book.MAX_TEXTS", 3)

    assert "lebih dari 3 teks" in refusal(send(TWO))


@pytest.mark.parametrize("part", [SHEET, "xl/styles.xml", "xl/sharedStrings.xml", "[Content_Types].xml"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_in_every_part_and_encoding(send: Send, part: str, encoding: str) -> None:
    def attack(xml: bytes) -> bytes:
        declaration, rest = xml.split(b"?>", 1)
        declaration = declaration.replace(b"UTF-8", encoding.encode())
        return (declaration + b"?>" + DTD + rest).decode().encode(encoding)

    assert "DOCTYPE" in refusal(send(changed(attack, part)))


@pytest.mark.parametrize("part", [SHEET, "[Content_Types].xml", "docProps/core.xml"])
@pytest.mark.parametrize("encoding", ["TF-8", "gbk", "utf-32", "hex", "idna", "x" * 5000, "utf-16"])
def test_a_part_in_an_encoding_that_nobody_knows_or_that_is_another_is_refused(
    send: Send, part: str, encoding: str
) -> None:
    book = changed(
        lambda xml: b'<?xml version="1.0" encoding="%s"?>' % encoding.encode() + xml.split(b"?>", 1)[1], part
    )

    assert "buku kerja ini rusak" in refusal(send(book))


def test_a_document_type_is_refused_in_a_part_that_hides_its_kind(send: Send) -> None:
    book = changed(lambda xml: xml.replace(b"sheet1.xml", b"sheet1.bin"), "xl/_rels/workbook.xml.rels")
    with zipfile.ZipFile(io.BytesIO(TWO)) as archive:
        sheet = archive.read(SHEET)
    stream = io.BytesIO(book)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("xl/worksheets/sheet1.bin", sheet.replace(b"?>", b"?>" + DTD, 1))

    assert "DOCTYPE" in refusal(send(stream.getvalue()))


def test_a_part_that_is_there_twice_is_refused(send: Send) -> None:
    stream = io.BytesIO(TWO)
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(SHEET, "")

    assert "dua kali" in refusal(send(stream.getvalue()))


with zipfile.ZipFile(io.BytesIO(TWO)) as _archive:
    PARTS = {name: _archive.read(name) for name in _archive.namelist()}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_is_done_to_a_workbook_it_is_read_or_refused_with_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    part = data.draw(st.sampled_from(["", *PARTS]))
    content = PARTS[part] if part else TWO
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        gone = data.draw(st.integers(0, 30))
        content = content[:at] + data.draw(st.binary(max_size=12)) + content[at + gone :]
    path = tmp_path_factory.mktemp("fuzz") / "opname.xlsx"
    path.write_bytes(changed(lambda _: content, part) if part else content)

    try:
        outcome: Sequence[Any] = read(path).submission.lines
    except FileRefused as refused:
        outcome = [problem.pesan for problem in refused.problems]

    assert outcome and all(outcome)


@settings(max_examples=60, deadline=None)
@given(st.decimals(min_value=-99999999, max_value=99999999, places=4))
def test_every_quantity_that_a_spreadsheet_holds_comes_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, value: Decimal
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "opname.xlsx"
    path.write_bytes(excel(("A", float(value), 0, 0)))

    assert read(path).submission.lines[0].qty_sistem == value
