"""Documents through the three steps on a real database: what lands in the books, and what is refused."""

# ruff: noqa: E501 - tables: a case is a line
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pytest

from everest.intake import submission
from everest.intake.replace import replace
from tests import builders
from tests.builders import Line
from tests.integration.opname.posting import NOON, post
from tests.integration.opname.walk import Walker


def test_the_example_of_the_posting_rules(walker: Walker, connection: Any) -> None:
    row, nota = post(walker, connection, *builders.EXAMPLE)

    assert row["worker_status"] == "COMPLETED"
    assert row["response"]["total_debet"] == row["response"]["total_kredit"] == "8001.00"
    assert row["response"]["baris_selisih"] == 2
    assert row["response"] | {"status": "success", "code": 200} == row["response"]
    assert builders.journal_of(connection, nota) == [
        (1, "1010030030", D("3000.00"), D("0.00")),
        (2, "7010150", D("0.00"), D("3000.00")),
        (3, "7020020", D("5001.00"), D("0.00")),
        (4, "1010030030", D("0.00"), D("5001.00")),
    ]
    assert builders.card_of(connection, nota) == [
        ("BRG-A", D("2"), D("0"), D("3000.00")),
        ("BRG-B", D("0"), D("2"), D("-5001.00")),
    ]
    assert builders.books(connection).agree


@pytest.mark.parametrize(
    ("line", "journal", "card"),
    [
        pytest.param(Line("B", "300", "0", "1250"), [("7020020", "375000.00"), ("1010030030", "-375000.00")], "-375000.00", id="H07 counted as zero"),
        pytest.param(Line("B", "0", "0", "500"), [], None, id="H10 nothing there, stale value elsewhere"),
        pytest.param(Line("B", "10", "10.01", "0.10"), [], "0.00", id="H15 a value that rounds to nothing"),
        pytest.param(Line("B", "0", "1000", "0.004"), [("1010030030", "4.00"), ("7010150", "-4.00")], "4.00", id="H16 rounded after multiplying"),
        pytest.param(Line("B", "40", "0", "0.049"), [("7020020", "1.96"), ("1010030030", "-1.96")], "-1.96", id="H17"),
        pytest.param(Line("B", "18", "24", "10"), [("1010030030", "60.00"), ("7010150", "-60.00")], "60.00", id="H20 one row of +6"),
        pytest.param(Line("B", "-2000", "0", "15"), [("1010030030", "30000.00"), ("7010150", "-30000.00")], "30000.00", id="H29 negative system stock"),
        pytest.param(Line("B", "0", "1", "9007199254740993.1234"), [("1010030030", "9007199254740993.12"), ("7010150", "-9007199254740993.12")], "9007199254740993.12", id="H42 beyond a float"),
    ],
)  # fmt: skip
def test_one_line_lands_exactly(
    walker: Walker, connection: Any, line: Line, journal: list[tuple[str, str]], card: str | None
) -> None:
    row, nota = post(walker, connection, line)

    assert row["worker_status"] == "COMPLETED"
    posted = [(akun, debet - kredit) for _, akun, debet, kredit in builders.journal_of(connection, nota)]
    assert posted == [(akun, D(amount)) for akun, amount in journal]
    assert [value for *_, value in builders.card_of(connection, nota)] == ([] if card is None else [D(card)])
    assert builders.books(connection).agree


def test_h09_no_variance_completes_without_rows(walker: Walker, connection: Any) -> None:
    row, nota = post(walker, connection, Line("A", "3", "3"), Line("B", "5", "5"))

    assert (row["worker_status"], row["response"]["message"]) == ("COMPLETED", "tidak ada selisih")
    assert builders.journal_of(connection, nota) == [] == builders.card_of(connection, nota)
    assert builders.books(connection).postings == 1


def test_h06_lots_are_lines_of_their_own_and_h45_codes_survive(walker: Walker, connection: Any) -> None:
    codes = ["00123", "8991234567890123456", "NA", "1e5"]
    row, nota = post(walker, connection, *(Line(code, lot=lot) for code in codes for lot in ("L1", "L2")))

    assert row["worker_status"] == "COMPLETED"
    assert [code for code, *_ in builders.card_of(connection, nota)] == [code for code in codes for _ in "12"]


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        pytest.param([Line("A", "12", "5"), Line("A", "12", "7")], {(1, "kode_barang"), (2, "kode_barang")}, id="H05 the same item twice"),
        pytest.param([Line("A", qty_fisik=None), Line("B"), Line("C", qty_fisik=None)], {(1, "qty_fisik"), (3, "qty_fisik")}, id="H08 not counted is not zero"),
        pytest.param([Line("A"), Line("B", harga_pokok=None)], {(2, "harga_pokok")}, id="H11 no cost"),
        pytest.param([Line("A", gudang_kode=""), Line("B", gudang_kode=None)], {(1, "gudang_kode")}, id="H44 an empty warehouse"),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused_by_line_and_column(
    walker: Walker, connection: Any, lines: list[Line], problems: set[tuple[int, str]]
) -> None:
    row, _ = post(walker, connection, *lines)

    assert (row["worker_status"], row["error_code"], row["response"]["code"]) == ("FAILED", 422, 422)
    assert {(error["baris"], error["kolom"]) for error in row["response"]["errors"]} == problems
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_h02_37_mistakes_in_20000_lines_are_all_named_and_the_replaced_document_posts(
    walker: Walker, connection: Any
) -> None:
    good = [Line(f"I{i}", "10", "11", "100", gudang_kode=f"W{i % 500}") for i in range(20_000)]
    lines = list(good)
    wrong: dict[int, Line] = {}
    for i in range(10):
        wrong[i * 100] = Line(f"I{i * 100}", "1", None, "100", gudang_kode=f"W{i}")
        wrong[i * 100 + 1] = Line(f"I{i * 100 + 1}", "1", "-1", "100", gudang_kode=f"W{i}")
        wrong[i * 100 + 2] = Line(f"I{i * 100 + 2}", "1", "2", None, gudang_kode=f"W{i}")
    for i in range(5):
        wrong[i * 100 + 3] = Line(f"I{i * 100 + 3}", "1", "2", "1", gudang_kode=f"NOWHERE{i}")
    wrong[19_999] = lines[19_998]  # a duplicate: both lines are named
    for i, line in wrong.items():
        lines[i] = line
    document = builders.document(connection, lines)
    connection.cursor().execute("DELETE FROM gudang WHERE gudang_kode LIKE 'NOWHERE%'")
    connection.commit()

    assert walker.post(document.shadow_id) == "FAILED"
    row = builders.shadow(connection, document.shadow_id)
    errors = row["response"]["errors"]
    assert {error["baris"] for error in errors} == {i + 1 for i in wrong} | {19_999}
    assert len(errors) == 37
    assert builders.books(connection) == builders.NOTHING_POSTED

    counted = tuple(
        submission.Line(
            line.kode_barang, gudang_kode=line.gudang_kode, qty_sistem=D(10), qty_fisik=D(11), harga_pokok=D(100)
        )
        for line in good
    )
    with walker.database.transaction() as tx:
        replace(
            tx,
            submission.Submission(document.nomer_nota, None, None, counted),
            submission.Authority("sari", "tono", 2),
            rerun=True,
        )
    assert walker.post(document.shadow_id) == "COMPLETED"
    books = builders.books(connection)
    assert (books.postings, books.card_rows, books.debet, books.agree) == (1, 20_000, D("2000000.00"), True)


def test_h18_a_thousand_random_costs_agree_to_the_cent(walker: Walker, connection: Any) -> None:
    lines = [
        Line(f"I{i}", str(i % 17), str(i % 13), f"{i * 7919 % 100003}.{i * 31 % 10000:04d}") for i in range(1, 1001)
    ]
    row, _ = post(walker, connection, *lines)

    assert row["worker_status"] == "COMPLETED"
    assert builders.books(connection).agree
    assert builders.books(connection).debet > 0


def test_h21_a_completed_document_does_not_change_when_its_staging_row_does(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    walker.post(document.shadow_id)
    before = builders.books(connection)
    builders.write_lines(connection, document.header_id, [Line("BRG-A", "10", "99", "9999")])
    second = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)

    walker.post(second)

    assert builders.books(connection) == before
    row = builders.shadow(connection, second)
    assert row["worker_status"] == "COMPLETED"
    assert row["response"]["total_debet"] == "8001.00"


def test_h23_a_closed_month_refuses_its_last_second_and_not_a_later_day(walker: Walker, connection: Any) -> None:
    builders.period(connection, "2026-01", "CLOSED")
    last = datetime(2026, 1, 31, 16, 59, 59, tzinfo=UTC)  # 23:59:59 WIB

    refused, _ = post(walker, connection, Line("A"), diotorisasi_at=last)
    posted, nota = post(walker, connection, Line("B"), diotorisasi_at=last + timedelta(seconds=1))

    assert (refused["worker_status"], refused["error_code"]) == ("FAILED", 423)
    assert posted["worker_status"] == "COMPLETED"
    (row,) = builders.rows(connection, "SELECT DISTINCT tanggal_wib FROM jurnal WHERE nomer_nota = %s", nota)
    assert row["tanggal_wib"] == datetime(2026, 2, 1, 0, 0, 0)


def test_h22_a_month_that_closes_between_the_steps_posts_nothing(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, diotorisasi_at=NOON)

    def close_before_posting(step: str) -> None:
        if step == "post_jurnal":
            builders.period(connection, "2026-03", "CLOSED")

    assert walker.post(document.shadow_id, close_before_posting) == "FAILED"
    assert builders.shadow(connection, document.shadow_id)["error_code"] == 423
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_h12_a_later_movement_is_daily_business_and_the_card_adds_up(walker: Walker, connection: Any) -> None:
    before, after = NOON - timedelta(days=5), NOON + timedelta(hours=1)
    builders.warehouse(connection)
    builders.movement(connection, "A", masuk="15000", tanggal_wib=datetime(2026, 3, 1), created_at=before)
    builders.movement(connection, "A", keluar="2000", tanggal_wib=datetime(2026, 3, 11), created_at=after)

    row, _ = post(
        walker,
        connection,
        Line("A", "15000", "13000", "10"),
        diotorisasi_at=NOON,
        snapshot_at=NOON - timedelta(hours=2),
    )

    assert row["worker_status"] == "COMPLETED"
    card = builders.rows(connection, "SELECT saldo FROM v_kartu_stok WHERE kode_barang = 'A' ORDER BY tanggal_wib, id")
    assert [line["saldo"] for line in card] == [D(15000), D(13000), D(11000)]


def test_a_count_that_another_opname_overtook_is_stale_and_refused(walker: Walker, connection: Any) -> None:
    builders.warehouse(connection)
    columns = {"nomer_nota": "SO-OTHER", "sumber": "OPNAME", "tanggal_wib": datetime(2026, 3, 10, 20)}
    builders.movement(connection, "A", masuk="1", created_at=NOON + timedelta(hours=1), **columns)

    row, _ = post(walker, connection, Line("A"), diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON)

    assert (row["worker_status"], row["error_code"]) == ("FAILED", 409)
    assert "SO-OTHER" in row["response"]["errors"][0]["pesan"]


def test_lines_corrected_after_step_one_are_the_lines_that_are_posted(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A", "10", "12", "1500")])
    changes = iter([[Line("A", "10", "11", "1500")]])

    def correct_once(step: str) -> None:
        if step == "post_jurnal":
            for lines in changes:
                builders.write_lines(connection, document.header_id, lines)

    assert walker.post(document.shadow_id, correct_once) == "COMPLETED"
    assert builders.card_of(connection, document.nomer_nota) == [("A", D(1), D(0), D("1500.00"))]
    row = builders.shadow(connection, document.shadow_id)
    assert row["n"] == 2, "a jump back is a new DAG run"
    assert row["dag_run_id"].endswith("__2")


def test_a_missing_document_is_a_404(walker: Walker, connection: Any) -> None:
    shadow_id = builders.shadow_row(connection, 5, "SO-5")

    assert walker.post(shadow_id) == "FAILED"
    assert builders.shadow(connection, shadow_id)["error_code"] == 404


def test_a_document_that_nobody_authorised_is_refused_with_its_other_problems(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A", qty_fisik=None)], otorisasi_level=1, diotorisasi_oleh=None)
    connection.cursor().execute("UPDATE so_headers_staging SET diotorisasi_at = NULL")
    connection.commit()

    assert walker.post(document.shadow_id) == "FAILED"
    row = builders.shadow(connection, document.shadow_id)
    assert row["error_code"] == 422
    kolom = {error["kolom"] for error in row["response"]["errors"]}
    assert {"otorisasi_level", "diotorisasi_oleh", "diotorisasi_at", "qty_fisik"} <= kolom


def test_every_attempt_is_kept_with_what_was_wrong(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A", harga_pokok=None)])
    walker.post(document.shadow_id)

    (attempt,) = builders.rows(connection, "SELECT * FROM posting_attempts")
    assert (attempt["transaksi_id"], attempt["outcome"], attempt["code"]) == (document.transaksi_id, "FAILED", 422)
    assert "harga" in attempt["problems"]


def test_another_program_may_leave_open_when_it_sent_a_document(walker: Walker, connection: Any) -> None:
    """Then its snapshot is when it came, and its count posts."""
    document = builders.document(connection)
    columns = "nomer_nota, gudang_kode, tanggal_opname, otorisasi_level, diotorisasi_oleh, diotorisasi_at"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO so_headers_staging (transaksi_id, snapshot_at, created_at, " + columns + ")"
            " SELECT 77, NULL, NULL, 'SO-KAPAN', "
            + columns.partition(", ")[2]
            + " FROM so_headers_staging WHERE id = %s",
            (document.header_id,),
        )
        header_id = cursor.lastrowid
    builders.write_lines(connection, header_id, builders.EXAMPLE)
    shadow_id = builders.insert(connection, "rabbit_publish_shadow", transaksi_id=77, nomer_nota="SO-KAPAN")
    connection.commit()

    assert walker.post(shadow_id) == "COMPLETED"
    (header,) = builders.rows(connection, "SELECT created_at FROM so_headers_staging WHERE id = %s", header_id)
    assert abs(header["created_at"] - datetime.now(UTC).replace(tzinfo=None)) < timedelta(hours=1)
