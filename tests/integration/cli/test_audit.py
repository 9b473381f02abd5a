"""`everest audit`: good books, rows that are named, what somebody acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.cli.conftest import HEADER, Everest, WriteFile, answer


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
