"""What went wrong for people who do this job with other systems, as far as the domain decides it.

The numbers are those of the public bug reports that the cases come from. Each is told in three parts: what was counted,
what the journal says, what the stock card says.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from everest.opname.amounts import parse_decimal
from everest.opname.document import posting_instant, validate, with_header_warehouse
from everest.opname.journal import check_balanced, journal_rows
from everest.opname.stock_card import CardRow, card_rows, card_totals, check_agreement
from everest.opname.variance import compute_variance, totals
from tests.unit.opname.tables import ACCOUNTS, frame, header, lines, references, said, written


def refusals(*rows: str) -> list[tuple[int | None, str]]:
    return said(validate(header(), lines(*rows), references()))


def posted(*rows: str) -> tuple[list[str], list[CardRow]]:
    """Journal and stock card of a document that must be valid."""
    counted = with_header_warehouse(header(), lines(*rows))
    assert validate(header(), counted, references()) == []
    result = compute_variance(counted)
    assert result.problems == ()
    journal = journal_rows("SO-1", *totals(result.frame), ACCOUNTS)
    cards = card_rows(result.frame)
    check_agreement(journal, card_totals(card.nilai for card in cards), ACCOUNTS.persediaan)
    return written(journal), cards


def test_h05_two_counts_of_one_item_are_refused_with_both_lines_and_neither_added_nor_dropped() -> None:
    found = validate(header(), lines("ITM-1 | | GD-A | 12 | 5 | 100", "ITM-1 | | GD-A | 12 | 7 | 100"), references())

    assert said(found) == [(1, "kode_barang"), (2, "kode_barang")]
    assert all("baris 1" in problem.pesan and "baris 2" in problem.pesan for problem in found)


def test_h06_two_lots_of_one_item_are_two_lines_and_the_same_lot_twice_is_refused() -> None:
    _, cards = posted("ITM-1 | L1 | GD-A | 12 | 5 | 100", "ITM-1 | L2 | GD-A | 12 | 7 | 100")

    assert [(card.lot, card.keluar) for card in cards] == [("L1", Decimal(7)), ("L2", Decimal(5))]
    assert refusals("ITM-1 | L1 | GD-A | 12 | 5 | 100", "ITM-1 | L1 | GD-A | 12 | 7 | 100") == [
        (1, "kode_barang"),
        (2, "kode_barang"),
    ]


def test_h07_zero_is_a_count() -> None:
    journal, cards = posted("A | | | 300 | 0 | 1250")

    assert journal == ["3 Dr 7020020 375,000.00", "4 Cr 1010030030 375,000.00"]
    assert [card.keluar for card in cards] == [Decimal(300)]


def test_h08_what_was_not_counted_is_refused_by_line_and_never_posted_as_zero() -> None:
    counted = [f"ITM-{n} | | | 10 | 10 | 5" for n in range(1, 11)]
    for n in (2, 5, 6, 9):
        counted[n - 1] = f"ITM-{n} | | | 10 |  | 5"

    found = validate(header(), lines(*counted), references())

    assert said(found) == [(2, "qty_fisik"), (5, "qty_fisik"), (6, "qty_fisik"), (9, "qty_fisik")]
    assert all("belum dihitung" in problem.pesan for problem in found)
    with pytest.raises(ValueError, match="kosong"):
        parse_decimal("", decimal=None, precision=18, scale=4)


def test_h09_a_count_without_any_variance_posts_nothing_and_is_no_error() -> None:
    assert posted("A | | | 10 | 10.0000 | 1500", "B | | | 0.5 | 0.5 | ", "C | | | 7 | 7 | 0") == ([], [])


def test_h10_nothing_in_the_books_and_nothing_counted_writes_no_rows() -> None:
    assert posted("A | | | 0 | 0 | 500") == ([], [])


def test_h11_one_missing_cost_among_fifty_refuses_the_document_and_names_the_line() -> None:
    counted = [f"ITM-{n} | | | 10 | 11 | 5" for n in range(1, 51)]
    counted[36] = "ITM-37 | | | 10 | 11 | "

    (problem,) = validate(header(), lines(*counted), references())

    assert (problem.baris, problem.kolom) == (37, "harga_pokok")
    assert "harga kosong" in problem.pesan


def test_h15_a_value_below_half_a_cent_moves_stock_and_no_money() -> None:
    journal, cards = posted("A | | | 0 | 0.01 | 0.10")

    assert journal == []
    assert [(card.masuk, str(card.nilai)) for card in cards] == [(Decimal("0.01"), "0.00")]


def test_h16_a_cost_of_less_than_a_cent_is_not_rounded_before_multiplying() -> None:
    journal, _ = posted("A | | | 0 | 1000 | 0.004")

    assert journal == ["1 Dr 1010030030 4.00", "2 Cr 7010150 4.00"]


def test_h17_forty_times_0_049_is_1_96() -> None:
    journal, _ = posted("A | | | 40 | 0 | 0.049")

    assert journal == ["3 Dr 7020020 1.96", "4 Cr 1010030030 1.96"]


def test_h18_a_thousand_odd_costs_agree_with_the_journal_to_the_cent() -> None:
    chance = random.Random(18)
    rows = frame(
        [
            (f"ITM-{n}", "", "GD-A", Decimal(chance.randrange(100)), Decimal(chance.randrange(100)), cost)
            for n in range(1000)
            for cost in [Decimal(chance.randrange(1, 10**8)).scaleb(-4)]
        ]
    )

    result = compute_variance(rows)
    journal = journal_rows("SO-1", *totals(result.frame), ACCOUNTS)
    cards = card_totals(card.nilai for card in card_rows(result.frame))

    inventory = [row for row in journal if row.kode_akun == ACCOUNTS.persediaan]
    assert [(row.debet, row.kredit) for row in inventory] == [(cards.masuk, 0), (0, cards.keluar)]
    assert check_balanced(journal) == cards.masuk + cards.keluar > 0


def test_h20_a_count_of_24_over_18_is_one_movement_of_6() -> None:
    _, cards = posted("A | | | 18 | 24 | 10")

    assert [(card.masuk, card.keluar) for card in cards] == [(Decimal(6), Decimal(0))]


def test_h26_a_decimal_comma_is_13_75_where_it_is_declared_and_refused_where_it_is_not() -> None:
    assert parse_decimal("13,75", decimal="id", precision=18, scale=4) == Decimal("13.75")
    for locale in ("en", None):
        with pytest.raises(ValueError):
            parse_decimal("13,75", decimal=locale, precision=18, scale=4)


def test_h27_counted_in_january_and_authorised_in_february_posts_once_at_the_authorisation() -> None:
    counted = header(
        tanggal_opname=date(2026, 1, 31),
        snapshot_at=datetime(2026, 1, 31, 10, 0, tzinfo=UTC),
        diotorisasi_at=datetime(2026, 2, 1, 2, 0, tzinfo=UTC),
    )

    assert posting_instant(counted) == datetime(2026, 2, 1, 9, 0)
    assert counted.tanggal_opname == date(2026, 1, 31)


def test_h28_a_posting_date_five_days_ago_is_kept_and_not_replaced_by_now() -> None:
    valued = header(
        tanggal_posting=date(2026, 8, 9),
        snapshot_at=datetime(2026, 8, 9, 3, 0, tzinfo=UTC),
        diotorisasi_at=datetime(2026, 8, 14, 9, 0, tzinfo=UTC),
    )

    assert posting_instant(valued) == datetime(2026, 8, 9, 10, 0)


def test_h29_negative_book_stock_is_counted_away() -> None:
    journal, cards = posted("A | | | -2000 | 0 | 15")

    assert journal == ["1 Dr 1010030030 30,000.00", "2 Cr 7010150 30,000.00"]
    assert [card.masuk for card in cards] == [Decimal(2000)]


def test_h42_sixteen_digits_of_money_are_exact() -> None:
    journal, _ = posted("A | | | 0 | 1 | 9007199254740993.1234")

    assert journal == ["1 Dr 1010030030 9,007,199,254,740,993.12", "2 Cr 7010150 9,007,199,254,740,993.12"]


def test_h43_rows_that_would_multiply_are_refused_by_item_and_a_line_stays_one_line() -> None:
    doubled = lines("ITM-1 | | | 12 | 5 | 100", "ITM-1 | | | 12 | 7 | 100")

    found = validate(header(), doubled, references())

    assert all("ITM-1" in problem.pesan for problem in found)
    assert len(found) == len(compute_variance(doubled).frame) == 2


def test_h44_an_empty_warehouse_is_refused_and_a_null_one_is_the_headers_so_no_line_gets_lost() -> None:
    counted = [f"ITM-{n} | | GD-A | 10 | 11 | 5" for n in range(1, 101)]
    counted[6] = "ITM-7 | | '' | 10 | 11 | 5"
    counted[7] = "ITM-8 | |  | 10 | 11 | 5"
    assert refusals(*counted) == [(7, "gudang_kode")]

    counted[6] = "ITM-7 | | GD-B | 10 | 11 | 5"
    _, cards = posted(*counted)

    assert sum(card.nilai for card in cards) == Decimal("500.00")
    assert {card.gudang_kode for card in cards} == {"GD-A", "GD-B"}
    assert cards[7].gudang_kode == "GD-A"


def test_h45_codes_stay_text() -> None:
    codes = ["00123", "8991234567890123456", "NA", "1e5"]

    _, cards = posted(*(f"{code} | | | 1 | 2 | 5" for code in codes))

    assert [card.kode_barang for card in cards] == codes
