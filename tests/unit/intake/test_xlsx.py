"""Workbooks as people really send them: read exactly, or refused with everything that is wrong; never a traceback."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from everest.intake import xlsx_archive
from everest.intake.cells import FileProblem
from everest.intake.files import FileDocument, FileRefused, Reading, read_file
from everest.intake.template import COLUMNS as TEMPLATE_COLUMNS
from everest.intake.template import template_csv, template_xlsx

HEADER = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}
TITLES = ("kode_barang", "qty_sistem", "qty_fisik", "harga_pokok", "lot", "alasan")

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*rows: Sequence[Any], titles: Sequence[Any] = TITLES, sheets: Sequence[str] = ("Opname",)) -> Path:
        book = openpyxl.Workbook()
        sheet = book.active
        assert sheet is not None
        sheet.title = sheets[0]
        for row in (titles, *rows):
            sheet.append(list(row))
        for name in sheets[1:]:
            book.create_sheet(name)
        path = tmp_path / "opname.xlsx"
        book.save(path)
        return path

    return write


def read(path: Path, header: dict[str, str | None] | None = None, **options: Any) -> FileDocument:
    return read_file(path, Reading(HEADER if header is None else header, **options))


def problems(path: Path, **options: Any) -> list[FileProblem]:
    with pytest.raises(FileRefused) as refused:
        read(path, **options)
    return list(refused.value.problems)


def repacked(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """The workbook with one of its parts changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = change(parts[part])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_h45_codes_in_text_cells_survive_and_numbers_are_taken_as_they_are_shown(write: Write) -> None:
    codes = ["00123", "8991234567890123456", "NA", "1e5", "#N/A?", "TRUE", "+62"]
    path = write(*((code, 10, 12.5, 1500.25, code, None) for code in codes), ("B", -3, "0", "0.049"), (None,) * 6)

    document = read(path)

    *lines, last = document.submission.lines
    assert [(line.kode_barang, line.lot) for line in lines] == [(code, code) for code in codes]
    assert {line[4:7] for line in lines} == {(D("10.0000"), D("12.5000"), D("1500.250000"))}
    assert last[4:7] == (D("-3"), D("0"), D("0.049"))
    assert document.file_lines == tuple(range(2, 10))


def test_text_numbers_follow_the_declared_locale_and_number_cells_need_none(write: Write) -> None:
    path = write(("A", "1.250", "13,75", 12.345))

    assert read(path, decimal="id").submission.lines[0][4:7] == (D("1250"), D("13.75"), D("12.345"))
    assert [problem.kolom for problem in problems(path)] == ["qty_sistem", "qty_fisik"]


def test_a_blank_count_is_not_counted_and_a_blank_row_is_no_row(write: Write) -> None:
    document = read(write(("A", 10, None, 5), (None,) * 6, ("", "", ""), ("B", 1, 1, 1)))

    assert [line.qty_fisik for line in document.submission.lines] == [None, D(1)]
    assert document.file_lines == (2, 5)


def test_everything_wrong_is_said_at_once_by_row_and_cell(write: Write) -> None:
    path = write(
        (123, 1, 1, 1),
        ("A", "=1+1", 1 / 3, 9007199254740993),
        ("B", True, date(2026, 1, 2), "#N/A"),
        ("C ", 1.23456, 1, 1, 7, None, "sisa"),
    )

    found = problems(path)

    assert [(problem.baris, problem.kolom, problem.file_line) for problem in found] == [
        (1, "kode_barang", 2),
        (2, "qty_sistem", 3),
        (2, "qty_fisik", 3),
        (2, "harga_pokok", 3),
        (3, "qty_sistem", 4),
        (3, "qty_fisik", 4),
        (3, "harga_pokok", 4),
        (4, "lot", 5),
        (4, "", 5),
        (4, "kode_barang", 5),
        (4, "qty_sistem", 5),
    ]
    texts = [problem.pesan for problem in found]
    assert "sel A2: 123 tersimpan sebagai angka" in texts[0] and "rumus tidak dihitung" in texts[1]
    assert "sel C3: 0.3333333333333333 lebih dari 15 digit" in texts[2] and "sel D4" in texts[6]
    assert "G5" in texts[8]


def test_header_fields_may_stand_in_columns_with_real_dates(write: Write) -> None:
    titles = ("nomer_nota", "gudang_dokumen", "tanggal_opname", "snapshot_at", "transaksi_id", *TITLES[:4])
    path = write(("SO-9", "GD-B", date(2026, 8, 31), "2026-08-31 17:00 WIB", 77, "A", 1, 1, 1), titles=titles)

    submission = read(path, {}).submission

    assert (submission.nomer_nota, submission.tanggal_opname, submission.transaksi_id) == (
        "SO-9",
        date(2026, 8, 31),
        77,
    )
    assert submission.snapshot_at == datetime(2026, 8, 31, 10, tzinfo=UTC)


def test_a_snapshot_as_a_date_cell_has_no_zone_and_is_refused(write: Write) -> None:
    path = write((datetime(2026, 8, 31, 17), "A", 1, 1, 1), titles=("snapshot_at", *TITLES[:4]))

    assert [problem.kolom for problem in problems(path)] == ["snapshot_at"]


def test_titles_are_judged_as_in_a_csv(write: Write) -> None:
    path = write(("A", 1), titles=("Kode_Barang", "warna", "diotorisasi_oleh", "kode_barang"))

    assert {problem.kolom for problem in problems(path)} >= {
        "'warna'",
        "diotorisasi_oleh",
        "kode_barang",
        "harga_pokok",
    }


def test_a_sheet_is_chosen_by_name_and_else_the_first_visible_one(write: Write) -> None:
    path = write(("A", 1, 1, 1), sheets=("Opname", "Lain"))

    assert len(read(path, sheet="Opname").submission.lines) == 1
    (missing,) = problems(path, sheet="Tidak")
    assert "'Opname', 'Lain'" in missing.pesan
    assert "judul kolom" in problems(path, sheet="Lain")[0].pesan


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "kata sandi"),
        (b"PK\x03\x04 and then nothing of a zip", "rusak"),
        (b"kode_barang,qty_sistem\nA,1\n", "bukan buku kerja"),
        (b"%PDF-1.7", "PDF"),
        (b"", "bukan buku kerja"),
    ],
)
def test_what_is_no_workbook_is_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "opname.xlsx"
    path.write_bytes(content)

    (problem,) = problems(path)

    assert words in problem.pesan


def test_another_zip_a_torn_one_and_a_sheet_of_nonsense_are_sentences(write: Write, tmp_path: Path) -> None:
    other = tmp_path / "lain.xlsx"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "a")
    assert "bukan buku kerja" in problems(other)[0].pesan

    torn = write(("A", 1, 1, 1))
    torn.write_bytes(torn.read_bytes()[:-400])
    assert "rusak" in problems(torn)[0].pesan

    broken = repacked(write(("A", 1, 1, 1)), "xl/worksheets/sheet1.xml", lambda xml: xml[: len(xml) // 2])
    assert "tidak terbaca" in problems(broken)[0].pesan
    nonsense = repacked(write(("A", 1, 1, 1)), "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b'r="A2"', b'r="?"'))
    assert "tidak terbaca" in problems(nonsense)[0].pesan


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "[Content_Types].xml"])
def test_a_document_type_is_refused_before_anything_is_parsed(write: Write, part: str) -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]>'
    path = repacked(write(("A", 1, 1, 1)), part, lambda xml: b"<?xml version='1.0'?>" + bomb + xml[xml.find(b"<", 1) :])

    assert "DOCTYPE" in problems(path)[0].pesan


def test_a_zip_bomb_is_refused_by_what_it_would_unpack_to(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = repacked(write(("A", 1, 1, 1)), "xl/styles.xml", lambda xml: xml + b" " * (3 * 2**20))
    assert "tidak wajar" in problems(path)[0].pesan

    monkeypatch.setattr(xlsx_archive, "MAX_UNPACKED_BYTES", 1000)
    assert "lebih dari" in problems(write(("A", 1, 1, 1)))[0].pesan


def test_a_row_number_beyond_a_sheet_is_refused_and_the_row_not_lost(write: Write) -> None:
    path = repacked(
        write(("A", 1, 1, 1), ("B", 1, 1, 1)),
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b'<row r="3"', b'<row r="99999999999"').replace(b'3"><v>', b'99999999999"><v>'),
    )

    assert "baris 99999999999" in problems(path)[0].pesan


def test_a_workbook_named_csv_is_told_how_to_say_it(write: Write) -> None:
    path = write(("A", 1, 1, 1))
    renamed = path.rename(path.with_suffix(".csv"))

    assert "--format xlsx" in problems(renamed)[0].pesan
    assert len(read(renamed, file_format="xlsx").submission.lines) == 1


def test_the_templates_are_read_as_documents_without_lines(tmp_path: Path) -> None:
    for name, content in (("a.csv", template_csv()), ("a.xlsx", template_xlsx())):
        path = tmp_path / name
        path.write_bytes(content)
        assert [problem.pesan for problem in problems(path)] == ["dokumen tidak punya baris"]
    sheet = openpyxl.load_workbook(io.BytesIO(template_xlsx())).active
    assert sheet is not None and [cell.value for cell in sheet[1]] == list(TEMPLATE_COLUMNS)
