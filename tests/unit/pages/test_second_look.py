"""What about a count as a whole deserves a second look, on both sides of each border."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from everest.pages.second_look import smells

SENT = datetime(2026, 3, 31, 10, 0)


def found(lines: int = 20, differ: int = 1, **doc: Any) -> list[str]:
    asked: dict[str, Any] = {"snapshot_at": SENT, "created_at": SENT, "tanggal_posting": None}
    asked |= {"dibuat_oleh": "sari", "diotorisasi_oleh": "tono", **doc}
    return smells(asked, {"baris": lines, "baris_selisih": differ})


def test_an_ordinary_count_needs_none() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("lines", "differ", "expected"),
    [
        (10, 6, ["most_lines_differ"]),
        (10, 5, []),
        (9, 9, []),
        (50, 0, ["nothing_differs"]),
        (49, 0, []),
        (50, 1, []),
        (0, 0, []),
    ],
)
def test_how_many_lines_differ(lines: int, differ: int, expected: list[str]) -> None:
    assert found(lines, differ) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [(timedelta(days=3), []), (timedelta(days=3, microseconds=1), ["old_snapshot"]), (timedelta(hours=-1), [])],
)
def test_books_that_were_frozen_long_before_the_count_was_sent(age: timedelta, expected: list[str]) -> None:
    assert found(snapshot_at=SENT - age) == expected


@pytest.mark.parametrize(("ahead", "expected"), [(31, []), (32, ["far_ahead"]), (13_149, ["far_ahead"]), (-400, [])])
def test_a_posting_date_that_is_more_likely_a_slip(ahead: int, expected: list[str]) -> None:
    assert found(tanggal_posting=SENT.date() + timedelta(days=ahead)) == expected


def test_the_day_on_which_it_came_is_that_of_jakarta() -> None:
    """As `submit` reckons it: an hour after midnight it is still the day before in UTC."""
    assert found(created_at=datetime(2026, 3, 31, 18, 0), tanggal_posting=date(2026, 5, 2)) == []
    assert found(created_at=datetime(2026, 3, 31, 18, 0), tanggal_posting=date(2026, 5, 3)) == ["far_ahead"]


@pytest.mark.parametrize("unknown", [{"snapshot_at": None}, {"created_at": None}])
def test_an_instant_that_is_not_known_says_nothing(unknown: dict[str, Any]) -> None:
    assert found(**unknown) == []


@pytest.mark.parametrize(
    ("made_by", "authorised_by", "expected"),
    [
        ("sari", "sari", ["same_person"]),
        ("sari", "SARI", ["same_person"]),
        ("sari", "sari ", ["same_person"]),
        ("sari", "sara", []),
        ("", "", []),
        (None, "sari", []),
        ("sari", None, []),
    ],
)
def test_one_person_who_made_and_authorised_it(
    made_by: str | None, authorised_by: str | None, expected: list[str]
) -> None:
    assert found(dibuat_oleh=made_by, diotorisasi_oleh=authorised_by) == expected


def test_all_of_them_at_once_in_their_order() -> None:
    old = SENT - timedelta(days=9)
    assert found(60, 0, snapshot_at=old, diotorisasi_oleh="sari") == ["nothing_differs", "old_snapshot", "same_person"]
