"""How an errand may have ended, by the word that it heard: with nothing done twice, left out or not undone."""

from __future__ import annotations

import itertools

import pytest

from tests.chaos.errand_workflow import BEGUN, FINISHED, NO, NO_NEWS, TAKEN_BACK, TOLD_OFF, TURNED_BACK, YES, went_on
from tests.chaos.errands import End, ends

DID = (BEGUN, went_on(YES), FINISHED)


@pytest.mark.parametrize("word", [YES, NO_NEWS])
def test_an_errand_that_is_not_refused_completes(word: str) -> None:
    assert End("completed", None, (BEGUN, went_on(word), FINISHED)) in set(ends(word, is_called_off=False))


def test_a_refused_one_fails_and_is_undone() -> None:
    possible = set(ends(NO, is_called_off=False))
    assert {one for one in possible if one.code == 422} == {End("failed", 422, (BEGUN, TAKEN_BACK))}
    assert not [one for one in possible if one.status == "completed"]


def test_one_that_was_called_off_is_undone_newest_first_wherever_it_was() -> None:
    found = {one.did for one in ends(YES, is_called_off=True) if one.status == "cancelled"}
    assert found == {
        (TOLD_OFF,),
        (BEGUN, TAKEN_BACK, TOLD_OFF),
        (BEGUN, went_on(YES), TURNED_BACK, TAKEN_BACK, TOLD_OFF),
    }
    assert not [one for one in ends(YES, is_called_off=False) if one.status == "cancelled"]


def test_nothing_done_twice_left_out_or_out_of_order_is_an_end() -> None:
    possible = {one.did for one in ends(YES, is_called_off=False) if one.status == "completed"}
    others = {did for length in range(5) for did in itertools.product(DID, repeat=length)} - {DID}
    assert not possible & others
    assert End("completed", None, DID, is_undone=False) not in set(ends(YES, is_called_off=False))


def test_what_the_chaos_failed_is_undone_as_well() -> None:
    for code in (503, 504):
        assert End("failed", code, (BEGUN, TAKEN_BACK)) in set(ends(YES, is_called_off=False))
        assert End("failed", code, (BEGUN,)) not in set(ends(YES, is_called_off=False))
