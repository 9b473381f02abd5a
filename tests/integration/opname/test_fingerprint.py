"""The last step reads no line of a document that nobody touched: the database says whether it is the same. What that
must not cost: a changed line or value is noticed as surely as by reading them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everest.opname import document, fingerprint, variance
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.books import MysqlBooks
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.unit.opname.tables import header

LINES = (Line("A", "10", "12", "1500.00"), Line("B", "7", "5", "2500.50", lot="L1"), Line("C", "3", "3", None))
HEADER_ID = 77

# Everything a VARCHAR may hold, with what parts our fields, and what another server might take for an end or an escape.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", " ", "A ", "\t", "A\tB", "\n", "A\n2\tB", "\\", "'", "%s", ":x", "\0", "é", "中", "👍🏽", "a\x1f"]
)
CLEAN = TEXTS.map(lambda text: text.replace("\t", "").replace("\n", ""))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal | None]:
    """A column's values, small as often as huge, written in any scale it holds."""
    sizes = st.sampled_from([1, 3, digits - scale, digits])
    whole = sizes.flatmap(lambda size: st.integers(-(10**size) + 1, 10**size - 1))
    exact = whole.map(lambda number: Decimal(number).scaleb(-scale))
    return st.none() | exact | exact.map(Decimal.normalize)


def rows(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    quantity, cost = decimals(18, 4), decimals(24, 6)
    row = st.tuples(st.none() | texts, st.none() | texts, st.none() | texts, quantity, quantity, cost)
    numbers = st.integers(0, 3 * fingerprint.LINES_PER_BLOCK)
    numbered = st.dictionaries(numbers | st.integers(1, 4), row, min_size=1, max_size=6)
    return numbered.map(lambda found: [(number, *values) for number, values in found.items()])


def stored(conn: Any, lines: list[tuple[Any, ...]]) -> tuple[str | None, str]:
    """The digest that the database makes of these lines, and ours of the frame that is read from there."""
    columns = "header_id, baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok"
    with conn.cursor() as cursor:
        cursor.execute("DELETE FROM so_details_staging WHERE header_id = %s", (HEADER_ID,))
        cursor.executemany(
            f"INSERT INTO so_details_staging ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [(HEADER_ID, *line) for line in lines],
        )
    books = MysqlBooks(conn, None)  # type: ignore[arg-type]
    of = header(header_id=HEADER_ID)
    return books.lines_digest(of), fingerprint.lines_digest(books.lines(of), of.gudang_kode)


@pytest.fixture
def conn(database: MysqlUrl) -> Any:
    with closing(store.connect(database)) as conn:
        yield conn


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows(TEXTS))
def test_the_database_makes_the_digest_that_we_make_or_one_that_is_nobodys(
    conn: Any, lines: list[tuple[Any, ...]]
) -> None:
    codes = [code for line in lines for code in line[1:4]]
    is_plain = all(line[1] is not None for line in lines) and not any("\t" in c or "\n" in c for c in codes if c)

    theirs, ours = stored(conn, lines)

    assert (theirs == ours) == is_plain


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows(TEXTS), st.data())
def test_whatever_is_changed_in_a_line_is_another_digest(
    conn: Any, lines: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    _, before = stored(conn, lines)
    place = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(1, 6))
    one = list(lines[place])
    other = data.draw(st.none() | (TEXTS if column < 4 else decimals(18, 4)))
    same = (one[column] or "", other or "") if column == 2 else (one[column], other)
    if column == 3:
        same = tuple("GD-A" if code is None else code for code in same)
    if same[0] == same[1]:
        return
    one[column] = other

    after, ours = stored(conn, [*lines[:place], tuple(one), *lines[place + 1 :]])

    assert before not in (after, ours)


def test_a_code_that_imitates_a_line_cannot_stand_in_for_one_without_a_code(conn: Any) -> None:
    one = Decimal(1)
    honest = [(1, "A", "", None, one, one, one), (2, "B", "", None, one, one, one)]
    imitation = "A\t\tGD-A\t1.0000\t1.0000\t1.000000\n2\tB"

    _, ours = stored(conn, honest)

    assert stored(conn, [(1, imitation, "", None, one, one, one), (2, None, "", None, one, one, one)])[0] is None
    assert ours not in stored(conn, [(1, imitation, "", None, one, one, one), (3, "C", "", None, one, one, one)])


def test_a_document_of_several_blocks_has_one_digest_on_both_sides(conn: Any) -> None:
    edges = [0, 1, 4_999, 5_000, 5_001, 9_999, 10_000, 10_001, 100_000]
    assert fingerprint.LINES_PER_BLOCK in edges
    lines = [(n, f"B-{n}", "", None, Decimal(n), Decimal(n), None) for n in reversed(edges)]

    theirs, ours = stored(conn, lines)

    assert theirs == ours
    assert ours not in stored(conn, lines[:-1])


def test_the_computed_lines_have_one_digest_on_both_sides(walker: Walker, connection: Any) -> None:
    posted = builders.document(connection, LINES)
    walker.step(walker.claim(posted.shadow_id), "compute_variance")

    with walker.database.transaction() as tx:
        found = tx.books.document(posted.transaksi_id)
        assert found is not None
        lines = document.with_header_warehouse(found, tx.books.lines(found))
        values = variance.compute_variance(lines).frame
        assert tx.books.hold_values(found) == fingerprint.values_digest(values)
        assert tx.books.values_match(found, values)


def test_the_last_step_reads_no_line_of_an_untouched_document(
    walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted = builders.document(connection, LINES)

    def read_no_more(step: str) -> None:
        if step == "clean_duplicate_notas":
            monkeypatch.setattr(MysqlBooks, "lines", None)
            monkeypatch.setattr(MysqlBooks, "values_match", None)

    assert walker.post(posted.shadow_id, read_no_more) == "COMPLETED"


@pytest.mark.parametrize("method", ["lines_digest", "hold_values"])
@pytest.mark.parametrize("answer", [None, "0" * 64])
def test_where_the_database_does_not_say_the_same_the_rows_are_read_and_decide(
    walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch, method: str, answer: str | None
) -> None:
    """Columns of an older table with more decimals, a text cut short: another digest, and the same document."""
    posted = builders.document(connection, LINES)
    monkeypatch.setattr(MysqlBooks, method, lambda self, header: answer)

    walker.dag_run(walker.claim(posted.shadow_id))

    assert builders.shadow(connection, posted.shadow_id)["worker_status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("around", "ends"),
    [
        ("UPDATE gudang SET aktif = 0 WHERE gudang_kode = 'GD-B'", "422 B"),
        ("UPDATE akun SET aktif = 0 WHERE kode_akun = '7010150'", "422 akun laba"),
        ("REPLACE INTO kebijakan_selisih VALUES ('*', 8000.99, NULL)", "WAITING"),
        ("REPLACE INTO kebijakan_selisih VALUES ('*', NULL, 5000.99)", "WAITING"),
        ("REPLACE INTO kebijakan_selisih VALUES ('*', 8001, 5001)", "COMPLETED"),
    ],
)
def test_what_changed_around_an_untouched_document_is_told_with_its_line(
    walker: Walker, connection: Any, around: str, ends: str
) -> None:
    posted = builders.document(connection, [*LINES, Line("E", "1", "1", "5", gudang_kode="GD-B")])
    changes = iter([around])

    def change_once(step: str) -> None:
        if step == "post_jurnal":
            with connection.cursor() as cursor:
                for change in changes:
                    cursor.execute(change)
            connection.commit()

    status = walker.post(posted.shadow_id, change_once)

    row = builders.shadow(connection, posted.shadow_id)
    if ends.startswith("422"):
        (error,) = row["response"]["errors"]
        assert (status, row["response"]["code"]) == ("FAILED", 422)
        assert error["baris"] == (4 if ends == "422 B" else None)
    else:
        assert status == ends


CHANGES: dict[str, Callable[[list[Line]], list[Line]]] = {
    "changed": lambda lines: [replace(lines[0], qty_fisik="12.0001"), *lines[1:]],
    "another code": lambda lines: [replace(lines[0], kode_barang="a"), *lines[1:]],
    "a space more": lambda lines: [lines[0], replace(lines[1], lot="L1 x"), lines[2]],
    "another warehouse": lambda lines: [lines[0], lines[1], replace(lines[2], gudang_kode="GD-B")],
    "a cost where there was none": lambda lines: [*lines[:2], replace(lines[2], harga_pokok="1")],
    "added": lambda lines: [*lines, Line("D", "1", "1", "5")],
    "removed": lambda lines: lines[:2],
    "in another order": lambda lines: [lines[1], lines[0], lines[2]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_lines_that_were_changed_after_step_one_are_computed_again(
    walker: Walker, connection: Any, change: Callable[[list[Line]], list[Line]]
) -> None:
    posted = builders.document(connection, LINES)
    builders.warehouse(connection, "GD-B")
    ticket = walker.claim(posted.shadow_id)
    walker.step(ticket, "compute_variance")
    walker.step(ticket, "clean_duplicate_notas")
    builders.write_lines(connection, posted.header_id, change(list(LINES)))

    walker.step(ticket, "post_jurnal")

    assert builders.books(connection) == builders.NOTHING_POSTED
    assert builders.shadow(connection, posted.shadow_id)["current_step"] == "compute_variance"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE transaksi_values SET qty_sistem = qty_sistem + 1 WHERE baris = 3",
        "UPDATE transaksi_values SET qty_fisik = NULL WHERE baris = 3",
        "UPDATE transaksi_values SET harga_pokok = 0 WHERE baris = 3",
        "UPDATE transaksi_values SET selisih_qty = 1, qty_fisik = 4 WHERE baris = 3",
        "UPDATE transaksi_values SET lot = 'X' WHERE baris = 1",
        "UPDATE transaksi_values SET gudang_kode = 'GD-B' WHERE baris = 1",
        "UPDATE transaksi_values SET nilai_debet = nilai_debet + 0.01 WHERE baris = 1",
        "UPDATE transaksi_values SET nilai_kredit = nilai_kredit - 0.01 WHERE baris = 2",
        "UPDATE transaksi_values SET baris = 4 WHERE baris = 3",
        "UPDATE transaksi_values SET baris = 3 - baris + 10 WHERE baris < 3",
        "DELETE FROM transaksi_values WHERE baris = 3",
        "DELETE FROM transaksi_values",
    ],
)
def test_values_that_another_program_changed_are_written_again_and_not_posted(
    walker: Walker, connection: Any, change: str
) -> None:
    posted = builders.document(connection, LINES)
    ticket = walker.claim(posted.shadow_id)
    walker.step(ticket, "compute_variance")
    walker.step(ticket, "clean_duplicate_notas")
    with connection.cursor() as cursor:
        assert cursor.execute(change)
    connection.commit()

    walker.step(ticket, "post_jurnal")

    assert builders.books(connection) == builders.NOTHING_POSTED
    assert builders.shadow(connection, posted.shadow_id)["current_step"] == "compute_variance"
