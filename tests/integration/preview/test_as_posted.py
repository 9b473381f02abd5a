"""Whatever happened to a document before: right before the step that posts it, its preview shows the rows of that step.

Random stories of a warehouse (`integration/books`): approvals, late movements, closed months, corrections, leftovers of
a count that came before, reversals. The scenarios of `integration/opname` are previewed as well, each document whole.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest

from everest.preview import Outcome, Preview, preview
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.workflow.ticket import Ticket
from tests import builders
from tests.conftest import empty_all_tables
from tests.integration.books.story import Story
from tests.integration.opname.foreseen import compare, foreseen, stored

SEEDS = range(9, 12)
HAPPENINGS = 100
FIRST, POSTING = ("compute_variance",), ("post_jurnal", "reverse_posting")


class Foretold(Story):
    """Its own tasks are previewed."""

    outcomes: Counter[str]

    def _task(self, ticket: Ticket, step: str) -> bool:
        if step not in (*FIRST, *POSTING):
            return super()._task(ticket, step)
        told = self._told(ticket)
        goes_on = super()._task(ticket, step)
        with self.world.database.transaction() as tx:
            row = builders.shadow(tx.conn, ticket.shadow_id)
            is_posted = stored(tx.conn, told.transaksi_id) != ([], [], set())
            if step in POSTING and is_posted:
                assert stored(tx.conn, told.transaksi_id) == foreseen(told), f"{told.nomer_nota}: {self.told}"
            if row["worker_status"] in ("FAILED", "WAITING"):
                compare(told, tx.conn, ticket.shadow_id)
        self.outcomes[f"{step} {told.outcome}"] += 1
        return goes_on

    def _told(self, ticket: Ticket) -> Preview:
        with self.world.database.transaction() as tx:  # the clock of a story is that of its transactions
            return preview(tx, f"#{ticket.shadow_id}")


@pytest.mark.long
def test_a_preview_right_before_the_posting_shows_the_rows_of_the_posting(database: MysqlUrl) -> None:
    outcomes: Counter[str] = Counter()
    for seed in SEEDS:
        with closing(store.connect(database)) as conn, store.transaction(conn):
            empty_all_tables(conn)
        story = Foretold(database, seed)
        story.outcomes = outcomes
        try:
            story.tell(HAPPENINGS)
        finally:
            story.close()

    assert {f"post_jurnal {Outcome.POSTS}", f"reverse_posting {Outcome.POSTS}"} <= set(outcomes), outcomes
    assert {f"compute_variance {one}" for one in (Outcome.NEEDS_DECISION, Outcome.REFUSED)} <= set(outcomes), outcomes
