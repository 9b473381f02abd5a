"""`everest period`: months closed, opened and listed from the keyboard."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests import builders
from tests.integration.cli.conftest import Everest, answer

IN_MARCH = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)


def test_h22_closing_names_what_is_on_its_way_and_wants_to_be_forced(everest: Everest, connection: Any) -> None:
    builders.document(connection, diotorisasi_at=IN_MARCH, nomer_nota="SO-7")

    refused = everest("period", "close", "2026-03", "--reason", "tutup buku")
    in_json = everest("period", "close", "2026-03", "--reason", "tutup buku", "--json")
    forced = everest("period", "close", "2026-03", "--reason", "tutup buku", "--force")
    again = answer(everest("period", "close", "2026-03", "--reason", "tutup buku", "--json"))

    assert refused.exit_code == in_json.exit_code == 3
    assert refused.stderr.startswith(
        "Error: month 2026-03 is not closed, documents still on their way: 1: SO-7 (PENDING); wait"
    )
    assert (
        "by force is --force\n  nomer_nota: document SO-7: PENDING, posting 2026-03-10 12:00:00 WIB" in refused.stderr
    )
    assert (answer(in_json)["code"], len(answer(in_json)["errors"])) == (409, 1)
    assert (forced.exit_code, "2026-03 is CLOSED" in forced.stdout, "SO-7" in forced.stderr) == (0, True, True)
    assert (again["is_changed"], again["period_status"]) == (False, "CLOSED")


def test_a_closed_month_refuses_documents_until_it_is_opened(everest: Everest, connection: Any) -> None:
    builders.document(connection, diotorisasi_at=IN_MARCH, nomer_nota="SO-7")
    everest("period", "close", "2026-03", "--reason", "tutup buku", "--force")

    failed = everest("post", "SO-7", "--json")
    opened = everest("period", "open", "2026-03", "--reason", "koreksi")
    posted = everest("post", "SO-7", "--json")
    listed = answer(everest("period", "list", "--json"))
    table = everest("period", "list").stdout

    assert (failed.exit_code, answer(failed)["code"]) == (1, 423)
    assert (opened.exit_code, "2026-03 is OPEN" in opened.stdout, "SO-7" in opened.stderr) == (0, True, True)
    assert (posted.exit_code, answer(posted)["code"]) == (0, 200)
    (month,) = [one for one in listed["periods"] if one["periode"] == "2026-03"]
    assert month == {
        "periode": "2026-03", "status": "OPEN", "postings": 1, "open_documents": 0, "failed_documents": 0
    }  # fmt: skip
    assert "2026-03" in table


def test_a_row_that_is_no_month_is_told_as_one_that_closes_nothing(everest: Everest, connection: Any) -> None:
    builders.period(connection, "2026-8")

    listed = everest("period", "list")

    assert (listed.exit_code, listed.stderr) == (0, "'2026-8' is no month and closes nothing; write it like 2026-08\n")


def test_what_is_no_month_and_a_missing_reason_are_told(everest: Everest) -> None:
    wrong = everest("period", "close", "2026-3", "--reason", "x")
    without = everest("period", "open", "2026-03")

    assert (wrong.exit_code, "'2026-3' is no month" in wrong.stderr) == (1, True)
    assert without.exit_code == 2
