"""Stock-card rows, and their agreement with the journal."""

from __future__ import annotations

from decimal import Decimal

import pytest

from everest.opname.journal import Unbalanced, journal_rows
from everest.opname.stock_card import CardTotals, card_rows, card_totals, check_agreement
from everest.opname.variance import compute_variance
from tests.unit.opname.tables import ACCOUNTS, lines


def test_a_line_moves_stock_in_or_out_and_a_line_without_variance_does_not() -> None:
    computed = compute_variance(
        lines(
            # kode | lot | gudang | sistem | fisik | harga
            "A     | L1  | GD-A   | 10     | 12    | 1500.00",
            "B     | ''  | GD-B   | 7      | 5     | 2500.50",
            "C     | ''  | GD-A   | 3      | 3     | 900",
            "D     | ''  | GD-A   | 3      | 3     |",
        )
    )

    assert card_rows(computed.frame) == [
        ("A", "L1", "GD-A", Decimal(2), Decimal(0), Decimal("1500.00"), Decimal("3000.00")),
        ("B", "", "GD-B", Decimal(0), Decimal(2), Decimal("2500.50"), Decimal("-5001.00")),
    ]


def test_positive_and_negative_values_are_summed_apart() -> None:
    totals = card_totals([Decimal("0.10"), Decimal("-0.30"), Decimal("0.00"), Decimal("2.00")])

    assert totals == CardTotals(Decimal("2.10"), Decimal("0.30"))


def test_a_journal_that_says_what_the_card_says_is_accepted() -> None:
    rows = journal_rows("SO-1", Decimal("2.10"), Decimal("0.30"), ACCOUNTS)

    check_agreement(rows, CardTotals(Decimal("2.10"), Decimal("0.30")), ACCOUNTS.persediaan)
    check_agreement((), card_totals([]), ACCOUNTS.persediaan)


@pytest.mark.parametrize(("masuk", "keluar"), [("2.11", "0.30"), ("2.10", "0.29"), ("0.30", "2.10"), ("1.80", "0.00")])
def test_a_journal_that_moves_inventory_otherwise_than_the_card_is_unbalanced(masuk: str, keluar: str) -> None:
    rows = journal_rows("SO-1", Decimal("2.10"), Decimal("0.30"), ACCOUNTS)

    with pytest.raises(Unbalanced):
        check_agreement(rows, CardTotals(Decimal(masuk), Decimal(keluar)), ACCOUNTS.persediaan)
