"""Cases of the public bug reports that only show once a document meets other rows: its month, its stock card, its
earlier attempts, a file that it came from. The single-line ones are in test_posting.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest

from everest.intake.files import Reading, read_file
from everest.intake.submission import Authority
from everest.intake.submit import submit_document
from everest.opname import journal
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.books import MysqlBooks
from ingest_consumer import by_hand
from tests import builders
from tests.builders import Document, Line
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB


def rerun(connection: Any, document: Document) -> None:
    by_hand.rerun(connection, document.shadow_id, "budi")
    connection.commit()


def card_rows(connection: Any, kode_barang: str) -> list[dict[str, Any]]:
    return builders.rows(
        connection,
        "SELECT masuk, keluar, saldo FROM v_kartu_stok WHERE kode_barang = %s ORDER BY tanggal_wib, id",
        kode_barang,
    )


def test_h02b_a_document_with_37_mistakes_holds_up_no_other_and_posts_once_corrected(
    walker: Walker, connection: Any, database: MysqlUrl
) -> None:
    good = [Line(f"I{i}", "10", "11", "100", gudang_kode=f"W{i % 50}") for i in range(2_000)]
    wrong = [
        line if i % 54 else replace(line, **[{"qty_fisik": None}, {"qty_fisik": "-1"}, {"harga_pokok": None}][i % 3])
        for i, line in enumerate(good, start=1)
    ]
    document = builders.document(connection, wrong)
    other = builders.document(connection, [Line("OTHER", gudang_kode="GD-OTHER")], gudang_kode="GD-OTHER")

    with ThreadPoolExecutor(2) as pool, closing(Walker(database)) as second:
        statuses = list(pool.map(lambda pair: pair[0].post(pair[1].shadow_id), [(walker, document), (second, other)]))

    assert statuses == ["FAILED", "COMPLETED"]
    assert len(builders.shadow(connection, document.shadow_id)["response"]["errors"]) == 37
    assert builders.journal_of(connection, document.nomer_nota) == []
    builders.write_lines(connection, document.header_id, good)
    rerun(connection, document)
    assert walker.post(document.shadow_id) == "COMPLETED"
    assert len(builders.card_of(connection, document.nomer_nota)) == 2_000
    assert builders.books(connection).agree


def test_h13_a_receipt_dated_before_a_posted_count_does_not_change_what_was_posted(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(
        connection, [Line("A", "42", "1", "10")], diotorisasi_at=NOON, snapshot_at=NOON - timedelta(hours=1)
    )
    walker.post(document.shadow_id)
    before = builders.rows(connection, "SELECT * FROM jurnal"), builders.card_of(connection, document.nomer_nota)

    builders.movement(connection, "A", masuk="9", tanggal_wib=datetime(2026, 3, 1), created_at=datetime.now(UTC))
    again = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)

    assert walker.post(again) == "COMPLETED"
    after = builders.rows(connection, "SELECT * FROM jurnal"), builders.card_of(connection, document.nomer_nota)
    assert after == before
    assert [row["saldo"] for row in card_rows(connection, "A")] == [D(9), D(-32)], "the balance shows the late receipt"


def test_h19_a_connection_that_dies_between_journal_and_stock_card_leaves_both_or_none(
    walker: Walker, connection: Any, database: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = builders.document(connection)
    write_cards = MysqlBooks.insert_stock_card
    killed: list[int] = []

    def die_once(self: MysqlBooks, *arguments: Any) -> None:
        if not killed:
            with self._conn.cursor() as cursor:
                cursor.execute("SELECT CONNECTION_ID(), (SELECT COUNT(*) FROM jurnal)")
                thread, own_rows = cursor.fetchone()
            assert own_rows == 4, "the journal is written, in this transaction"
            assert builders.books(connection) == builders.NOTHING_POSTED, "and nobody else sees it"
            killed.append(thread)
            with closing(store.connect(database)) as other, other.cursor() as cursor:
                cursor.execute(f"KILL {thread}")
        write_cards(self, *arguments)

    monkeypatch.setattr(MysqlBooks, "insert_stock_card", die_once)

    assert walker.post(document.shadow_id) == "COMPLETED"
    assert len(killed) == 1
    books = builders.books(connection)
    assert (books.postings, books.journal_rows, books.card_rows, books.agree) == (1, 4, 2, True)


def test_h20_a_count_of_24_over_18_leaves_one_row_and_a_balance_of_24(walker: Walker, connection: Any) -> None:
    builders.movement(
        connection, "A", masuk="18", tanggal_wib=datetime(2026, 3, 1), created_at=NOON - timedelta(days=9)
    )
    document = builders.document(connection, [Line("A", "18", "24", "10")], diotorisasi_at=NOON)

    assert walker.post(document.shadow_id) == "COMPLETED"

    assert [(row["masuk"], row["keluar"], row["saldo"]) for row in card_rows(connection, "A")] == [
        (D(18), D(0), D(18)),
        (D(6), D(0), D(24)),
    ]


@pytest.mark.parametrize(
    ("decimal", "expected"), [pytest.param("id", D("3.75"), id="declared"), pytest.param(None, None, id="not declared")]
)
def test_h26_a_decimal_comma_in_a_file_posts_as_13_75_or_is_refused(
    walker: Walker, connection: Any, tmp_path: Path, decimal: Any, expected: D | None
) -> None:
    builders.warehouse(connection)
    file = tmp_path / "count.csv"
    file.write_text("kode_barang;qty_sistem;qty_fisik;harga_pokok\nA;10;13,75;1000\n", encoding="utf-8")
    header = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-03-10"}

    if expected is None:
        with pytest.raises(Exception, match="refused") as refused:
            read_file(file, Reading(header, decimal=decimal))
        (problem,) = refused.value.problems  # type: ignore[attr-defined]
        assert (problem.baris, problem.kolom) == (1, "qty_fisik")
        return
    found = read_file(file, Reading(header, decimal=decimal))
    job = submit_document(walker.database.transaction, found.submission, Authority("sari", "budi", 2))
    assert job.shadow_id is not None
    assert walker.post(job.shadow_id) == "COMPLETED"
    assert builders.card_of(connection, "SO-1") == [("A", expected, D(0), D("3750.00"))]


def test_h27_counted_in_january_and_authorised_in_february_has_one_posting_date_and_keeps_both(
    walker: Walker, connection: Any
) -> None:
    authorised = datetime(2026, 2, 1, 2, 0, tzinfo=UTC)  # 09:00 WIB
    document = builders.document(
        connection,
        tanggal_opname=date(2026, 1, 31),
        snapshot_at=datetime(2026, 1, 31, 10, 0, tzinfo=UTC),
        diotorisasi_at=authorised,
    )

    assert walker.post(document.shadow_id) == "COMPLETED"

    posted = builders.rows(
        connection, "SELECT tanggal_wib FROM jurnal UNION SELECT tanggal_wib FROM kartu_stok UNION"
        " SELECT tanggal_wib FROM transaksi"
    )  # fmt: skip
    assert [row["tanggal_wib"] for row in posted] == [datetime(2026, 2, 1, 9, 0)]
    (header,) = builders.rows(connection, "SELECT tanggal_opname, diotorisasi_at FROM so_headers_staging")
    assert header == {"tanggal_opname": date(2026, 1, 31), "diotorisasi_at": authorised.replace(tzinfo=None)}


def test_h28_a_value_date_five_days_ago_posts_the_snapshot_there_whatever_moved_since(
    walker: Walker, connection: Any
) -> None:
    snapshot = NOON - timedelta(days=5)
    builders.movement(
        connection, "A", masuk="10", tanggal_wib=datetime(2026, 3, 1), created_at=NOON - timedelta(days=9)
    )
    builders.movement(
        connection, "A", keluar="4", tanggal_wib=datetime(2026, 3, 8), created_at=NOON - timedelta(days=2)
    )
    document = builders.document(
        connection,
        [Line("A", "10", "12", "1500")],
        tanggal_posting=date(2026, 3, 5),
        snapshot_at=snapshot,
        diotorisasi_at=NOON,
    )

    assert walker.post(document.shadow_id) == "COMPLETED"

    (row,) = builders.rows(connection, "SELECT DISTINCT tanggal_wib FROM jurnal")
    assert row["tanggal_wib"] == datetime(2026, 3, 5, 12, 0)
    assert [row["saldo"] for row in card_rows(connection, "A")] == [D(10), D(12), D(8)]


def test_h43_two_lines_over_two_stock_rows_of_an_item_are_refused_by_name_and_never_multiply(
    walker: Walker, connection: Any
) -> None:
    for day in (1, 2):
        builders.movement(
            connection, "ITM-1", masuk="6", tanggal_wib=datetime(2026, 3, day), created_at=NOON - timedelta(days=5)
        )
    document = builders.document(connection, [Line("ITM-1", "12", "5"), Line("ITM-1", "12", "7")], diotorisasi_at=NOON)

    assert walker.post(document.shadow_id) == "FAILED"
    errors = builders.shadow(connection, document.shadow_id)["response"]["errors"]
    assert [error["baris"] for error in errors] == [1, 2]
    assert all("ITM-1" in error["pesan"] for error in errors)

    builders.write_lines(connection, document.header_id, [Line("ITM-1", "12", "12.5")])
    rerun(connection, document)
    assert walker.post(document.shadow_id) == "COMPLETED"
    assert builders.rows(connection, "SELECT COUNT(*) AS n FROM transaksi_values") == [{"n": 1}]


def test_h44_an_empty_warehouse_among_a_hundred_lines_is_refused_and_no_line_gets_lost_once_it_is_corrected(
    walker: Walker, connection: Any
) -> None:
    lines = [Line(f"I{i}", "10", "11", "5", gudang_kode="GD-B") for i in range(1, 101)]
    lines[6], lines[7] = Line("I7", "10", "11", "5", gudang_kode=""), Line("I8", "10", "11", "5", gudang_kode=None)
    document = builders.document(connection, lines)

    assert walker.post(document.shadow_id) == "FAILED"
    (error,) = builders.shadow(connection, document.shadow_id)["response"]["errors"]
    assert (error["baris"], error["kolom"]) == (7, "gudang_kode")

    lines[6] = Line("I7", "10", "11", "5", gudang_kode="GD-B")
    builders.write_lines(connection, document.header_id, lines)
    rerun(connection, document)
    assert walker.post(document.shadow_id) == "COMPLETED"
    found = builders.rows(
        connection, "SELECT gudang_kode, COUNT(*) AS n, SUM(nilai) AS nilai FROM kartu_stok GROUP BY gudang_kode"
    )
    assert {row["gudang_kode"]: (row["n"], row["nilai"]) for row in found} == {
        "GD-A": (1, D("5.00")),
        "GD-B": (99, D("495.00")),
    }


def test_a_posting_that_fails_at_its_end_is_corrected_and_run_again_as_often_as_it_takes(
    database: MysqlUrl, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each correction sends it back to its first step: three steps more each time, of the 60 of one attempt."""

    def unbalanced(rows: Any) -> D:
        raise journal.Unbalanced("not yet")

    document = builders.document(connection, [Line("A", "10", "11", "100")])
    with closing(Walker(database)) as walker:
        with monkeypatch.context() as broken:
            broken.setattr(journal, "check_balanced", unbalanced)
            assert walker.post(document.shadow_id) == "FAILED"
            for counted in range(12, 34):
                builders.write_lines(connection, document.header_id, [Line("A", "10", str(counted), "100")])
                rerun(connection, document)
                assert walker.post(document.shadow_id) == "FAILED"
                assert "not yet" in builders.shadow(connection, document.shadow_id)["error"]
        rerun(connection, document)
        assert walker.post(document.shadow_id) == "COMPLETED"

    (run,) = builders.rows(connection, "SELECT transitions FROM workflow_runs")
    assert run["transitions"] > 60
    assert builders.books(connection).agree
