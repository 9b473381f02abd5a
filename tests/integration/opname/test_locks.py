"""Two sessions at once, for every lock of the state protocol: one waits, or both end right."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest import bootstrap, periods
from everest.errors import TransientDatabaseError
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl, Settings
from everest.store import database as store
from everest.store.unit_of_work import Database
from everest.workflow.engine import Leave, Ticket
from everest.workflow.ticket import Fenced
from ingest_consumer import shadow as jobs
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

BEFORE = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)


@pytest.fixture
def others(database: MysqlUrl) -> Iterator[Callable[[], Walker]]:
    """Further walkers, each with connections of its own."""
    made: list[Walker] = []

    def another() -> Walker:
        made.append(Walker(database))
        return made[-1]

    yield another
    for walker in made:
        walker.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


class Gate:
    """Lets a walker stop inside an open transaction until the test lets it go on."""

    def __init__(self, database: Database) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self._database = database

    def transaction(self) -> Any:
        return self._database.transaction()

    def hold(self) -> None:
        self.reached.set()
        assert self.open.wait(30)


def hold_in(walker: Walker, monkeypatch: pytest.MonkeyPatch, method: str) -> Gate:
    """The walker's next call of `books.<method>` stops after it has done its work."""
    from everest.store.books import MysqlBooks

    gate = Gate(walker.database)
    original = getattr(MysqlBooks, method)
    owner: list[int] = []

    def stopping(self: MysqlBooks, *arguments: Any, **named: Any) -> Any:
        result = original(self, *arguments, **named)
        if not owner:
            owner.append(threading.get_ident())
            gate.hold()
        return result

    monkeypatch.setattr(MysqlBooks, method, stopping)
    return gate


def is_waiting(future: Future[Any]) -> bool:
    """Blocked by a lock: not done although nothing else keeps it."""
    try:
        future.result(timeout=1)
    except TimeoutError:
        return True
    return False


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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    monkeypatch.setattr("everest.workflow.runner.log.warning", lambda *words: seen.append(1))
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
    walker: Walker, others: Callable[[], Walker], pool: ThreadPoolExecutor, connection: Any
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
    books = builders.books(connection)
    assert (books.postings, books.agree) == (300, True)


def test_a_lock_wait_that_gives_up_keeps_nothing_and_is_tried_again(
    walker: Walker, connection: Any, database: MysqlUrl, monkeypatch: pytest.MonkeyPatch
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
