"""Who did what: every human action leaves its entry, and the entries of a document can be told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests import builders
from tests.integration.cli.conftest import HEADER, TITLES, Everest, WriteFile, answer
from tests.integration.opname.walk import Walker


@pytest.fixture
def told(everest: Everest, write: WriteFile, walker: Walker) -> Everest:
    """SO-1: submitted, corrected and rerun; SO-2: submitted and posted by hand."""
    everest("submit", write(TITLES + "BRG-A,10,,1500.00\n"), *HEADER)
    walker.post(1)
    everest("submit", write(), "--nota", "SO-1", "--replace", "--reason", "hitung ulang")
    everest("rerun", "SO-1", "--reason", "sudah benar")
    everest("submit", write(TITLES + "BRG-Z,1,2,3\n"), "--nota", "SO-2", *HEADER[2:])
    everest("post", "SO-2", "--reason", "Airflow mati")
    return everest


def actions(told: Everest, *arguments: str) -> list[tuple[str, str | None]]:
    result = told("audit-log", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [(entry["action"], entry["nomer_nota"]) for entry in answer(result)["entries"]]


def test_the_log_tells_every_action_of_a_document_oldest_first(told: Everest) -> None:
    assert actions(told, "SO-1") == [("submit", "SO-1"), ("replace", "SO-1"), ("rerun", "SO-1")]
    assert actions(told, "#1") == actions(told, "SO-1")
    assert actions(told) == [*actions(told, "SO-1"), ("submit", "SO-2"), ("post", "SO-2")]

    people = told("audit-log", "SO-1").stdout
    for text in ("WIB", "replace", "hitung ulang", "rerun", "sudah benar", "status FAILED → PENDING"):
        assert text in people


def test_a_month_that_was_closed_is_named(told: Everest) -> None:
    told("period", "close", "2026-08", "--reason", "tutup buku")

    assert "period_close  2026-08: tutup buku\n      status OPEN → CLOSED" in told("audit-log").stdout


def test_it_can_be_narrowed_by_person_action_and_day_and_paged(told: Everest) -> None:
    me = answer(told("audit-log", "--json"))["entries"][0]["actor"]
    today = datetime.now(builders.WIB)
    yesterday, tomorrow = (f"{today + timedelta(days=days):%Y-%m-%d}" for days in (-1, 1))

    assert len(actions(told, "--actor", me)) == 5
    assert actions(told, "--actor", "orang-lain") == []
    assert actions(told, "--action", "post") == [("post", "SO-2")]
    assert len(actions(told, "--from", yesterday, "--to", tomorrow)) == 5
    assert actions(told, "--to", yesterday) == [] == actions(told, "--from", tomorrow)
    page = answer(told("audit-log", "--size", "2", "--json"))
    assert [entry["action"] for entry in page["entries"]] == ["submit", "post"]
    assert actions(told, "--size", "2", "--before", str(page["before"])) == [("replace", "SO-1"), ("rerun", "SO-1")]


def test_nobody_can_change_what_was_told(told: Everest, connection: Any) -> None:
    before = builders.rows(connection, "SELECT * FROM audit_log ORDER BY id")

    for statement in ("UPDATE audit_log SET actor = 'orang-lain'", "DELETE FROM audit_log"):
        with pytest.raises(Exception, match="append-only"), connection.cursor() as cursor:
            cursor.execute(statement)

    assert builders.rows(connection, "SELECT * FROM audit_log ORDER BY id") == before


def test_a_day_is_a_day_in_wib(told: Everest, connection: Any) -> None:
    """17:30 UTC on 31 January is 1 February here."""
    late = builders.utc(datetime(2026, 1, 31, 17, 30, tzinfo=UTC))
    builders.insert(connection, "audit_log", actor="ani", action="tes", created_at=late)

    assert actions(told, "--from", "2026-02-01", "--to", "2026-02-01") == [("tes", None)]
    assert actions(told, "--from", "2026-01-31", "--to", "2026-01-31") == []
