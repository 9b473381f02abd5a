"""Many postings side by side: nobody waits without need, nothing deadlocks, one order and one clock for all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest import bootstrap
from everest.errors import TransientDatabaseError
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.builders import Line
from tests.integration.opname.holding import BEFORE, hold_in
from tests.integration.opname.walk import Walker


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a step says when it met a deadlock or a lock that nobody let go of, and when another took it over."""
    said: list[str] = []
    for module in ("again", "runner"):
        monkeypatch.setattr(f"everest.workflow.{module}.log.warning", lambda text, *words: said.append(text % words))
    return said


def test_postings_of_one_month_do_not_wait_for_each_other(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builders.period(connection, "2026-03", "OPEN")
    one = builders.document(connection, [Line("A")], gudang_kode="GD-A", diotorisasi_at=BEFORE)
    two = builders.document(connection, [Line("A")], gudang_kode="GD-B", diotorisasi_at=BEFORE)
    gate = hold_in(walker, monkeypatch, "insert_journal")
    posting = pool.submit(walker.post, one.shadow_id)
    assert gate.reached.wait(30)

    assert others().post(two.shadow_id) == "COMPLETED"

    gate.open.set()
    assert posting.result() == "COMPLETED"
    assert builders.books(connection).postings == 2


def test_two_documents_over_the_same_warehouses_in_opposite_order_do_not_deadlock(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    seen: list[str],
) -> None:
    walkers = [walker, *(others() for _ in range(3))]
    codes = [f"GD-{letter}" for letter in "ABCDEF"]
    documents = []
    for number in range(24):
        order = codes if number % 2 else codes[::-1]
        lines = [Line(f"I{number}", gudang_kode=code) for code in order]
        documents.append(builders.document(connection, lines, gudang_kode=order[0]))

    def work(index: int) -> list[str]:
        return [walkers[index].post(document.shadow_id) for document in documents[index::4]]

    outcomes = [status for statuses in pool.map(work, range(4)) for status in statuses]

    assert outcomes == ["COMPLETED"] * 24
    assert seen == [], "one lock order for all: nobody had to try again"
    assert builders.books(connection).agree


def test_h24_many_notas_on_shared_accounts_all_complete(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    seen: list[str],
) -> None:
    """300 notas, four at a time, the same items in different warehouses, all on the same three accounts."""
    for number in range(100):
        builders.warehouse(connection, f"GD-{number}")
    documents = [
        builders.document(
            connection,
            [Line(f"ITM-{number // 100}-{item}", "10", str(8 + item), "1500") for item in range(5)],
            gudang_kode=f"GD-{number % 100}",
            with_warehouses=False,
        )
        for number in range(300)
    ]
    walkers = [walker, *(others() for _ in range(3))]

    def work(index: int) -> list[str]:
        return [walkers[index].post(document.shadow_id) for document in documents[index::4]]

    outcomes = [status for statuses in pool.map(work, range(4)) for status in statuses]

    assert outcomes == ["COMPLETED"] * 300
    assert seen == [], "no deadlock and no lock wait that gave up: each step posted at its first try"
    books = builders.books(connection)
    assert (books.postings, books.agree) == (300, True)


def test_a_lock_wait_that_gives_up_keeps_nothing_and_is_tried_again(
    walker: Walker, connection: Any, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 1205 only the statement is undone; the step must roll back all of it before it tries again."""
    document = builders.document(connection, [Line("A")])
    ticket = walker.claim(document.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(ticket, name)
    failures: list[int] = []
    from everest.store.books import MysqlBooks

    original = MysqlBooks.insert_stock_card

    def once(self: MysqlBooks, *arguments: Any) -> None:
        original(self, *arguments)
        if not failures:
            failures.append(1)
            raise TransientDatabaseError("Lock wait timeout exceeded", 1205)

    monkeypatch.setattr(MysqlBooks, "insert_stock_card", once)
    walker.step(ticket, "post_jurnal", is_last_try=False)

    assert failures and builders.books(connection).postings == 1
    assert [one for one in seen if "Lock wait timeout exceeded" in one], "and what the tests above look at tells it"
    assert len(builders.card_of(connection, document.nomer_nota)) == 1


def test_h14_the_card_has_one_order_for_rows_of_the_same_instant(walker: Walker, connection: Any) -> None:
    midnight = datetime(2026, 1, 1)
    authorised = datetime(2025, 12, 31, 17, 0, tzinfo=UTC)
    builders.warehouse(connection)
    builders.movement(connection, "A", masuk="10", tanggal_wib=midnight, created_at=authorised - timedelta(hours=1))
    document = builders.document(
        connection, [Line("A", "10", "7", "100")], diotorisasi_at=authorised, snapshot_at=authorised
    )

    assert walker.post(document.shadow_id) == "COMPLETED"

    card = "SELECT id, masuk, keluar, saldo FROM v_kartu_stok WHERE kode_barang = 'A'"
    first, second = builders.rows(connection, card), builders.rows(connection, card)
    assert first == second
    assert [int(row["saldo"]) for row in first] == [10, 7]


def test_the_database_clock_is_the_only_clock(database: MysqlUrl) -> None:
    with bootstrap.database(database, Settings()).transaction() as tx:
        assert tx.now.tzinfo is UTC
