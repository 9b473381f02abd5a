"""The schedule of a chaos run: from its seed alone, with everything in it sooner or later, nothing twice at once."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from tests.chaos import documents, schedule
from tests.chaos.deeds import DEEDS
from tests.chaos.errands import ERRANDS
from tests.chaos.faults import FAULTS
from tests.chaos.rig import CLOCKED, LINK_NAMES, LINKS, OURS

SEEDS = range(20)
SECONDS = 120.0


@cache
def plans() -> list[schedule.Schedule]:
    return [schedule.draw(seed, 2 * SECONDS) for seed in SEEDS]


def test_the_same_seed_is_the_same_schedule_and_another_is_another() -> None:
    assert schedule.draw(7, SECONDS) == schedule.draw(7, SECONDS)
    assert schedule.draw(7, SECONDS) != schedule.draw(8, SECONDS)


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    long, short = schedule.draw(7, SECONDS), schedule.draw(7, 30.0)
    assert short.entries == tuple(entry for entry in long.entries if entry.at < 30.0)


def test_every_fault_deed_link_clock_and_kind_of_document_comes_up() -> None:
    entries = [entry for plan in plans() for entry in plan.entries]
    assert {entry.happening.name for entry in entries} == {one.name for one in (*FAULTS, *DEEDS, *ERRANDS)}
    assert {need for entry in entries for need in entry.happening.needs} == {
        *LINK_NAMES,
        *(f"clock of {program}" for program in CLOCKED),
    }
    drafts = [entry.happening.draft for entry in entries if hasattr(entry.happening, "draft")]
    assert {draft.kind for draft in drafts} == set(documents.KINDS)
    assert {len(draft.lines) for draft in drafts} >= {1, 2}
    assert max(len(draft.lines) for draft in drafts) <= documents.MOST_LINES
    assert any(len(draft.lines) > 200 for draft in drafts)


def test_documents_have_numbers_and_items_of_their_own_but_for_rivals() -> None:
    for plan in plans():
        drafts = [one.happening.draft for one in plan.entries if hasattr(one.happening, "draft")]
        assert len({draft.number for draft in drafts}) == len(drafts)
        items = Counter(line.kode_barang for draft in drafts for line in draft.lines)
        assert all(re.fullmatch(r"R\d", item) for item, times in items.items() if times > 1)


def test_what_lasts_does_not_begin_again_before_it_is_over() -> None:
    for plan in plans():
        over: dict[str, float] = {}
        for entry in plan.entries:
            if entry.happening.seconds:
                assert over.get(entry.happening.target, 0.0) <= entry.at
                over[entry.happening.target] = entry.over_at


def test_a_choice_of_faults_leaves_the_documents_as_they_are() -> None:
    every, only = schedule.draw(7, SECONDS), schedule.draw(7, SECONDS, ["kill"])
    deeds = {one.name for one in (*DEEDS, *ERRANDS)}
    assert {entry.happening.name for entry in only.entries} - deeds == {"kill"}
    assert [entry for entry in only.entries if entry.happening.name in deeds] == [
        entry for entry in every.entries if entry.happening.name in deeds
    ]
    with pytest.raises(ValueError, match="no fault is called kil"):
        schedule.draw(7, SECONDS, ["kil"])


def test_what_the_rig_does_not_have_is_left_out() -> None:
    missing = {link.name for link in LINKS} - set(OURS)
    plan = schedule.draw(7, 10 * SECONDS)
    left = plan.without(sorted(missing))
    assert not any(set(entry.happening.needs) & missing for entry in left.entries)
    assert len(left.entries) < len(plan.entries)
