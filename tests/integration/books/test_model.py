"""Random stories: submit, movements, decisions, reversals, closings, reruns, replays; and the books come out equal."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from tests.conftest import empty_all_tables
from tests.integration.books.story import Story

CHOSEN = os.environ.get("EVEREST_STORY")
"""The number of a story to tell again, alone."""

FEW, MANY = range(1, 9), range(1_000, 1_200)
HAPPENINGS = 100

OUTCOMES = {"posted", "under an approval", "reversed", "WAITING", *(f"FAILED {code}" for code in (403, 409, 422, 423))}
"""What the stories must have led to, each somewhere; else they prove less than they say."""


def _tell(url: MysqlUrl, seed: int) -> Counter[str]:
    """Tells one story, compares, and says what documents came to."""
    with closing(store.connect(url)) as conn, store.transaction(conn):
        empty_all_tables(conn)
    story = Story(url, seed)
    try:
        story.tell(HAPPENINGS)
        expected, found = story.expected(), story.found()
        for what in expected:
            assert found[what] == expected[what], (
                f"{what} of story {seed} differ; EVEREST_STORY={seed} make test ARGS=tests/integration/books tells it"
                f" again: {', '.join(story.told)}"
            )
        return story.ledger.outcomes
    finally:
        story.close()


def test_the_books_end_as_a_plain_ledger_says(database: MysqlUrl) -> None:
    if CHOSEN:
        assert _tell(database, int(CHOSEN))
        return
    outcomes = sum((_tell(database, seed) for seed in FEW), Counter[str]())
    assert set(outcomes) >= OUTCOMES, outcomes


@pytest.mark.long
@pytest.mark.parametrize("seed", MANY)
def test_the_books_end_as_a_plain_ledger_says_in_many_stories(database: MysqlUrl, seed: int) -> None:
    assert _tell(database, seed)
