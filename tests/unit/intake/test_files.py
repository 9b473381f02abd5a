"""Files as people really send them: read exactly, or refused with everything that is wrong with them."""

from __future__ import annotations

import gc
import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from everest.intake.csv_file import KNOWN_COLUMNS
from everest.intake.files import FileRefused, FileUnreadable, Reading, read_file
from everest.intake.submission import Line
from everest.spreadsheets import guarded
from tests.unit.intake.reading import COLUMNS, HEADER, Write, places, problems, read

# --------------------------------------------------------------------------------------------------- what is read


def test_h45_codes_that_look_like_numbers_survive_unchanged(write: Write) -> None:
    codes = ["00123", "8991234567890123456", "NA", "1e5", "null", "TRUE", "=1+1", "A B", "é😀"]
    path = write(COLUMNS + "\n" + "".join(f"{code},{code},GD-B,PCS,1,1,1,\n" for code in codes))

    lines = read(path).submission.lines

    assert [(line.kode_barang, line.lot) for line in lines] == [(code, code) for code in codes]


def test_a_code_that_a_report_guarded_against_formulas_comes_back_as_it_was(write: Write) -> None:
    codes = ["=1+1", "+62", "-5", "@A", "'=x", "'kutip", "A'=x"]
    path = write(COLUMNS + "\n" + "".join(f"{guarded(code)},,,,1,1,1,{guarded(code)}\n" for code in codes))

    assert [(line.kode_barang, line.alasan) for line in read(path).submission.lines] == [(code, code) for code in codes]


def test_a_guard_makes_no_number(write: Write) -> None:
    assert places(problems(write(COLUMNS + "\nA,,,,'-5,1,1,\n"))) == [(1, "qty_sistem", 2)]


def test_a_line_is_read_with_all_its_columns_in_column_scale(write: Write) -> None:
    path = write(COLUMNS + "\nBRG-1,L1,GD-B,PCS,10,12.5,1500.25,rusak\nBRG-2,,,,-3,0,,\n")

    document = read(path)

    assert document.submission.lines == (
        Line("BRG-1", "L1", "GD-B", "PCS", Decimal("10.0000"), Decimal("12.5000"), Decimal("1500.250000"), "rusak"),
        Line("BRG-2", "", None, None, Decimal("-3.0000"), Decimal("0.0000"), None, None),
    )
    assert document.file_lines == (2, 3)


def test_h08_a_blank_count_is_not_counted_and_never_zero(write: Write) -> None:
    (line,) = read(write(COLUMNS + "\nBRG-1,,,,10,,5,\n")).submission.lines

    assert line.qty_fisik is None


def test_h26_a_decimal_comma_is_read_only_where_it_was_declared(write: Write) -> None:
    path = write("kode_barang;qty_sistem;qty_fisik;harga_pokok\nBRG-1;1.250;13,75;1.234.567,5\n")

    (line,) = read(path, decimal="id").submission.lines
    refused = problems(path)

    assert line[4:7] == (Decimal("1250"), Decimal("13.75"), Decimal("1234567.5"))
    assert places(refused) == [(1, "qty_sistem", 2), (1, "qty_fisik", 2), (1, "harga_pokok", 2)]
    assert "1375" not in refused[1].pesan


def test_h26_a_file_of_whole_thousands_is_refused_by_cell_until_its_decimal_sign_is_declared(write: Write) -> None:
    path = write("kode_barang,qty_sistem,qty_fisik,harga_pokok\nA,1.000,0.049,1500.00\nB,5,12.345,100.000\n")

    refused = problems(path)
    declared = read(path, decimal="en").submission.lines[1].qty_fisik

    assert places(refused) == [(1, "qty_sistem", 2), (2, "qty_fisik", 3), (2, "harga_pokok", 3)]
    assert all("tanda desimal koma (--decimal id)" in problem.pesan for problem in refused)
    assert declared == Decimal("12.345")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_seen_in_the_header_and_quotes_may_hold_it(write: Write, delimiter: str) -> None:
    names = delimiter.join(["kode_barang", "qty_sistem", "qty_fisik", "harga_pokok", "alasan"])
    path = write(f'{names}\nBRG-1{delimiter}1{delimiter}1{delimiter}1{delimiter}"a, ""b""; c"\n')

    (line,) = read(path).submission.lines

    assert line.alasan == 'a, "b"; c'


def test_a_byte_order_mark_dos_line_ends_and_upper_case_titles_are_no_problem(write: Write) -> None:
    path = write(b"\xef\xbb\xbfKode_Barang,QTY_SISTEM, qty_fisik ,harga_pokok\r\nBRG-1,1,2,3\r\n,,,\r\n\r\n")

    assert [line.kode_barang for line in read(path).submission.lines] == ["BRG-1"]


def test_the_header_may_stand_in_columns_or_in_options_and_agree(write: Write) -> None:
    path = write(
        "nomer_nota,gudang_dokumen,tanggal_opname,snapshot_at,transaksi_id,kode_barang,qty_sistem,qty_fisik,harga_pokok\n"
        "SO-9,GD-B,2026-08-31,2026-08-31 17:00 WIB,77,BRG-1,1,1,1\n"
        "SO-9,,2026-08-31,2026-08-31 17:00 WIB,,BRG-2,1,1,1\n"
    )

    submission = read(path, {"nomer_nota": "SO-9", "tanggal_posting": "2026-09-01"}).submission

    assert (submission.nomer_nota, submission.gudang_kode, submission.transaksi_id) == ("SO-9", "GD-B", 77)
    assert submission.snapshot_at == datetime(2026, 8, 31, 10, tzinfo=UTC)
    assert submission.tanggal_posting == date(2026, 9, 1)


def test_trailing_blank_cells_that_a_spreadsheet_left_out_are_blank(write: Write) -> None:
    path = write("kode_barang,qty_sistem,qty_fisik,harga_pokok,lot,alasan\nBRG-1,1,1,1\n")

    assert read(path).submission.lines[0].lot == ""


# ------------------------------------------------------------------------------------------------ what is refused


def test_h02a_every_flaw_of_a_large_file_is_named_by_row_column_and_file_line(write: Write) -> None:
    rows = 20_000
    path = write(COLUMNS + "\n" + "".join(f"ITM-{n},,,,sepuluh,12,mahal,\n" for n in range(rows)))

    found = problems(path)

    expected = [(n, column, n + 1) for n in range(1, rows + 1) for column in ("qty_sistem", "harga_pokok")]
    assert places(found) == expected


def test_all_problems_of_titles_rows_and_options_come_at_once(write: Write) -> None:
    path = write(
        "kode_barang,kode_barang,qty_sistem,qty_fisik,warna,diotorisasi_oleh\n"
        " A1,A1,1,1.23456,merah,budi\n"
        "B2,B2,100000000000000,1,merah,budi,lagi\n"
    )

    found = problems(path, {"nomer_nota": "SO-1 ", "tanggal_opname": "31/08/2026"})

    assert places(found) == [
        (None, "--nota", None),
        (None, "--tanggal-opname", None),
        (None, "gudang_dokumen", None),
        (None, "kode_barang", 1),
        (None, "'warna'", 1),
        (None, "diotorisasi_oleh", 1),
        (None, "harga_pokok", 1),
        (1, "kode_barang", 2),
        (1, "qty_fisik", 2),
        (2, "", 3),
    ]
    assert "orang yang login" in found[5].pesan


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("A\x00B", "U+0000"),
        ("A\x07B", "U+0007"),
        ("A\u200b", "U+200B"),
        (" A", "spasi"),
        ("A\u00a0", "spasi"),
        ("x" * 65, "65 karakter"),
        ("", "kosong"),
    ],
)
def test_a_code_that_would_meet_another_one_unseen_is_refused(write: Write, cell: str, word: str) -> None:
    (found,) = problems(write(f"kode_barang,qty_sistem,qty_fisik,harga_pokok\n{cell},1,1,1\n"))

    assert (found.baris, found.kolom) == (1, "kode_barang")
    assert word in found.pesan


def test_broken_encoding_is_named_by_its_cell(write: Write) -> None:
    path = write(b"kode_barang,qty_sistem,qty_fisik,harga_pokok,alasan\nA,1,1,1,baik\nB\xff,1,1,1,r\xe9sum\xe9\n")

    found = problems(path)

    assert places(found) == [(2, "kode_barang", 3), (2, "alasan", 3)]
    assert all("UTF-8" in problem.pesan for problem in found)
    str(found[0]).encode()  # what is shown of a broken byte can be printed


@pytest.mark.parametrize("text", ["rusak\u00a0berat\nbasah", "a\u200b\x1b[2J", "a\u200b\x00b", "\u3000\x85"])
def test_a_control_character_is_found_behind_one_that_is_only_not_printed(write: Write, text: str) -> None:
    line = {"kode_barang": "A", "qty_sistem": "1", "qty_fisik": "1", "harga_pokok": "1", "satuan": text, "alasan": text}
    found = problems(write(json.dumps({**HEADER, "baris": [line]}), "opname.json"))

    assert [(problem.kolom, "karakter kontrol" in problem.pesan) for problem in found] == [
        ("satuan", True),
        ("alasan", True),
    ]


def test_a_text_with_a_line_break_or_control_character_is_refused(write: Write) -> None:
    path = write('kode_barang,qty_sistem,qty_fisik,harga_pokok,alasan\nA,1,1,1,"dua\nbaris"\nB,1,1,1,x\x1b[2J\n')

    assert places(problems(path)) == [(1, "alasan", 2), (2, "alasan", 4)]


@pytest.mark.parametrize(
    "number", ["1,5", "1e3", "NaN", "Infinity", "１２", "0x10", "1_000", "--1", "1.23456", "9" * 5000]
)
def test_a_quantity_that_is_not_plainly_a_number_is_refused(write: Write, number: str) -> None:
    (found,) = problems(write(f'kode_barang,qty_sistem,qty_fisik,harga_pokok\nA,1,"{number}",1\n'))

    assert (found.baris, found.kolom, found.file_line) == (1, "qty_fisik", 2)


def test_a_row_with_too_many_cells_is_not_shifted_into_place(write: Write) -> None:
    found = problems(write("kode_barang,qty_sistem,qty_fisik,harga_pokok\nA,10,13,75,1500\nB,1,1\n"))

    assert places(found) == [(1, "", 2), (2, "harga_pokok", 3)]


def test_a_stray_quote_is_named_and_the_rows_after_it_are_still_read(write: Write) -> None:
    found = problems(write('kode_barang,qty_sistem,qty_fisik,harga_pokok\n"A"x,1,1,1\nB,satu,1,1\n"C,1,1,1\nD,1,1,1\n'))

    assert places(found) == [(None, "", 2), (None, "", 4), (1, "qty_sistem", 3)]


def test_a_title_row_that_cannot_be_read_is_the_only_problem_and_no_row_takes_its_place(write: Write) -> None:
    (problem,) = problems(write('kode_barang,"qty"_sistem,qty_fisik,harga_pokok\nA,1,x,1\nB,1,y,1\n'))

    assert (problem.baris, problem.file_line) == (None, 1)
    assert "tanda kutip" in problem.pesan


def test_blank_lines_before_the_titles_are_counted_and_passed_over(write: Write) -> None:
    found = problems(write("\n \r\nkode_barang,qty_sistem,qty_fisik,warna\nA,1,x,1\n"))

    assert places(found) == [(None, "'warna'", 3), (None, "harga_pokok", 3), (1, "qty_fisik", 4)]


def test_a_delimiter_that_could_be_two_is_not_guessed(write: Write) -> None:
    path = write("kode barang,qty;qty_fisik\nA,1;2\n")

    (found,) = problems(path)

    assert "--delimiter" in found.pesan


def test_rows_that_name_different_documents_are_refused(write: Write) -> None:
    path = write("nomer_nota,kode_barang,qty_sistem,qty_fisik,harga_pokok\nSO-1,A,1,1,1\nSO-2,B,1,1,1\n")

    assert places(problems(path)) == [(2, "nomer_nota", 3)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("snapshot_at", "2026-08-31 17:00"),
        ("snapshot_at", "2026-08-31"),
        ("snapshot_at", "2026-08-31T25:00:00Z"),
        ("tanggal_opname", "2026-02-30"),
        ("tanggal_opname", "0206-08-31"),
        ("tanggal_posting", "20260831"),
        ("transaksi_id", "0"),
        ("transaksi_id", "12.0"),
        ("transaksi_id", str(2**63)),
    ],
)
def test_a_header_value_that_could_mean_two_things_is_refused(write: Write, field: str, value: str) -> None:
    path = write("kode_barang,qty_sistem,qty_fisik,harga_pokok\nA,1,1,1\n")

    (found,) = problems(path, {**HEADER, field: value})

    assert found.kolom == "--" + field.replace("_", "-")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "judul"),
        (b"kode_barang,qty_sistem,qty_fisik,harga_pokok\n", "tidak punya baris"),
        (b"PK\x03\x04rest", "Excel"),
        (b"\xff\xfek\x00o\x00", "UTF-16"),
    ],
)
def test_a_file_without_a_document_says_what_it_is(write: Write, content: bytes, word: str) -> None:
    (found,) = problems(write(content))

    assert word in found.pesan


def test_only_regular_files_of_a_known_kind_are_read(tmp_path: Path, write: Write) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    paths = [tmp_path, tmp_path / "pipe.csv", Path("/dev/zero"), tmp_path / "absent.csv", write("x", "opname.ods")]

    for path in paths:
        with pytest.raises(FileUnreadable):
            read(path, file_format=None if path.suffix == ".ods" else "csv")


def test_every_column_that_is_read_is_a_column_of_the_tables(write: Write) -> None:
    assert set(KNOWN_COLUMNS) == set(COLUMNS.split(",")) | {
        "nomer_nota",
        "gudang_dokumen",
        "tanggal_opname",
        "tanggal_posting",
        "snapshot_at",
        "transaksi_id",
        "submit_token",
    }


def test_size_has_limits_and_a_sentence_for_each(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everest.intake.csv_file.MAX_LINES", 2)
    monkeypatch.setattr("everest.intake.json_file.MAX_LINES", 2)
    titles = "kode_barang,qty_sistem,qty_fisik,harga_pokok\n"
    line = '{"kode_barang": "A", "qty_sistem": 1, "qty_fisik": 1, "harga_pokok": 1}'

    rows = problems(write(titles + "A,1,1,1\n" * 3))
    objects = problems(write(f'{{"baris": [{line}, {line}, {line}]}}', "opname.json"))
    cells = problems(write(titles + "," * 70_000))
    columns = problems(write("x," * 65 + "x\nA\n"))

    assert ["2" in found[0].pesan for found in (rows, objects)] == [True, True]
    assert (rows[0].file_line, cells[0].file_line) == (4, 2)
    assert "66 kolom" in columns[0].pesan

    monkeypatch.setattr("everest.intake.files.MAX_FILE_BYTES", 10)
    with pytest.raises(FileUnreadable, match="more than 10"):
        read(write(titles))


# ------------------------------------------------------------------------------------------------------------ JSON


def test_more_problems_than_anybody_reads_are_counted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everest.intake.problem_list.MAX_PROBLEMS", 10)
    lines = [{"a": 1, "b": 2}] * 5
    for path in (
        write(f"{COLUMNS}\n" + "A,,,,x,y,z,\n" * 5),
        write(json.dumps({**HEADER, "baris": lines}), "opname.json"),
    ):
        with pytest.raises(FileRefused, match=r"(15|30) problem") as refused:
            read(path)
        *named, more = refused.value.problems
        assert (len(named), more.baris) == (10, None)
        assert more.pesan in (
            "dan 5 masalah lagi; perbaiki yang disebut dulu",
            "dan 20 masalah lagi; perbaiki yang disebut dulu",
        )


def test_the_collector_pauses_while_a_file_is_read_and_works_as_before_afterwards(write: Write) -> None:
    path = write(COLUMNS + "\n" + "A,,,,1,1,1,\n" * 600)
    seen = []
    for at_work in (True, False):
        (gc.enable if at_work else gc.disable)()
        try:
            read_file(path, Reading(HEADER), lambda done: seen.append(gc.isenabled()))
            problems(write(COLUMNS + "\nA,,,,x,1,1,\n", "flawed.csv"))
            assert gc.isenabled() is at_work
        finally:
            gc.enable()

    assert seen and not any(seen)
