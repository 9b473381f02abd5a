"""What an operator types and what comes back: sentences, JSON and exit codes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line, rows
from tests.integration.cli.conftest import HEADER, TITLES, Everest, WriteFile, answer
from tests.integration.opname.walk import Walker

BAD = TITLES + "BRG-A,10,,1500.00\n"


# --------------------------------------------------------------------------------------------------------- submit


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
    assert "3 problem(s), nothing was stored" in people.stderr
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


def test_check_warns_of_a_nota_that_is_posted_already(everest: Everest, write: WriteFile) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")

    same = everest("submit", write(), *HEADER, "--check", "--json")
    other = everest("submit", write(TITLES + "BRG-A,1,2,3\n"), *HEADER, "--check", "--json")

    assert same.exit_code == 0
    assert [error["kolom"] for error in answer(other)["errors"]] == ["nomer_nota"]


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
    again = everest("rerun", "SO-1", "--reason", "hitung ulang")

    assert "runs again as opname_posting__1__1__2" in again.stdout
    assert walker.post(1) == "COMPLETED"
    assert [row["action"] for row in rows(connection, "SELECT action FROM audit_log ORDER BY id")] == [
        "submit",
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
    assert "nota SO-1 is running, not FAILED" in replaced.stderr
    assert answer(again)["status"] == "error"


# ----------------------------------------------------------------------------------------------------------- post


def test_post_posts_here_and_now_and_is_a_success_again(everest: Everest, write: WriteFile, connection: Any) -> None:
    everest("submit", write(), *HEADER)

    first, second = everest("post", "SO-1", "--json"), everest("post", "SO-1", "--json")

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert answer(first) == answer(second)
    assert (answer(first)["status"], answer(first)["code"]) == ("success", 200)
    assert (answer(first)["total_debet"], answer(first)["baris_selisih"]) == ("8001.00", 2)
    assert builders.books(connection).postings == 1
    assert "posting 1, debit Rp 8.001,00, credit Rp 8.001,00" in everest("post", "SO-1").stdout


def test_post_of_a_refused_document_says_every_reason(everest: Everest, write: WriteFile, connection: Any) -> None:
    everest("submit", write(TITLES + "BRG-A,10,,1\nBRG-B,10,1,\n"), *HEADER)

    programs, people = everest("post", "SO-1", "--json"), everest("post", "SO-1")

    assert (programs.exit_code, people.exit_code) == (1, 1)
    found = answer(programs)
    assert (found["status"], found["code"]) == ("error", 422)
    assert [(error["baris"], error["kolom"]) for error in found["errors"]] == [(1, "qty_fisik"), (2, "harga_pokok")]
    assert "baris 2, harga_pokok" in people.stderr
    assert builders.shadow(connection, 1)["worker_status"] == "FAILED"


def test_post_takes_a_document_of_the_web_application(everest: Everest, connection: Any) -> None:
    document = builders.document(connection, nomer_nota="SO-7")

    result = everest("post", "SO-7")

    assert result.exit_code == 0, result.output
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "COMPLETED"
    assert builders.books(connection).debet == Decimal("8001.00")


def test_post_leaves_a_document_at_work_alone_unless_told_to_take_it_over(
    everest: Everest, write: WriteFile, walker: Walker, connection: Any
) -> None:
    everest("submit", write(), *HEADER)
    walker.claim(1)

    asked, told = everest("post", "SO-1"), everest("post", "SO-1", "--take-over")

    assert (asked.exit_code, told.exit_code) == (3, 0)
    assert "at work" in asked.stderr
    assert "--take-over" in asked.stderr
    (audit,) = rows(connection, "SELECT * FROM audit_log WHERE action = 'post'")
    assert audit["shadow_id"] == 1


# --------------------------------------------------------------------------------------------- finding a document


def test_a_number_is_a_nota_first_and_a_job_second(everest: Everest, connection: Any) -> None:
    first = builders.document(connection, nomer_nota="2")
    second = builders.document(connection, nomer_nota="SO-2")
    assert (first.shadow_id, second.shadow_id) == (1, 2)

    assert answer(everest("status", "2", "--json"))["shadow_id"] == 1
    assert answer(everest("status", "#2", "--json"))["shadow_id"] == 2
    assert answer(everest("status", "1", "--json"))["nomer_nota"] == "2"


def test_a_nota_of_two_documents_shows_both_and_asks_which_one_to_post(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")
    everest("submit", write(TITLES + "BRG-A,1,2,3\n"), *HEADER)

    shown, unclear, clear = (
        everest("status", "SO-1", "--json"),
        everest("post", "SO-1"),
        everest("post", "#2", "--json"),
    )

    assert (answer(shown)["shadow_id"], answer(shown)["other_documents"][0]["shadow_id"]) == (2, 1)
    assert unclear.exit_code == 3
    assert "#1 (COMPLETED), #2 (PENDING)" in unclear.stderr
    assert (clear.exit_code, answer(clear)["code"]) == (1, 409)
    assert builders.books(connection).postings == 1


def test_rows_of_two_senders_of_one_document_are_one_document(everest: Everest, connection: Any) -> None:
    document = builders.document(connection, [Line()], nomer_nota="SO-5")
    second = builders.shadow_row(connection, document.transaksi_id, "SO-5")
    everest("post", f"#{document.shadow_id}")

    assert answer(everest("status", "SO-5", "--json"))["shadow_id"] in (document.shadow_id, second)
    assert answer(everest("status", "SO-5", "--json"))["other_documents"] == []


def test_status_watches_until_the_end(everest: Everest, write: WriteFile) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")
    everest("submit", write(BAD), *HEADER[:1], "SO-2", *HEADER[2:])
    everest("post", "SO-2")

    assert everest("status", "SO-1", "--watch").exit_code == 0
    assert everest("status", "SO-2", "--watch", "--json").exit_code == 1


def test_who_watches_sees_every_change_and_is_not_told_to_watch(
    everest: Everest, write: WriteFile, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    everest("submit", write(), *HEADER)
    assert "--watch" in everest("status", "SO-1").stdout

    def end(seconds: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED'")
        connection.commit()

    monkeypatch.setattr("everest.cli.status.time.sleep", end)
    watched = everest("status", "SO-1", "--watch")

    assert watched.exit_code == 0
    assert watched.stdout.index("PENDING") < watched.stdout.index("COMPLETED")
    assert "--watch" not in watched.stdout


@pytest.mark.parametrize("command", ["status", "rerun", "post"])
def test_an_unknown_document_is_named(everest: Everest, command: str) -> None:
    result = everest(command, "99")

    assert result.exit_code == 4
    assert result.stderr == "Error: there is no nota 99 and no job #99\n"


def test_a_row_of_another_program_cannot_speak_to_the_terminal(everest: Everest, connection: Any) -> None:
    nota = "SO\x1b[2J[red]"
    document = builders.document(connection, nomer_nota=nota)

    shown = everest("status", f"#{document.shadow_id}").stdout

    assert "\x1b" not in shown
    assert "SO\\x1b[2J[red]" in shown


# ---------------------------------------------------------------------------------------------------- environment


def test_a_missing_setting_and_an_absent_server_are_one_sentence_each(
    everest: Everest, write: WriteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVEREST_MYSQL_URL", "mysql://x:secret@127.0.0.1:1/books")
    absent = everest("status", "SO-1")
    monkeypatch.delenv("EVEREST_MYSQL_URL")
    unset = everest("submit", write(), *HEADER)

    assert (absent.exit_code, unset.exit_code) == (5, 5)
    assert "try the same command again" in absent.stderr
    assert "secret" not in absent.output
    assert "EVEREST_MYSQL_URL is not set" in unset.stderr


def test_migrate_of_a_migrated_database_changes_nothing(everest: Everest, database: MysqlUrl) -> None:
    result = everest("migrate")

    assert result.exit_code == 0
    assert f"{database.schema}: up to date" in result.stdout


def test_the_help_names_every_command_and_exit_code(everest: Everest) -> None:
    shown = everest("--help").stdout

    assert all(word in shown for word in ("submit", "status", "rerun", "post", "migrate", "Exit codes"))
    assert all(column in everest("submit", "--help").stdout for column in TITLES.strip().split(","))


# ------------------------------------------------------------------------------------------- preview and attempts


def test_a_preview_shows_the_journal_for_people_and_programs_and_refuses_with_1(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    everest("submit", write(), *HEADER)

    people, programs = everest("preview", "SO-1"), everest("preview", "SO-1", "--json")

    assert (people.exit_code, programs.exit_code) == (0, 0), people.output
    for text in ("would be posted", "1010030030", "Rp 8.001,00", "BRG-B"):
        assert text in people.stdout
    found = answer(programs)
    assert (found["status"], found["outcome"], found["total_debet"]) == ("success", "posts", "8001.00")
    assert [row["kode_barang"] for row in found["stock_card"]] == ["BRG-A", "BRG-B"]
    assert builders.books(connection).postings == 0

    everest("submit", write(BAD), "--nota", "SO-2", *HEADER[2:])
    refused = everest("preview", "SO-2", "--json")
    assert (refused.exit_code, answer(refused)["status"], answer(refused)["code"]) == (1, "error", 422)
    assert "qty_fisik" in everest("preview", "SO-2").stderr


def test_attempts_tell_what_a_correction_changed(
    everest: Everest, write: WriteFile, walker: Walker, connection: Any
) -> None:
    everest("submit", write(BAD), *HEADER)
    walker.post(1)
    everest("submit", write(), "--nota", "SO-1", "--replace", "--rerun")
    walker.post(1)

    people, programs = everest("attempts", "SO-1"), everest("attempts", "SO-1", "--json")

    assert (people.exit_code, programs.exit_code) == (0, 0), people.output
    for text in ("attempt 1: FAILED 422", "gone: baris 1, qty_fisik", "attempt 2: COMPLETED", "0 baris akan berubah"):
        assert text in people.stdout
    assert [attempt["outcome"] for attempt in answer(programs)["attempts"]] == ["FAILED", "COMPLETED"]


def test_h21_a_rerun_of_a_completed_document_says_that_0_rows_would_change(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")
    before = builders.shadow(connection, 1)

    programs, people = everest("rerun", "SO-1", "--json"), everest("rerun", "SO-1")

    assert (programs.exit_code, people.exit_code) == (0, 0)
    assert (answer(programs)["status"], answer(programs)["rows_changed"]) == ("success", 0)
    assert "0 rows would change" in people.stdout
    assert builders.shadow(connection, 1) == before
    with connection.cursor() as cursor:
        cursor.execute("UPDATE so_details_staging SET harga_pokok = 9999 WHERE baris = 1")
    connection.commit()

    edited = everest("rerun", "SO-1")

    assert edited.exit_code == 3
    assert "0 rows would change" in edited.stderr
    assert builders.shadow(connection, 1) == before


# ---------------------------------------------------------------------------------------------------------- audit


@pytest.fixture
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVEREST_AIRFLOW_URL", "EVEREST_RABBIT_MANAGEMENT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_servers")
def test_an_audit_of_good_books_ends_with_0_and_one_that_could_not_look_everywhere_with_5(
    everest: Everest, write: WriteFile
) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")

    clean = everest("audit", "--only", "posting_is_balanced", "--only", "inventory_equals_stock_card", "--json")
    unsure = everest("audit", "--json")

    assert (clean.exit_code, answer(clean)["status"], answer(clean)["found"]) == (0, "clean", 0)
    assert (unsure.exit_code, answer(unsure)["status"]) == (5, "not_checked")
    unchecked = [one["key"] for one in answer(unsure)["invariants"] if one["outcome"] == "NOT_CHECKED"]
    assert unchecked == ["processing_has_live_run"]
    assert "EVEREST_AIRFLOW_URL" in everest("audit").stderr


@pytest.mark.usefixtures("no_servers")
def test_an_audit_names_the_rows_and_what_to_do_and_ends_with_1(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jurnal SET kredit = kredit - 1 WHERE urutan = 2")
    connection.commit()

    people, programs = everest("audit"), everest("audit", "--only", "posting_is_balanced", "--json")

    assert (people.exit_code, programs.exit_code) == (1, 1)
    assert "posting_is_balanced: broken" in people.stdout
    assert "posting 1 nota SO-1: total 8001.00" in people.stdout
    assert "What to do:" in people.stdout
    (invariant,) = answer(programs)["invariants"]
    assert (invariant["found"], invariant["new"]) == (1, 0), "the run before found it first"
    assert invariant["findings"][0]["detail"]["posting_id"] == "1"


@pytest.mark.usefixtures("no_servers")
def test_a_finding_that_somebody_acknowledged_is_shown_with_name_and_reason_and_ends_with_0(
    everest: Everest, write: WriteFile, connection: Any
) -> None:
    everest("submit", write(), *HEADER)
    everest("post", "SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jurnal SET kredit = kredit - 1 WHERE urutan = 2")
    connection.commit()
    only = ("audit", "--only", "posting_is_balanced")
    (invariant,) = answer(everest(*only, "--json"))["invariants"]
    number = str(invariant["findings"][0]["number"])

    assert everest("audit", "acknowledge", number).exit_code == 2, "a reason is needed"
    said = everest("audit", "acknowledge", number, "--reason", "backup dipulihkan besok")
    assert (said.exit_code, f"#{number} acknowledged: posting 1 nota SO-1" in said.stdout) == (0, True)

    people, programs = everest(*only), answer(everest(*only, "--json"))
    assert people.exit_code == 0
    assert "posting_is_balanced: broken" in people.stdout
    assert f"[#{number}; diakui oleh" in people.stdout
    assert "backup dipulihkan besok" in people.stdout
    assert (programs["status"], programs["found"], programs["invariants"][0]["acknowledged"]) == ("findings", 1, 1)
    assert everest("audit", "acknowledge", number, "--reason", "x").exit_code == 3
    assert everest("audit", "acknowledge", number, "--withdraw", "--reason", "ternyata salah").exit_code == 0
    assert everest(*only).exit_code == 1
    assert "acknowledge" in everest("audit-log").stdout


def test_an_audit_says_what_it_looks_at(everest: Everest) -> None:
    listed = everest("audit", "--list", "--json")

    assert "posting_is_balanced" in [one["key"] for one in answer(listed)["invariants"]]
    assert all(one["remedy"] for one in answer(listed)["invariants"])
