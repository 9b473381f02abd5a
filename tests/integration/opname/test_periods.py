"""Closing and opening months: what is listed, what is refused, and closing against posting in two sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from everest import bootstrap, periods, reversal
from everest.errors import DocumentRefused
from everest.opname.workflow import REVERSE_OPNAME
from everest.periods import Change, PeriodInUse
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import Database
from ingest_consumer import by_hand
from tests import builders
from tests.builders import WIB, Document, Line
from tests.integration.opname.holding import hold_in, is_waiting
from tests.integration.opname.walk import Walker

IN_MARCH = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)
LAST_OF_JANUARY = datetime(2026, 1, 31, 16, 59, 59, tzinfo=UTC)  # 23:59:59 WIB
MARCH = "2026-03"


@pytest.fixture
def db(database: MysqlUrl) -> Iterator[Database]:
    found = bootstrap.database(database, Settings())
    yield found
    found.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def close(db: Database, periode: str = MARCH, force: bool = False, who: str = "dewi") -> Change:
    with db.transaction() as tx:
        return periods.close(tx, periode, who, "tutup buku", force)


def reopen(db: Database, periode: str = MARCH) -> Change:
    with db.transaction() as tx:
        return periods.open(tx, periode, "dewi", "koreksi")


def status_of(connection: Any, periode: str = MARCH) -> list[str]:
    found = builders.rows(connection, "SELECT status FROM periode_akuntansi WHERE periode = %s", periode)
    return [row["status"] for row in found]


def audited(connection: Any) -> list[tuple[str, str, str, dict[str, Any]]]:
    found = builders.rows(connection, "SELECT * FROM audit_log WHERE action LIKE 'period%%' ORDER BY id")
    return [(row["actor"], row["action"], row["reason"], json.loads(row["after_value"])) for row in found]


def test_a_month_without_anything_on_its_way_closes_and_opens_with_who_and_why(db: Database, connection: Any) -> None:
    first, again = close(db), close(db)
    opened, opened_again = reopen(db), reopen(db)

    assert (first.is_changed, again.is_changed, opened.is_changed, opened_again.is_changed) == (
        True,
        False,
        True,
        False,
    )
    assert status_of(connection) == ["OPEN"]
    assert audited(connection) == [
        ("dewi", "period_close", "tutup buku", {"periode": MARCH, "status": "CLOSED"}),
        ("dewi", "period_open", "koreksi", {"periode": MARCH, "status": "OPEN"}),
    ]


@pytest.mark.parametrize("periode", ["2026-13", "2026-00", "2026-3", "202603", "2026-03 ", "", "0000-01", "2026-03-01"])
def test_what_is_no_month_is_refused(db: Database, connection: Any, periode: str) -> None:
    for change in (close, reopen):
        with pytest.raises(DocumentRefused, match="bukan bulan"):
            change(db, periode)
    assert builders.rows(connection, "SELECT * FROM periode_akuntansi") == []


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_reason_is_needed(db: Database, reason: str) -> None:
    with pytest.raises(DocumentRefused, match="alasan"), db.transaction() as tx:
        periods.close(tx, MARCH, "dewi", reason)


def test_h22_closing_lists_what_is_on_its_way_into_the_month_and_refuses(db: Database, connection: Any) -> None:
    wanted: dict[str, Document] = {}
    for number, status in enumerate(["PENDING", "PROCESSING", "WAITING", "FAILED", "CANCELLED"]):
        document = builders.document(connection, [Line(f"I{number}")], diotorisasi_at=IN_MARCH, nomer_nota=status)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE rabbit_publish_shadow SET worker_status = %s WHERE id = %s", (status, document.shadow_id)
            )
        connection.commit()
        wanted[status] = document
    builders.document(connection, [Line("X")], diotorisasi_at=IN_MARCH + timedelta(days=31), nomer_nota="APRIL")
    builders.document(
        connection,
        [Line("Y")],
        diotorisasi_at=IN_MARCH + timedelta(days=31),
        tanggal_posting=date(2026, 3, 31),
        nomer_nota="BACKDATED",
    )
    builders.document(connection, [Line("Z")], diotorisasi_at=IN_MARCH, nomer_nota="TWICE")
    builders.shadow_row(connection, wanted["PENDING"].transaksi_id, "PENDING", worker_status="WAITING")

    with pytest.raises(PeriodInUse) as refused:
        close(db)

    expected = {"PENDING", "PROCESSING", "WAITING", "BACKDATED", "TWICE"}
    assert sorted(one.nomer_nota for one in refused.value.documents) == sorted(expected), "each once, CANCELLED never"
    assert (refused.value.code, "5 dokumen" in refused.value.message) == (409, True)
    assert status_of(connection) in ([], ["OPEN"])
    assert audited(connection) == []

    change = close(db, force=True)
    assert {one.nomer_nota for one in change.documents} == expected
    assert [(one.nomer_nota, one.tanggal_wib) for one in change.failed] == [("FAILED", datetime(2026, 3, 10, 12, 0))]
    assert status_of(connection) == ["CLOSED"]
    ((_, _, _, after),) = audited(connection)
    assert (after["dokumen"], set(after["nota"])) == (5, expected)


def test_h22_what_was_on_its_way_into_a_month_closed_by_force_fails_and_posts_after_opening(
    walker: Walker, db: Database, connection: Any
) -> None:
    document = builders.document(connection, diotorisasi_at=IN_MARCH)
    close(db, force=True)

    assert walker.post(document.shadow_id) == "FAILED"
    assert builders.shadow(connection, document.shadow_id)["error_code"] == 423
    assert builders.books(connection) == builders.NOTHING_POSTED
    assert [one.nomer_nota for one in reopen(db).failed] == [document.nomer_nota], "whom to run again"
    by_hand.rerun(connection, document.shadow_id, "budi")
    connection.commit()
    assert walker.post(document.shadow_id) == "COMPLETED"
    assert close(db).is_changed, "what has posted is no longer on its way"


def test_h23_a_month_closes_by_itself_and_no_other(walker: Walker, db: Database, connection: Any) -> None:
    close(db, "2026-01")
    refused = builders.document(connection, [Line("A")], diotorisasi_at=LAST_OF_JANUARY)
    next_second = builders.document(connection, [Line("B")], diotorisasi_at=LAST_OF_JANUARY + timedelta(seconds=1))
    march_first = builders.document(connection, [Line("C")], tanggal_posting=date(2026, 3, 1))

    assert [walker.post(one.shadow_id) for one in (refused, next_second, march_first)] == [
        "FAILED",
        "COMPLETED",
        "COMPLETED",
    ]
    assert builders.shadow(connection, refused.shadow_id)["error_code"] == 423


def test_reversals_on_their_way_hold_the_present_month_open_and_no_other(
    walker: Walker, db: Database, connection: Any, database: MysqlUrl
) -> None:
    document = builders.document(connection, diotorisasi_at=IN_MARCH)
    assert walker.post(document.shadow_id) == "COMPLETED"
    with db.transaction() as tx:
        requested = reversal.request(tx, document.nomer_nota, "dewi", "salah rak")
    present = f"{datetime.now(WIB):%Y-%m}"

    assert close(db).is_changed, "the reversal does not post into the month of its original"
    with pytest.raises(PeriodInUse) as refused:
        close(db, present)
    (found,) = refused.value.documents
    assert (found.nomer_nota, found.is_reversal) == (requested.nomer_nota, True)
    assert "pembalikan" in refused.value.problems[0].pesan

    close(db, present, force=True)
    reverser = Walker(database, definition=REVERSE_OPNAME)
    assert reverser.post(requested.shadow_id) == "FAILED"
    reverser.close()
    assert builders.shadow(connection, requested.shadow_id)["error_code"] == 423
    assert [one.nomer_nota for one in reopen(db, present).failed] == [requested.nomer_nota]


def test_closing_waits_for_the_posting_that_looked_before_it_and_then_finds_it_posted(
    walker: Walker, db: Database, pool: ThreadPoolExecutor, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = builders.document(connection, [Line("A")], diotorisasi_at=IN_MARCH)
    gate = hold_in(walker, monkeypatch, "lock_warehouses")
    posting = pool.submit(walker.post, document.shadow_id)
    assert gate.reached.wait(30)

    closing: Future[Change] = pool.submit(close, db)
    assert is_waiting(closing)
    gate.open.set()

    assert posting.result() == "COMPLETED"
    change = closing.result()
    assert (change.is_changed, change.documents) == (True, ()), "it looked again after the lock was its own"


def test_a_posting_waits_for_the_closing_that_came_first_and_is_refused(
    walker: Walker, database: MysqlUrl, pool: ThreadPoolExecutor, connection: Any
) -> None:
    document = builders.document(connection, [Line("A")], diotorisasi_at=IN_MARCH)
    ticket = walker.claim(document.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(ticket, name)
    closer = bootstrap.database(database, Settings())
    with closer.transaction() as tx:
        periods.close(tx, MARCH, "dewi", "tutup buku", force=True)
        posting = pool.submit(walker.dag_run, ticket)
        assert is_waiting(posting), "between check and commit there is no gap"
    posting.result()
    closer.close()

    row = builders.shadow(connection, document.shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 423)
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_a_reversal_waits_for_the_closing_of_its_month(
    walker: Walker, database: MysqlUrl, db: Database, pool: ThreadPoolExecutor, connection: Any
) -> None:
    document = builders.document(connection, diotorisasi_at=IN_MARCH)
    assert walker.post(document.shadow_id) == "COMPLETED"
    with db.transaction() as tx:
        requested = reversal.request(tx, document.nomer_nota, "dewi", "salah rak")
    reverser = Walker(database, definition=REVERSE_OPNAME)
    ticket = reverser.claim(requested.shadow_id)
    with db.transaction() as tx:
        periods.close(tx, f"{datetime.now(WIB):%Y-%m}", "dewi", "tutup buku", force=True)
        posting = pool.submit(reverser.dag_run, ticket)
        assert is_waiting(posting)
    posting.result()
    reverser.close()

    assert builders.shadow(connection, requested.shadow_id)["error_code"] == 423
    assert builders.books(connection).postings == 1


@pytest.mark.parametrize(("word", "is_open"), [("open", True), ("Closed", False)])
def test_a_month_that_somebody_spelled_by_hand_is_read_in_one_way_by_postings_reversals_and_closings(
    walker: Walker, database: MysqlUrl, db: Database, connection: Any, word: str, is_open: bool
) -> None:
    """The CHECK of the column compares without capitals, so such words stand there."""
    this_month = f"{datetime.now(WIB):%Y-%m}"
    posted = builders.document(connection, [Line("A")], diotorisasi_at=IN_MARCH)
    assert walker.post(posted.shadow_id) == "COMPLETED"
    later = builders.document(connection, [Line("B")], diotorisasi_at=datetime.now(UTC))
    with db.transaction() as tx:
        reversing = reversal.request(tx, posted.nomer_nota, "dewi", "salah rak").shadow_id
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM periode_akuntansi")
        cursor.execute("INSERT INTO periode_akuntansi VALUES (%s, %s)", (this_month, word))
    connection.commit()
    with db.transaction() as tx:
        listed = {month.periode: month.status for month in periods.list(tx)}
    reverser = Walker(database, definition=REVERSE_OPNAME)

    ends = (walker.post(later.shadow_id), reverser.post(reversing))
    reverser.close()

    assert ends == (("COMPLETED",) * 2 if is_open else ("FAILED",) * 2)
    assert listed[this_month] == ("OPEN" if is_open else "CLOSED")
    change = close(db, this_month) if is_open else reopen(db, this_month)
    assert (change.is_changed, status_of(connection, this_month)) == (True, ["CLOSED" if is_open else "OPEN"])


def test_two_who_close_at_once_close_once(database: MysqlUrl, pool: ThreadPoolExecutor, connection: Any) -> None:
    def one(number: int) -> bool:
        db = bootstrap.database(database, Settings())
        try:
            return close(db, who=f"orang-{number}").is_changed
        finally:
            db.close()

    assert sorted(pool.map(one, range(4))) == [False, False, False, True]
    assert len(audited(connection)) == 1


def test_the_list_has_every_month_that_anything_is_about(walker: Walker, db: Database, connection: Any) -> None:
    posted = builders.document(connection, [Line("A")], diotorisasi_at=IN_MARCH)
    walker.post(posted.shadow_id)
    nothing = builders.document(connection, [Line("E", "3", "3")], diotorisasi_at=IN_MARCH)
    walker.post(nothing.shadow_id)
    builders.document(connection, [Line("B")], diotorisasi_at=IN_MARCH + timedelta(days=31))
    builders.document(connection, [Line("C")], otorisasi_level=0, diotorisasi_oleh=None)
    bad = builders.document(connection, [Line("D", qty_fisik=None)], diotorisasi_at=LAST_OF_JANUARY)
    walker.post(bad.shadow_id)
    close(db, "2025-12")
    with db.transaction() as tx:
        found = {month.periode: month for month in periods.list(tx)}

    def short(periode: str) -> tuple[str, int, int, int]:
        month = found[periode]
        return (month.status, month.postings, month.open_documents, month.failed_documents)

    assert short("2025-12") == ("CLOSED", 0, 0, 0)
    assert short("2026-01") == ("OPEN", 0, 0, 1)
    assert short(MARCH) == ("OPEN", 2, 0, 0)
    assert short("2026-04") == ("OPEN", 0, 1, 0)
    assert list(found) == sorted(found)
    assert f"{datetime.now(WIB):%Y-%m}" in found
