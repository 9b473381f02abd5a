"""`everest submit` and `replace`: what comes in, and what is refused by row and column."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from everest.cli import output
from everest.opname.document import WIB
from tests import builders
from tests.builders import rows
from tests.integration.cli.conftest import BAD, HEADER, TITLES, Everest, WriteFile, answer
from tests.integration.opname.walk import Walker


def test_submit_says_which_job_it_became_and_again_says_already_submitted(everest: Everest, write: WriteFile) -> None:
    file = write()
    first, second = everest("submit", file, *HEADER), everest("submit", file, *HEADER)

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "Submitted SO-1 as job #1" in first.stdout
    assert "Already submitted: SO-1 is job #1 (PENDING). Nothing was stored." in second.stdout


def test_h45_a_template_filled_in_is_staged_cell_by_cell(everest: Everest, connection: Any, tmp_path: Path) -> None:
    file = tmp_path / "hitung.xlsx"
    assert everest("submit", str(file), "--template").exit_code == 0
    again = everest("submit", str(file), "--template")
    assert (again.exit_code, "is there already" in again.output) == (2, True)
    book = openpyxl.load_workbook(file)
    for row, cells in enumerate((("00123", 10, 12.75, 1500.01), ("1e5", "7", None, "2500.50")), start=2):
        for column, value in enumerate(cells, start=1):
            book["Opname"].cell(row, column, value)
    book.save(file)

    submitted = everest("submit", str(file), *HEADER)

    assert (submitted.exit_code, "2 lines stored" in submitted.stdout) == (0, True), submitted.output
    columns = "kode_barang, qty_sistem, qty_fisik, harga_pokok"
    assert [
        tuple(row.values()) for row in rows(connection, f"SELECT {columns} FROM so_details_staging ORDER BY baris")
    ] == [
        ("00123", Decimal("10.0000"), Decimal("12.7500"), Decimal("1500.010000")),
        ("1e5", Decimal("7.0000"), None, Decimal("2500.500000")),
    ]


def test_a_workbook_whose_codes_became_numbers_stores_nothing(
    everest: Everest, connection: Any, tmp_path: Path
) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for cells in (TITLES.strip().split(","), (123, 10, 12, 1500), ("BRG-B", 7, 5, "=1+1")):
        book.active.append(cells)
    book.save(tmp_path / "hitung.xlsx")

    refused = everest("submit", str(tmp_path / "hitung.xlsx"), *HEADER, "--json")

    assert refused.exit_code == 1
    assert [(error["file_line"], error["kolom"]) for error in answer(refused)["errors"]] == [
        (2, "kode_barang"),
        (3, "harga_pokok"),
    ]
    assert rows(connection, "SELECT 1 FROM so_headers_staging") == []


def test_submit_answers_programs_in_json(everest: Everest, write: WriteFile) -> None:
    first = answer(everest("submit", write(), *HEADER, "--token", "form-1", "--json"))
    second = answer(everest("submit", write(), *HEADER, "--token", "form-1", "--json"))
    other = everest("submit", write(BAD), *HEADER, "--token", "form-1", "--json")

    assert (first["status"], first["code"], first["baris"], first["already_submitted"]) == ("success", 200, 3, False)
    assert (second["shadow_id"], second["already_submitted"]) == (first["shadow_id"], True)
    assert (other.exit_code, answer(other)["code"]) == (3, 409)
    assert "already submitted with other content" in answer(other)["message"]


def test_a_refused_file_is_told_by_row_and_column_and_stores_nothing(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    file = write(TITLES + "BRG-A,10,13;75,x\nBRG-B,1,1,1\n B,1,1,1\n")

    people, programs = everest("submit", file, *HEADER), everest("submit", file, *HEADER, "--json")

    assert people.exit_code == programs.exit_code == 1
    assert "baris 1 (baris 2 di berkas), qty_fisik: '13;75'" in people.stderr
    assert "3 problems, nothing was stored" in people.stderr
    assert [(error["baris"], error["kolom"], error["file_line"]) for error in answer(programs)["errors"]] == [
        (1, "qty_fisik", 2),
        (1, "harga_pokok", 2),
        (3, "kode_barang", 4),
    ]
    assert rows(connection, "SELECT id FROM so_headers_staging") == []


def test_check_names_what_posting_would_refuse_and_stores_nothing(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    builders.period(connection, "2026-07")
    file = write(
        "kode_barang,qty_sistem,qty_fisik,harga_pokok,gudang_kode\n"
        "BRG-A,10,,1500,\n\nBRG-B,10,-1,1500,GD-X\nBRG-C,10,12,,\nBRG-C,1,1,1,\n"
    )

    refused = everest("submit", file, *HEADER, "--check", "--level", "1", "--tanggal-posting", "2026-07-31", "--json")
    fine = everest("submit", write(), *HEADER, "--check")

    assert {(error["baris"], error["kolom"], error["file_line"]) for error in answer(refused)["errors"]} == {
        (None, "otorisasi_level", None),
        (None, "tanggal_posting", None),
        (1, "qty_fisik", 2),
        (2, "gudang_kode", 4),
        (2, "qty_fisik", 4),
        (3, "harga_pokok", 5),
        (3, "kode_barang", 5),
        (4, "kode_barang", 6),
    }
    assert (refused.exit_code, fine.exit_code) == (1, 0)
    assert rows(connection, "SELECT id FROM transaksi") == []


def test_a_posting_date_far_ahead_is_told_before_it_posts(everest: Everest, write: WriteFile) -> None:
    today = datetime.now(WIB).date()

    fine = everest("submit", write(), *HEADER, "--check", "--tanggal-posting", str(today + timedelta(days=31)))
    slip = everest("submit", write(), *HEADER, "--check", "--tanggal-posting", str(today + timedelta(days=400)))

    assert (fine.exit_code, fine.stderr) == (0, "")
    assert (slip.exit_code, "more than a month from now" in slip.stderr) == (0, True)


def test_check_warns_of_a_nota_that_is_posted_already(everest: Everest, write: WriteFile) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")

    same = everest("submit", write(), *HEADER, "--check", "--json")
    other = everest("submit", write(TITLES + "BRG-A,1,2,3\n"), *HEADER, "--check", "--json")

    assert same.exit_code == 0
    assert [error["kolom"] for error in answer(other)["errors"]] == ["nomer_nota"]


def test_a_nota_that_is_posted_is_a_conflict_at_once_and_again_a_success_for_the_same_content(
    everest: Everest, write: WriteFile, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")

    same = everest("submit", write(), *HEADER)
    file = write(TITLES + "BRG-A,1,2,3\n")
    others = [everest("submit", file, *HEADER, *more) for more in ((), ("--token", "x"), ("--transaksi-id", "4711"))]
    monkeypatch.setattr(output, "operator", lambda: "dewi")
    everest("reverse", "SO-1", "--reason", "salah gudang")
    everest("post", "SO-1-BALIK")
    reversed_since = everest("submit", file, *HEADER)

    assert (same.exit_code, "Already submitted" in same.stdout) == (0, True), same.output
    assert [other.exit_code for other in others] == [3, 3, 3]
    assert all("nota SO-1 is posted already (transaksi 1, posting 1); nothing" in other.stderr for other in others)
    assert reversed_since.exit_code == 3
    assert "posting 1, reversed by SO-1-BALIK); nothing was stored" in reversed_since.stderr
    assert len(rows(connection, "SELECT id FROM so_headers_staging")) == 1


def test_who_authorised_comes_from_the_command_line_alone(everest: Everest, write: WriteFile, connection: Any) -> None:
    everest("submit", write(), *HEADER, "--as", "budi", "--level", "4")

    (header,) = rows(connection, "SELECT diotorisasi_oleh, otorisasi_level, dibuat_oleh FROM so_headers_staging")
    (audit,) = rows(connection, "SELECT actor FROM audit_log")
    assert (header["diotorisasi_oleh"], header["otorisasi_level"]) == ("budi", 4)
    assert header["dibuat_oleh"] == audit["actor"] != "budi"


def test_a_failed_document_is_replaced_and_rerun_and_posted(
    everest: Everest, write: WriteFile, walker: Walker, connection: Any
) -> None:
    everest("submit", write(BAD), *HEADER)
    assert walker.post(1) == "FAILED"
    shown = everest("status", "SO-1")
    assert "submit FILE --replace --nota SO-1" in shown.stdout
    assert "baris 1, qty_fisik" in shown.stdout

    replaced = everest("submit", write(), "--nota", "SO-1", "--replace")
    assert replaced.exit_code == 0, replaced.output
    assert "python -m everest rerun '#1'" in replaced.stdout
    (header,) = rows(connection, "SELECT COALESCE(snapshot_at, created_at) AS at FROM so_headers_staging")
    assert f"those of {output.wib(header['at'])}, the snapshot it had" in replaced.stdout
    anew = everest("submit", write(), "--nota", "SO-1", "--replace", "--snapshot-at", "2026-08-31 17:00 WIB", "--json")
    told = answer(anew)
    assert (told["snapshot_at"], told["keeps_snapshot"]) == ("2026-08-31T17:00:00+07:00", False)
    assert "those of 2026-08-31 17:00:00 WIB." in told["message"] + "."
    again = everest("rerun", "SO-1", "--reason", "hitung ulang")

    assert "(job #1) runs again. Follow it:" in again.stdout
    assert walker.post(1) == "COMPLETED"
    assert [row["action"] for row in rows(connection, "SELECT action FROM audit_log ORDER BY id")] == [
        "submit",
        "replace",
        "replace",
        "rerun",
    ]


def test_replace_of_what_did_not_fail_and_rerun_of_what_runs_are_not_possible(
    everest: Everest, write: WriteFile
) -> None:
    everest("submit", write(), *HEADER)

    replaced = everest("submit", write(BAD), "--nota", "SO-1", "--replace")
    again = everest("rerun", "SO-1", "--json")

    assert (replaced.exit_code, again.exit_code) == (3, 3)
    assert "nota SO-1 is running, not failed" in replaced.stderr
    assert answer(again)["status"] == "error"
