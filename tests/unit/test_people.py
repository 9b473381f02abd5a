"""Two spellings of one name are one person, for every rule of four eyes."""

from __future__ import annotations

import pytest

from everest import people


@pytest.mark.parametrize("spelling", ["rina", "Rina", " RINA", "rina "])
def test_case_and_spaces_around_a_name_make_nobody_another(spelling: str) -> None:
    assert people.is_same(spelling, "rina")
    assert people.is_among(spelling, ["budi", "Rina"])


@pytest.mark.parametrize("other", ["rinaa", "ri na", "riná", "", None])
def test_anything_else_is_another_person(other: str | None) -> None:
    assert not people.is_same("rina", other)
    assert not people.is_among("rina", [other or "", "budi"])


def test_a_name_that_its_column_has_cut_short_is_still_the_same_person() -> None:
    whole = "Rina " + "x" * 120
    assert people.is_same(whole, whole[: people.LONGEST])
    assert people.is_among(whole, [whole[: people.LONGEST].lower()])
    assert not people.is_same(whole, whole[: people.LONGEST - 1])
