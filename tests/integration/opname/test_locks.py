"""Two at once on the same rows: whoever comes second waits, sees what the first one did, and posts nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from everest import bootstrap, periods
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl, Settings
from everest.store import database as store
from everest.workflow.engine import Leave, Ticket
from everest.workflow.ticket import Fenced
from ingest_consumer import shadow as jobs
from tests import builders
from tests.builders import Line
from tests.integration.opname.holding import BEFORE, hold_in, is_waiting
from tests.integration.opname.walk import Walker


def test_h41_two_jobs_of_one_nota_make_one_posting(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Different warehouses, so that only the unique nota stands between the two."""
    one = builders.document(connection, [Line("A")], nomer_nota="SO-1", gudang_kode="GD-A")
    two = builders.document(connection, [Line("A")], nomer_nota="SO-1", gudang_kode="GD-B")
    other = others()
    first, second = walker.claim(one.shadow_id), other.claim(two.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(first, name)
        other.step(second, name)
    gate = hold_in(walker, monkeypatch, "insert_posting")
    posting = pool.submit(walker.step, first, "post_jurnal")
    assert gate.reached.wait(30)
    rival = pool.submit(other.dag_run, second)
    assert is_waiting(rival), "the second insert of the nota waits for the first one's commit"
    gate.open.set()
    posting.result()
    rival.result()

    assert builders.shadow(connection, one.shadow_id)["worker_status"] == "COMPLETED"
    row = builders.shadow(connection, two.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 409)
    assert "nota SO-1 sudah diposting dengan isi lain" in row["error"], "a sentence for people, not the server's"
    assert builders.books(connection).postings == 1
    assert builders.books(connection).agree


def test_h41_two_deliveries_of_one_job_are_claimed_once_and_posted_once(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    database: MysqlUrl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both look before one of them has committed: the claim of the second changes no row, its task posts nothing."""
    document = builders.document(connection)
    run_id = jobs.dag_run_id("opname_posting", document.transaksi_id, None, document.shadow_id, 1)

    def claim(conn: Any) -> bool:
        row = jobs.get(conn, document.shadow_id)
        assert row is not None and row.worker_status == "PENDING"
        return jobs.claim(conn, document.shadow_id, None, POST_OPNAME.dag_id, run_id, 1)

    with closing(store.connect(database)) as one, closing(store.connect(database)) as two:
        assert claim(one)
        rival = pool.submit(claim, two)
        assert is_waiting(rival)
        one.commit()
        assert not rival.result()
        two.commit()

    ticket = Ticket(run_id, document.shadow_id, 1, None, document.transaksi_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(ticket, name)
    gate = hold_in(walker, monkeypatch, "insert_posting")
    first = pool.submit(walker.step, ticket, "post_jurnal", False)
    assert gate.reached.wait(30)
    second = pool.submit(others().step, ticket, "post_jurnal", False)
    assert is_waiting(second)
    gate.open.set()
    assert isinstance(first.exception(30), Fenced), "what it had written is rolled back"
    assert isinstance(second.result(30), Leave)

    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "COMPLETED"
    books = builders.books(connection)
    assert (books.postings, books.journal_rows, books.card_rows, books.agree) == (1, 4, 2, True)


def test_two_counts_of_one_item_cannot_both_post(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The warehouse lock makes the freshness check hold between two postings."""
    one, two = (builders.document(connection, [Line("A")]) for _ in range(2))
    other = others()
    first, second = walker.claim(one.shadow_id), other.claim(two.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(first, name)
        other.step(second, name)
    gate = hold_in(walker, monkeypatch, "insert_stock_card")
    posting = pool.submit(walker.step, first, "post_jurnal")
    assert gate.reached.wait(30)
    rival = pool.submit(other.dag_run, second)
    assert is_waiting(rival)
    gate.open.set()
    posting.result()
    rival.result()

    row = builders.shadow(connection, two.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 409)
    assert one.nomer_nota in row["error"], "the refusal names the nota that was faster"
    assert builders.books(connection).postings == 1


@pytest.mark.parametrize(
    "snapshot", [pytest.param("before the commit", id="before"), pytest.param("after the commit", id="after")]
)
def test_a_posting_that_a_count_could_not_see_yet_makes_it_stale_whenever_its_rows_were_stamped(
    walker: Walker,
    others: Callable[[], Walker],
    pool: ThreadPoolExecutor,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: str,
) -> None:
    """A row is stamped when it is written and seen when its posting commits; what was frozen in between missed it."""
    one = builders.document(connection, [Line("A")])
    gate = hold_in(walker, monkeypatch, "insert_stock_card")
    posting = pool.submit(walker.post, one.shadow_id)
    assert gate.reached.wait(30)
    frozen = datetime.now(UTC)
    threading.Event().wait(0.1)
    gate.open.set()
    assert posting.result() == "COMPLETED"
    (card,) = builders.rows(connection, "SELECT created_at FROM kartu_stok")
    assert card["created_at"] < builders.utc(frozen), "stamped before it was frozen"

    when = frozen if snapshot == "before the commit" else datetime.now(UTC)
    two = builders.document(connection, [Line("A")], snapshot_at=when)
    outcome = others().post(two.shadow_id)

    row = builders.shadow(connection, two.shadow_id)
    if snapshot == "before the commit":
        assert (outcome, row["error_code"], one.nomer_nota in row["error"]) == ("FAILED", 409, True)
        assert builders.books(connection).postings == 1
    else:
        assert outcome == "COMPLETED", "a count that is taken right after another one is fresh"


def test_closing_a_month_waits_for_the_posting_that_holds_it(
    walker: Walker,
    pool: ThreadPoolExecutor,
    connection: Any,
    database: MysqlUrl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builders.period(connection, "2026-03", "OPEN")
    document = builders.document(connection, [Line("A")], diotorisasi_at=BEFORE)
    gate = hold_in(walker, monkeypatch, "lock_warehouses")
    posting = pool.submit(walker.post, document.shadow_id)
    assert gate.reached.wait(30)

    def close() -> None:
        conn = store.connect(database)
        with store.transaction(conn), conn.cursor() as cursor:
            cursor.execute("SELECT status FROM periode_akuntansi WHERE periode = '2026-03' FOR UPDATE")
            cursor.execute("UPDATE periode_akuntansi SET status = 'CLOSED' WHERE periode = '2026-03'")
        conn.close()

    closing = pool.submit(close)
    assert is_waiting(closing)
    gate.open.set()
    assert posting.result() == "COMPLETED"
    closing.result()
    later = builders.document(connection, [Line("B")], diotorisasi_at=BEFORE)
    assert walker.post(later.shadow_id) == "FAILED"


def test_closing_the_month_of_a_leftover_waits_for_the_posting_that_replaces_it(
    walker: Walker,
    pool: ThreadPoolExecutor,
    connection: Any,
    database: MysqlUrl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The document posts in March; what an earlier attempt left of it stands in January."""
    document = builders.document(connection, [Line("A")], diotorisasi_at=BEFORE)
    left = {"nomer_nota": document.nomer_nota, "sumber": "OPNAME", "tanggal_wib": datetime(2026, 1, 31, 12)}
    builders.insert(connection, "jurnal", kode_akun=builders.PERSEDIAAN, debet=1, kredit=0, **left)
    gate = hold_in(walker, monkeypatch, "insert_journal")
    posting = pool.submit(walker.post, document.shadow_id)
    assert gate.reached.wait(30)

    def close() -> None:
        with bootstrap.database(database, Settings()).transaction() as tx:
            periods.close(tx, "2026-01", "rina", "tutup buku", force=True)

    closing = pool.submit(close)
    assert is_waiting(closing)
    gate.open.set()
    assert posting.result() == "COMPLETED"
    closing.result()
    assert builders.rows(connection, "SELECT tanggal_wib FROM jurnal_arsip") == [{"tanggal_wib": left["tanggal_wib"]}]
    assert builders.rows(connection, "SELECT periode, status FROM periode_akuntansi ORDER BY 1") == [
        {"periode": "2026-01", "status": "CLOSED"},
        {"periode": "2026-03", "status": "OPEN"},
    ]


def test_a_leftover_that_another_program_changes_after_the_last_look_is_held_until_it_is_replaced(
    walker: Walker,
    pool: ThreadPoolExecutor,
    connection: Any,
    database: MysqlUrl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else rows would be archived that nobody looked at: another amount, another month."""
    document = builders.document(connection, [Line("A")], diotorisasi_at=BEFORE)
    left = {"nomer_nota": document.nomer_nota, "sumber": "OPNAME", "tanggal_wib": datetime(2026, 1, 31, 12)}
    row = builders.insert(connection, "jurnal", kode_akun=builders.PERSEDIAAN, debet=1, kredit=0, **left)
    stock = {"kode_barang": "Z", "gudang_kode": "GD-A", "masuk": 1, "nilai": 1, "created_at": datetime(2026, 1, 1)}
    card = builders.insert(connection, "kartu_stok", **stock, **left)
    gate = hold_in(walker, monkeypatch, "insert_posting")
    posting = pool.submit(walker.post, document.shadow_id)
    assert gate.reached.wait(30)

    def change(sql: str, row_id: int) -> int:
        with closing(store.connect(database)) as conn, store.transaction(conn), conn.cursor() as cursor:
            changed: int = cursor.execute(sql, (row_id,))
            return changed

    changes = [
        pool.submit(change, "UPDATE jurnal SET debet = 2 WHERE id = %s", row),
        pool.submit(change, "UPDATE kartu_stok SET masuk = 2 WHERE id = %s", card),
    ]
    assert [is_waiting(one) for one in changes] == [True, True]
    gate.open.set()

    assert posting.result() == "COMPLETED"
    assert [one.result() for one in changes] == [0, 0]
    assert builders.rows(connection, "SELECT debet FROM jurnal_arsip") == [{"debet": 1}]
    assert builders.rows(connection, "SELECT masuk FROM kartu_stok_arsip") == [{"masuk": 1}]


def test_a_document_whose_leftovers_an_earlier_release_found_looks_for_them_again(
    walker: Walker, connection: Any
) -> None:
    """Its state does not say in which months they stand."""
    document = builders.document(connection, [Line("A")], diotorisasi_at=BEFORE)
    left = {"nomer_nota": document.nomer_nota, "sumber": "OPNAME", "tanggal_wib": datetime(2026, 1, 31, 12)}
    builders.insert(connection, "jurnal", kode_akun=builders.PERSEDIAAN, debet=1, kredit=0, **left)

    def forget_the_months(step: str) -> None:
        if step == "post_jurnal":
            with connection.cursor() as cursor:
                cursor.execute("UPDATE workflow_runs SET state = JSON_REMOVE(state, '$.sisa_bulan') WHERE n = 1")
            connection.commit()

    assert walker.post(document.shadow_id, forget_the_months) == "COMPLETED"
    assert len(builders.rows(connection, "SELECT id FROM jurnal_arsip")) == 1
