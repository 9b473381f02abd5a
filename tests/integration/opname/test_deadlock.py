"""Two real sessions that take two things in opposite order: the posting is the victim, is tried again, and posts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from everest.errors import TransientDatabaseError
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.unit_of_work import UnitOfWork
from tests import builders
from tests.builders import Line
from tests.integration.opname.holding import hold_in, is_waiting
from tests.integration.opname.walk import Walker

HEAVY = 500
"""Rows that the other session has written: the server gives up whoever has done less."""


def test_a_posting_that_is_the_victim_of_a_real_deadlock_is_tried_again_and_posts(
    walker: Walker,
    pool: ThreadPoolExecutor,
    connection: Any,
    database: MysqlUrl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The posting takes the warehouse, then the nota; the other one the nota, then the warehouse."""
    document = builders.document(connection, [Line("A")])
    ticket = walker.claim(document.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(ticket, name)
    seen = _seen(walker, monkeypatch)
    gate = hold_in(walker, monkeypatch, "lock_warehouses")
    with closing(store.connect(database)) as other, other.cursor() as cursor:
        cursor.execute(
            "INSERT INTO posting_sets (transaksi_id, nomer_nota, input_hash, total_debet, total_kredit, baris_selisih)"
            " VALUES (1, %s, REPEAT('0', 64), 0, 0, 0)",
            (document.nomer_nota,),
        )
        cursor.executemany("INSERT INTO audit_log (actor, action) VALUES ('other', %s)", [("x",)] * HEAVY)
        posting = pool.submit(walker.step, ticket, "post_jurnal")
        assert gate.reached.wait(30)
        rival = pool.submit(cursor.execute, "SELECT gudang_kode FROM gudang FOR UPDATE")
        assert is_waiting(rival), "the posting holds the warehouse"
        gate.open.set()
        rival.result(30)
        other.rollback()
    posting.result(30)

    assert [error.number for error in seen] == [1213], "the server's own, of the posting"
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "COMPLETED"
    books = builders.books(connection)
    assert (books.postings, books.journal_rows, books.card_rows, books.agree) == (1, 2, 1, True)
    told = "SELECT event FROM workflow_events WHERE step = 'post_jurnal' AND event IN ('failed', 'retried')"
    assert builders.rows(connection, told) == [], "it was the last try, and none was used up"


def _seen(walker: Walker, monkeypatch: pytest.MonkeyPatch) -> list[TransientDatabaseError]:
    """What the walker's transactions are refused by the server from now on."""
    seen: list[TransientDatabaseError] = []
    original: Callable[[], Any] = walker.database.transaction

    @contextmanager
    def looking() -> Iterator[UnitOfWork]:
        try:
            with original() as tx:
                yield tx
        except TransientDatabaseError as error:
            seen.append(error)
            raise

    monkeypatch.setattr(walker.database, "transaction", looking)
    return seen
