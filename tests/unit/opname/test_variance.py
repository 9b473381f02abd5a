"""Variance and value per line."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from everest.opname.document import validate
from everest.opname.variance import compute_variance, totals
from tests.unit.opname.tables import frame, header, lines, references, said

Row = tuple[str | None, str | None, str | None]


def text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)


def computed(*rows: str) -> list[Row]:
    """selisih_qty, nilai_debet, nilai_kredit of each line, as text."""
    result = compute_variance(lines(*rows)).frame
    values = result[["selisih_qty", "nilai_debet", "nilai_kredit"]].to_numpy().tolist()
    return [(text(selisih), text(debet), text(kredit)) for selisih, debet, kredit in values]


def test_the_example_of_the_posting_rules() -> None:
    assert computed(
        # kode | lot | gudang | sistem | fisik | harga
        "A     | ''  | GD-A   | 10     | 12    | 1500.00",
        "B     | ''  | GD-A   | 7      | 5     | 2500.50",
        "C     | ''  | GD-A   | 3      | 3     | 900",
    ) == [("2.0000", "3000.00", "0.00"), ("-2.0000", "0.00", "5001.00"), ("0.0000", "0.00", "0.00")]


def test_the_lines_stay_as_they_were_and_get_three_columns_more() -> None:
    given = lines("A | '' | GD-A | 10 | 12 | 1500.00")
    before = given.copy()

    result = compute_variance(given).frame

    pd.testing.assert_frame_equal(given, before)
    pd.testing.assert_frame_equal(result[given.columns], before)
    assert [*result.columns[len(given.columns) :]] == ["selisih_qty", "nilai_debet", "nilai_kredit"]


def test_a_frame_with_another_index_keeps_its_lines_together() -> None:
    given = lines("A | | | 1 | 2 | 10", "B | | | 2 | 1 | 20", "C | | | 1 | 4 | 30").iloc[[2, 0]]

    result = compute_variance(given).frame

    assert result[["kode_barang", "nilai_debet"]].to_numpy().tolist() == [["C", Decimal(90)], ["A", Decimal(10)]]


def test_a_shortage_that_rounds_to_nothing_is_zero_on_both_sides_and_not_minus_zero() -> None:
    assert computed("A | | | 0.01 | 0 | 0.10") == [("-0.0100", "0.00", "0.00")]


def test_the_value_is_rounded_after_multiplying_and_away_from_zero() -> None:
    assert computed("A | | | 0 | 0.5 | 0.01", "B | | | 0.5 | 0 | 0.01") == [
        ("0.5000", "0.01", "0.00"),
        ("-0.5000", "0.00", "0.01"),
    ]


def test_a_null_is_never_taken_as_zero_and_the_other_lines_are_computed() -> None:
    assert computed(
        # kode | lot | gudang | sistem | fisik | harga
        "A     |     |        |        | 12    | 1500",
        "B     |     |        | 10     |       | 1500",
        "C     |     |        | 10     | 12    |",
        "D     |     |        | 10     | 10    |",
        "E     |     |        | 10     | 12    | 1500",
    ) == [
        (None, None, None),
        (None, None, None),
        (None, None, None),
        ("0.0000", "0.00", "0.00"),
        ("2.0000", "3000.00", "0.00"),
    ]


def test_a_total_over_a_line_that_is_not_computed_is_refused_and_not_smaller() -> None:
    result = compute_variance(lines("A | | | 10 | 12 | 5", "B | | | 10 | | 5"))

    with pytest.raises(ValueError):
        totals(result.frame)


def test_numbers_that_only_just_fit_are_exact() -> None:
    assert computed("A | | | -49999999999999.9999 | 50000000000000 | 99999999.999999") == [
        ("99999999999999.9999", "9999999999999899990000.00", "0.00")
    ]


def test_a_variance_beyond_its_column_is_named_with_its_line() -> None:
    result = compute_variance(
        lines("A | | | 1 | 2 | 5", "B | | | -99999999999999 | 1 | 5", "C | | | -1 | 99999999999999.9999 | 5")
    )

    assert said(result.problems) == [(2, "selisih_qty"), (3, "selisih_qty")]
    assert "100.000.000.000.000" in result.problems[0].pesan
    assert result.frame["nilai_debet"].tolist() == [Decimal(5), None, None]


def test_a_value_beyond_its_column_is_named_with_its_line() -> None:
    result = compute_variance(
        lines(
            "A | | | 0 | 10000 | 999999999999999999.999999",
            "B | | | 20000 | 0 | 999999999999999999.999999",
            "C | | | 0 | 9999 | 999999999999999999.999999",
        )
    )

    # 10,000 x 999,999,999,999,999,999.999999 = 9,999,999,999,999,999,999,999.99 just fits.
    assert said(result.problems) == [(2, "nilai"), (None, "total_debet")]
    assert str(result.frame["nilai_debet"].iloc[0]) == "9999999999999999999999.99"


def test_lines_that_fit_but_whose_sum_does_not_are_a_problem_of_the_document() -> None:
    large = "0 | 9000 | 999999999999999999.999999"

    result = compute_variance(lines(f"A | | | {large}", "B | | | 9000 | 0 | 999999999999999999.999999"))

    assert said(result.problems) == [(None, "total_debet")]


@pytest.mark.parametrize("number", ["NaN", "sNaN", "Infinity", "-Infinity", "1E+40"])
@pytest.mark.parametrize("place", [3, 4, 5])
def test_a_number_that_no_column_holds_is_not_computed_and_left_to_validate(number: str, place: int) -> None:
    row: list[object] = ["A", "", "GD-A", Decimal(1), Decimal(2), Decimal(5)]
    row[place] = Decimal(number)

    result = compute_variance(frame([row, ("B", "", "GD-A", Decimal(1), Decimal(2), Decimal(5))]))

    assert result.problems == ()
    assert result.frame["nilai_debet"].tolist() == [None, Decimal(5)]


def test_floats_are_refused_whole_or_in_part() -> None:
    exact = lines("A | | | 10 | 12 | 5", "B | | | 10 | 12 | 5")

    for floats in (pd.Series([1.5, 2.5]), pd.Series([Decimal(1), 2.5], dtype=object)):
        with pytest.raises(TypeError, match="harga_pokok"):
            compute_variance(exact.assign(harga_pokok=floats))
    with pytest.raises(TypeError, match="qty_sistem"):
        compute_variance(
            exact.assign(**{name: pd.Series([1.0, 2.0]) for name in ("qty_sistem", "qty_fisik", "harga_pokok")})
        )


def test_a_document_without_lines_is_worth_nothing() -> None:
    result = compute_variance(lines())

    assert totals(result.frame) == (Decimal(0), Decimal(0))
    assert result.problems == ()


def test_the_problems_of_a_document_and_of_its_computation_add_up_without_repeating() -> None:
    rows = lines("A | | | 10 | | 5", "B | | | -99999999999999 | 1 | 5", "C | | | 1 | 2.00001 | 5")

    found = [*validate(header(), rows, references()), *compute_variance(rows).problems]

    assert said(found) == [(1, "qty_fisik"), (3, "qty_fisik"), (2, "selisih_qty")]
