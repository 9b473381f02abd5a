"""What one statement writes for a whole document: the same rows the domain computes, of the lines that were checked."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from MySQLdb.cursors import DictCursor

from everest.opname import document, stock_card, variance
from everest.store.books import MysqlBooks
from everest.store.database import load_queries
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

LINES = (
    Line("BRG-A", "10", "12.5", "1500.00"),
    Line("BRG-B", "7", "5", "2500.50", lot="L1", gudang_kode="GD-B"),
    Line("BRG-C", "3", "3", "100.00"),
    Line("BRG-D", "-4", "0", "0.333333"),
    Line("BRG-E", "1", "1.0001", "0.01"),
    Line("BRG-F", "1", "0.9999", "0.01", lot=""),
)


def test_the_stock_card_in_the_database_is_the_one_the_domain_computes(walker: Walker, connection: Any) -> None:
    """One statement makes it of the stored lines: its arithmetic must be `card_rows`, row by row and in that order."""
    posted = builders.document(connection, LINES)

    assert walker.post(posted.shadow_id) == "COMPLETED"

    with walker.database.transaction() as tx:
        header = tx.books.document(posted.transaksi_id)
        assert header is not None
        lines = document.with_header_warehouse(header, tx.books.lines(header))
    expected = stock_card.card_rows(variance.compute_variance(lines).frame)
    columns = ", ".join(stock_card.CardRow._fields)
    stored = builders.rows(connection, f"SELECT {columns} FROM kartu_stok WHERE posting_id IS NOT NULL ORDER BY id")
    assert [tuple(row.values()) for row in stored] == [tuple(row) for row in expected]
    assert len(expected) == 5
    assert {row["nilai"] for row in stored} >= {Decimal("0.00")}


def test_a_stored_line_that_was_changed_is_noticed_though_every_sum_is_the_same(
    walker: Walker, connection: Any
) -> None:
    posted = builders.document(connection, [Line("A", "10", "12", "5"), Line("B", "10", "12", "5")])
    ticket = walker.claim(posted.shadow_id)
    walker.step(ticket, "compute_variance")
    walker.step(ticket, "clean_duplicate_notas")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE transaksi_values SET kode_barang = 'B' WHERE baris = 1")
    connection.commit()

    walker.step(ticket, "post_jurnal")

    assert builders.books(connection) == builders.NOTHING_POSTED
    assert builders.shadow(connection, posted.shadow_id)["current_step"] == "compute_variance"
    assert walker.post(posted.shadow_id) == "COMPLETED"
    assert [kode for kode, *_ in builders.card_of(connection, posted.nomer_nota)] == ["A", "B"]


def test_a_line_changed_between_reading_and_writing_is_computed_again(
    walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 1 joins what it computed to the lines as they stand when it writes; another program may just have changed
    one. What is posted is what stands there in the end, never a mixture."""
    lines = [Line("A", "10", "12", "5"), Line("B", "10", "9", "7")]
    posted = builders.document(connection, lines)
    write, changed = MysqlBooks.write_values, []

    def change_first(self: MysqlBooks, *arguments: Any) -> list[str]:
        if not changed:
            changed.append(True)
            builders.write_lines(connection, posted.header_id, [replace(lines[0], qty_fisik="13"), lines[1]])
        return write(self, *arguments)

    monkeypatch.setattr(MysqlBooks, "write_values", change_first)

    assert Walker.post(walker, posted.shadow_id) == "COMPLETED"  # what no preview can foresee

    assert builders.card_of(connection, posted.nomer_nota) == [
        ("A", Decimal("3.0000"), Decimal("0.0000"), Decimal("15.00")),
        ("B", Decimal("0.0000"), Decimal("1.0000"), Decimal("-7.00")),
    ]
    (values,) = builders.rows(connection, "SELECT SUM(nilai_debet) AS naik FROM transaksi_values WHERE baris = 1")
    assert values["naik"] == Decimal("15.00")


def test_changing_a_line_and_back_again_does_not_leave_the_passing_value(
    walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of the lines is the same before and after; the stored rows are compared one by one as well."""
    lines = [Line("A", "10", "12", "5")]
    posted = builders.document(connection, lines)
    ticket = walker.claim(posted.shadow_id)
    write = MysqlBooks.write_values

    def change_first(self: MysqlBooks, *arguments: Any) -> list[str]:
        builders.write_lines(connection, posted.header_id, [replace(lines[0], kode_barang="Z")])
        return write(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(MysqlBooks, "write_values", change_first)
        walker.step(ticket, "compute_variance")
    builders.write_lines(connection, posted.header_id, lines)
    walker.step(ticket, "clean_duplicate_notas")

    walker.step(ticket, "post_jurnal")

    assert builders.books(connection) == builders.NOTHING_POSTED
    assert walker.post(posted.shadow_id) == "COMPLETED"
    assert [kode for kode, *_ in builders.card_of(connection, posted.nomer_nota)] == ["A"]


def test_a_movement_of_an_item_that_was_not_counted_is_passed_by_in_the_index(connection: Any) -> None:
    """Its row is not fetched to be thrown away: in a night of counts there are a hundred thousand of them."""
    counted = builders.document(connection, LINES)
    now = datetime(2026, 3, 10, 5, 0)
    given = {
        "header_id": counted.header_id,
        "codes": ["GD-A", "GD-B"],
        **dict.fromkeys(("snapshot_utc", "snapshot_foreign", "foreign_second", "entered_from", "earliest"), now),
    }
    connection.commit()

    with connection.cursor(DictCursor) as cursor:
        cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {load_queries('books').movements_since.sql}", given)
        plan = {row["table"]: row for row in cursor.fetchall()}

    assert plan["entered"]["key"] == "ix_kartu_stok_masuk"
    assert "Using index" in plan["entered"]["Extra"].split("; ")
