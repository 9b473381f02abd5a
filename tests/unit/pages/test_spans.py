"""Which days of those that were asked for a page looks at."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from everest.pages.spans import Part, part_of
from everest.reports import REPORTS, Filters

TODAY = date(2026, 3, 31)
FIRST = date(2025, 3, 31)
"""A leap day or not: 366 days with today."""
BEGIN = date(2023, 1, 1)
BOUNDED = {"item", "group", "reason", "late-movements"}


def part(asked: Filters, key: str = "item", begin: date | None = BEGIN, today: date = TODAY) -> Part | None:
    return part_of(REPORTS[key], asked, today, lambda: begin)


def test_four_reports_are_shown_a_year_at_a_time() -> None:
    assert {key for key in REPORTS if part(Filters(), key)} == BOUNDED
    assert all(part(Filters(), key) == Part(FIRST, TODAY) for key in BOUNDED)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Filters(), (FIRST, TODAY)),
        (Filters(gudang_kode="GD-A"), (FIRST, TODAY)),
        (Filters(since=FIRST), None),
        (Filters(since=FIRST - timedelta(days=1)), (FIRST, TODAY)),
        (Filters(since=FIRST, until=TODAY), None),
        (Filters(since=date(2025, 2, 1), until=date(2025, 3, 1)), None),
        (Filters(until=date(2025, 1, 31)), (date(2024, 2, 1), date(2025, 1, 31))),
        (Filters(since=date(2024, 1, 31), until=date(2025, 1, 31)), (date(2024, 2, 1), date(2025, 1, 31))),
        (Filters(since=date(2024, 2, 1), until=date(2025, 1, 31)), None),
        (Filters(until=date(2024, 1, 1)), None),
        (Filters(until=date(1970, 1, 1)), None),
        (Filters(until=date(1, 1, 5)), None),
        (Filters(until=date.max), (FIRST, TODAY)),
        (Filters(since=FIRST, until=date.max), None),
        (Filters(since=date(2099, 1, 1)), None),
        (Filters(since=date(2026, 3, 2), until=date(2026, 3, 1)), None),
        (Filters(since=date(2026, 3, 2), until=date(2020, 3, 1)), None),
        (Filters(nomer_nota="SO-1"), None),
        (Filters(since=BEGIN, nomer_nota="SO-1"), None),
    ],
)
def test_a_long_period_is_shown_by_its_last_year(asked: Filters, expected: tuple[date, date] | None) -> None:
    """Little is dated after today, and nothing before the books begin: both are no part of a period."""
    found = part(asked)
    assert (found and (found.first, found.last)) == expected
    if found is not None:
        assert found.days == 366
        assert found.of(asked) == replace(asked, since=found.first)
        assert found.of(asked).gudang_kode == asked.gudang_kode


@pytest.mark.parametrize("begin", [None, TODAY, FIRST, FIRST + timedelta(days=1)])
def test_books_of_a_year_are_shown_whole(begin: date | None) -> None:
    assert part(Filters(), begin=begin) is None
    assert part(Filters(since=date(2000, 1, 1)), begin=begin) is None


def test_a_period_that_is_short_asks_the_books_nothing() -> None:
    def begin() -> date:
        raise AssertionError

    for asked in (Filters(since=FIRST), Filters(nomer_nota="SO-1")):
        assert part_of(REPORTS["item"], asked, TODAY, begin) is None
    assert part_of(REPORTS["month"], Filters(), TODAY, begin) is None


def test_going_back_year_by_year_shows_each_day_once_and_ends_with_the_first() -> None:
    asked, shown = Filters(since=date(2022, 6, 1)), []
    while (found := part(asked)) is not None:
        shown.append((found.first, found.last))
        asked = Filters(since=asked.since, until=found.before)
    assert [last for _, last in shown[1:]] == [first - timedelta(days=1) for first, _ in shown[:-1]]
    assert len(shown) == 3 and asked.until is not None and BEGIN <= asked.until < BEGIN + timedelta(days=366)
