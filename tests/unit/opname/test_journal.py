"""The four journal rows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from everest.opname.journal import Accounts, JournalRow, Unbalanced, check_balanced, journal_rows
from tests.unit.opname.tables import ACCOUNTS, written


def test_surplus_and_shortage_are_posted_gross_in_four_rows() -> None:
    rows = journal_rows("SO-1", Decimal("3000.00"), Decimal("5001.00"), ACCOUNTS)

    assert written(rows) == [
        "1 Dr 1010030030 3,000.00",
        "2 Cr 7010150 3,000.00",
        "3 Dr 7020020 5,001.00",
        "4 Cr 1010030030 5,001.00",
    ]
    assert check_balanced(rows) == Decimal("8001.00")
    assert all("SO-1" in row.keterangan for row in rows)


def test_surplus_alone_has_rows_1_and_2() -> None:
    rows = journal_rows("SO-1", Decimal("0.01"), Decimal(0), ACCOUNTS)

    assert written(rows) == ["1 Dr 1010030030 0.01", "2 Cr 7010150 0.01"]


def test_shortage_alone_has_rows_3_and_4() -> None:
    rows = journal_rows("SO-1", Decimal(0), Decimal("0.01"), ACCOUNTS)

    assert written(rows) == ["3 Dr 7020020 0.01", "4 Cr 1010030030 0.01"]


def test_no_value_has_no_rows_h09() -> None:
    assert journal_rows("SO-1", Decimal("0.00"), Decimal("0.00"), ACCOUNTS) == ()


def test_a_warehouse_with_its_own_accounts_posts_to_them() -> None:
    own = Accounts(persediaan="1010030099", laba_selisih="7010199", rugi_selisih="7020099")

    rows = journal_rows("SO-1", Decimal(1), Decimal(2), own)

    assert [row.kode_akun for row in rows] == ["1010030099", "7010199", "7020099", "1010030099"]


@pytest.mark.parametrize(
    ("surplus", "shortage"), [("-1", "0"), ("0", "-1"), ("0.001", "0"), ("NaN", "0"), ("1E30", "0")]
)
def test_a_sum_that_is_not_an_amount_is_refused(surplus: str, shortage: str) -> None:
    with pytest.raises(ValueError):
        journal_rows("SO-1", Decimal(surplus), Decimal(shortage), ACCOUNTS)


@pytest.mark.parametrize(("debet", "kredit"), [("1", "1"), ("0", "0"), ("-1", "0"), ("0", "-1"), ("1", "-1")])
def test_a_row_that_is_not_one_sided_cannot_be_built(debet: str, kredit: str) -> None:
    with pytest.raises(Unbalanced):
        JournalRow(1, "1010030030", "", Decimal(debet), Decimal(kredit))


def test_rows_a_cent_apart_are_unbalanced_however_large_they_are() -> None:
    debit = JournalRow(1, "1010030030", "", Decimal("9999999999999999999999.99"), Decimal(0))
    credit = JournalRow(2, "7010150", "", Decimal(0), Decimal("9999999999999999999999.98"))

    with pytest.raises(Unbalanced):
        check_balanced([debit, credit])
