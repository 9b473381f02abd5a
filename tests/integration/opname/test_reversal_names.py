"""The nota of a reversal, and whoever else wants it; deaths and doubles on its way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal as D
from typing import Any

import pytest

from everest.errors import TransientDatabaseError
from everest.opname.workflow import REVERSE_OPNAME
from everest.reversal import Requested
from everest.store.books import MysqlBooks
from everest.store.reversals import MysqlReversals
from everest.workflow import control
from everest.workflow.engine import Leave
from tests import builders
from tests.builders import Line
from tests.integration.opname.reversing import Backwards, ask, counted, per_account, posted, reverse, whole_books
from tests.integration.opname.walk import Walker


def test_the_nota_of_a_reversal_is_nobody_elses(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, nomer_nota="SO-1")
    counted(connection, [Line("Q")], nomer_nota="SO-1-BALIK")

    requested = reverse(backwards(), document.nomer_nota)
    late = counted(connection, [Line("R")], nomer_nota=requested.nomer_nota)

    assert requested.nomer_nota == "SO-1-BALIK2"
    assert walker.post(late.shadow_id) == "FAILED"
    row = builders.shadow(connection, late.shadow_id)
    assert (row["error_code"], "nota sebuah pembalikan" in row["error"]) == (409, True)


def test_a_count_that_took_the_nota_of_a_reversal_on_its_way_keeps_it(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    back = backwards()
    first = ask(back, document.nomer_nota)
    posted(walker, connection, Line("Z"), nomer_nota=first.nomer_nota)

    assert back.post(first.shadow_id) == "FAILED"
    job = builders.shadow(connection, first.shadow_id)
    assert (job["error_code"], "minta lagi" in job["error"]) == (409, True)

    with back.database.transaction() as tx:
        control.cancel(tx, REVERSE_OPNAME, first.workflow_id, "dewi", "nota terpakai")
    again = reverse(back, document.nomer_nota)
    assert again.nomer_nota == f"{document.nomer_nota}-BALIK2"


@pytest.mark.parametrize("first_is", ["the count", "the reversal"])
def test_a_count_and_a_reversal_of_one_nota_that_commit_at_the_same_moment_are_one_posting(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch, first_is: str
) -> None:
    """Other warehouses and other months: no lock in common, and each has looked before the other one committed."""
    document = posted(walker, connection)
    back = backwards()
    requested = ask(back, document.nomer_nota)
    august = datetime(2026, 8, 31, 5, tzinfo=UTC)
    count = counted(connection, [Line("Z")], nomer_nota=requested.nomer_nota, gudang_kode="GD-Z", diotorisasi_at=august)
    counting, reversing = walker.claim(count.shadow_id), back.claim(requested.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(counting, name)
    inserted, rival_inserts = threading.Event(), threading.Event()

    def stopping(books: type, is_first: bool) -> None:
        original = books.insert_posting

        def insert(self: Any, *arguments: Any) -> Any:
            if not is_first:
                rival_inserts.set()
                return original(self, *arguments)
            posting_id = original(self, *arguments)
            inserted.set()
            assert rival_inserts.wait(30), "the rival has looked, and found the nota free"
            return posting_id

        monkeypatch.setattr(books, "insert_posting", insert)

    stopping(MysqlBooks, first_is == "the count")
    stopping(MysqlReversals, first_is == "the reversal")
    with ThreadPoolExecutor(2) as pool:
        first, rival = (walker.dag_run, counting), (back.dag_run, reversing)
        if first_is == "the reversal":
            first, rival = rival, first
        posting = pool.submit(*first)
        assert inserted.wait(30)
        other = pool.submit(*rival)
        posting.result()
        other.result()
    outcomes = {one.shadow_id: builders.shadow(connection, one.shadow_id) for one in (count, requested)}

    wins, loses = (count, requested) if first_is == "the count" else (requested, count)
    assert outcomes[wins.shadow_id]["worker_status"] == "COMPLETED"
    assert (outcomes[loses.shadow_id]["worker_status"], outcomes[loses.shadow_id]["error_code"]) == ("FAILED", 409)
    sentence = "minta lagi: ia mendapat nota lain" if first_is == "the count" else "nota sebuah pembalikan"
    assert sentence in outcomes[loses.shadow_id]["error"]
    assert builders.books(connection).postings == 2
    assert builders.books(connection).agree


def test_two_long_notas_reversed_at_once_get_names_of_their_own(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both give way at the end, so that both would be NNN...-BALIK."""
    notas = ["N" * 99 + end for end in "12"]
    for number, nota in enumerate(notas):
        posted(walker, connection, Line(f"L{number}"), nomer_nota=nota, gudang_kode=f"GD-{number}")
    start = threading.Barrier(2)
    looked = threading.Barrier(2)
    real = MysqlReversals.nota_is_taken

    def looking(self: MysqlReversals, nomer_nota: str) -> bool:
        taken = real(self, nomer_nota)
        with suppress(threading.BrokenBarrierError):
            looked.wait(1)  # both have looked before either has written, if they can
        return taken

    def one(nota: str) -> Requested:
        reverser = backwards()
        start.wait()
        return ask(reverser, nota)

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(MysqlReversals, "nota_is_taken", looking)
        requested = list(pool.map(one, notas))

    assert sorted(one.nomer_nota[-7:] for one in requested) == ["-BALIK2", "N-BALIK"]
    assert all(backwards().post(one.shadow_id) == "COMPLETED" for one in requested)


def test_a_nota_of_a_hundred_characters_can_be_reversed(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, nomer_nota="N" * 100)
    requested = reverse(backwards(), document.nomer_nota)
    assert len(requested.nomer_nota) == 100
    assert requested.nomer_nota.endswith("-BALIK")


def test_a_commit_whose_answer_was_lost_is_found_and_nothing_is_posted_twice(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = posted(walker, connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)
    ticket = reverser.claim(requested.shadow_id)
    lost: list[int] = []
    original = reverser.database.transaction

    @contextmanager
    def losing() -> Iterator[Any]:
        with original() as tx:
            yield tx
        if not lost and len(builders.rows(connection, "SELECT id FROM posting_sets")) == 2:
            lost.append(1)
            raise TransientDatabaseError("Lost connection during COMMIT", 2013)

    monkeypatch.setattr(reverser.database, "transaction", losing)
    result = reverser.step(ticket, "reverse_posting", is_last_try=False)

    assert lost
    assert isinstance(result, Leave)
    assert builders.shadow(connection, requested.shadow_id)["worker_status"] == "COMPLETED"
    assert len(builders.journal_of(connection, requested.nomer_nota)) == 4


@pytest.mark.parametrize(
    "method", ["insert_posting", "write_document", "insert_journal", "mirror_stock_card", "what_is_left"]
)
def test_a_connection_that_dies_after_any_statement_leaves_nothing_and_the_next_try_posts(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    document = posted(walker, connection)
    before = whole_books(connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)
    ticket = reverser.claim(requested.shadow_id)
    original = getattr(MysqlReversals, method)
    seen: list[list[dict[str, Any]]] = []

    def dying(self: MysqlReversals, *arguments: Any) -> Any:
        result = original(self, *arguments)
        if not seen:
            with self._conn.cursor() as cursor:
                cursor.execute("SELECT CONNECTION_ID()")
                (victim,) = cursor.fetchone()
            seen.append(whole_books(connection))
            with connection.cursor() as cursor:
                cursor.execute(f"KILL {victim}")
        return result

    monkeypatch.setattr(MysqlReversals, method, dying)
    reverser.step(ticket, "reverse_posting", is_last_try=False)

    assert seen == [before], "nobody saw a half of it"
    assert builders.shadow(connection, requested.shadow_id)["worker_status"] == "COMPLETED"
    assert len(builders.rows(connection, "SELECT id FROM posting_sets")) == 2
    assert set(per_account(connection).values()) == {D("0.00")}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE jurnal SET debet = debet + 1 WHERE urutan = 1", "debits"),
        ("DELETE FROM kartu_stok WHERE kode_barang = 'BRG-A'", "stock card"),
        ("UPDATE kartu_stok SET nilai = nilai + 1 WHERE kode_barang = 'BRG-A'", "stock card"),
        ("UPDATE posting_sets SET total_debet = 1, total_kredit = 1", "its journal holds"),
    ],
)
def test_an_original_that_somebody_changed_by_hand_is_not_mirrored(
    walker: Walker, backwards: Backwards, connection: Any, damage: str, words: str
) -> None:
    document = posted(walker, connection)
    with connection.cursor() as cursor:
        cursor.execute(damage)
    connection.commit()
    before = whole_books(connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)

    assert reverser.post(requested.shadow_id) == "FAILED"

    row = builders.shadow(connection, requested.shadow_id)
    assert (row["error_code"], words in row["error"]) == (500, True), row["error"]
    assert whole_books(connection) == before
