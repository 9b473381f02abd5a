"""`everest post`, `status`, `preview` and `attempts`: one document, found by what a person calls it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests import builders
from tests.builders import Line, rows
from tests.integration.cli.conftest import BAD, HEADER, TITLES, Everest, WriteFile, answer
from tests.integration.opname.walk import Walker


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
    builders.document(connection, [Line()], nomer_nota="SO-1")  # as the web application stores it: it does not ask

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
    for text in ("attempt 1: FAILED 422", "gone: baris 1, qty_fisik", "attempt 2: COMPLETED", "changes 0 rows"):
        assert text in people.stdout
    first, second = answer(programs)["attempts"]
    assert (first["outcome"], second["outcome"]) == ("FAILED", "COMPLETED")
    assert [(sorted(act), act["action"]) for act in second["asked_by"]] == [
        (["action", "actor", "reason"], "replace"),
        (["action", "actor", "reason"], "rerun"),
    ]


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
    assert "nothing was started" in edited.stderr
    assert builders.shadow(connection, 1) == before
