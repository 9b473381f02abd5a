"""Decimals at the edge: what is read, what is refused, how it is rounded and shown."""

from __future__ import annotations

from decimal import Decimal, Inexact, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest.opname.amounts import (
    COST,
    MONEY_CONTEXT,
    QTY,
    DecimalLocale,
    as_column,
    fits,
    format_number,
    format_rupiah,
    misfits,
    parse_decimal,
    round_money,
)


@pytest.mark.parametrize(
    ("exact", "rounded"),
    [
        ("2.675", "2.68"),
        ("-2.675", "-2.68"),
        ("0.125", "0.13"),
        ("0.124999", "0.12"),
        ("0.005", "0.01"),
        ("-0.005", "-0.01"),
        ("0.0049999999", "0.00"),
        ("9007199254740993.1234", "9007199254740993.12"),
        ("9999999999999999999999.994", "9999999999999999999999.99"),
    ],
)
def test_money_is_rounded_half_away_from_zero(exact: str, rounded: str) -> None:
    assert str(round_money(Decimal(exact))) == rounded


def test_money_beyond_its_column_is_an_error_and_never_clamped() -> None:
    with pytest.raises(OverflowError):
        round_money(Decimal("9999999999999999999999.995"))


def test_the_money_context_keeps_42_digits_and_refuses_to_round() -> None:
    with localcontext(MONEY_CONTEXT):
        product = Decimal("99999999999999.9999") * Decimal("999999999999999999.999999")
        assert str(product) == "99999999999999999899999900000000.0000000001"
        with pytest.raises(Inexact):
            Decimal(1) / Decimal(3)


@pytest.mark.parametrize(
    ("text", "locale", "value"),
    [
        ("13,75", "id", "13.75"),
        ("1.234.567,89", "id", "1234567.89"),
        ("1.234", "id", "1234"),
        ("1234,5", "id", "1234.5"),
        ("13.75", "en", "13.75"),
        ("1,234,567.89", "en", "1234567.89"),
        ("1,234", "en", "1234"),
        ("13.75", None, "13.75"),
        ("1.000", "id", "1000"),
        ("1.000", "en", "1"),
        ("0.049", None, "0.049"),
        ("-0.500", None, "-0.5"),
        ("1500.00", None, "1500"),
        ("1.00", None, "1"),
        ("1.2340", None, "1.234"),
        ("1234.567", None, "1234.567"),
        ("001.234", None, "1.234"),
        ("0012", None, "12"),
        ("-5", None, "-5"),
        ("-0", None, "0"),
        (" 12\t", None, "12"),
        ("10.000000", None, "10"),
    ],
)
def test_a_number_is_read_as_its_declared_locale_writes_it_h26(
    text: str, locale: DecimalLocale | None, value: str
) -> None:
    read = parse_decimal(text, decimal=locale, precision=18, scale=4)

    assert str(read) == str(as_column(Decimal(value), 18, 4))


@pytest.mark.parametrize(
    ("text", "locale"),
    [
        ("13,75", None),
        ("13,75", "en"),
        ("13.75", "id"),
        ("1,234", None),
        ("1.234.567", None),
        ("1.23.456", "id"),
        ("12.3456", "id"),
        ("0.123", "id"),
        ("1.234,567.8", "id"),
        ("1,2345", "en"),
        ("1e5", None),
        ("1E5", "en"),
        ("inf", None),
        ("Infinity", None),
        ("NaN", None),
        ("0x10", None),
        ("1_000", None),
        ("١٢", None),
        ("１２", None),
        ("1 000", None),
        ("1\u00a0000", "id"),
        ("\u00a012", None),
        ("12\n", None),
        ("+5", None),
        ("--5", None),
        (".5", None),
        ("5.", None),
        (",5", "id"),
        ("-", None),
        ("duabelas", None),
        ("Rp 5", "id"),
        ("", None),
        ("   ", "id"),
        ("1" * 100_000, None),
    ],
)
def test_a_number_that_could_mean_something_else_is_refused_h26(text: str, locale: DecimalLocale | None) -> None:
    with pytest.raises(ValueError) as refused:
        parse_decimal(text, decimal=locale, precision=18, scale=4)

    assert "angka" in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("text", ["1.000", "12.345", "-1.234", "999.999", " 100.000 "])
def test_a_thousand_that_could_be_a_one_is_refused_until_the_decimal_sign_is_declared(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"koma \(--decimal id\) bila titik memisahkan ribuan, titik \(--decimal en\) bila"
    ) as refused:
        parse_decimal(text, decimal=None, precision=18, scale=4)

    thousands, decimals = text.strip().replace(".", ""), text.strip().replace(".", ",")
    assert f"bisa berarti {thousands} atau {decimals};" in str(refused.value)


@given(st.decimals(min_value="-999999", max_value="999999", places=3))
def test_without_a_declared_decimal_sign_a_number_is_what_both_ways_of_writing_say_or_refused(value: Decimal) -> None:
    """Whatever is accepted undeclared could not have been written as thousands."""
    text = f"{value:f}"
    try:
        undeclared = parse_decimal(text, decimal=None, precision=18, scale=4)
    except ValueError:
        assert parse_decimal(text, decimal="id", precision=18, scale=4) != value
    else:
        assert undeclared == value
        with pytest.raises(ValueError):
            parse_decimal(text, decimal="id", precision=18, scale=4)


def test_more_decimals_than_the_column_holds_are_refused_and_not_cut() -> None:
    with pytest.raises(ValueError, match="terlalu banyak desimal: paling banyak 4"):
        parse_decimal("1.00001", decimal=None, precision=18, scale=4)


def test_more_digits_than_the_column_holds_are_refused() -> None:
    assert parse_decimal("99999999999999.9999", decimal=None, precision=18, scale=4) == Decimal("99999999999999.9999")
    with pytest.raises(ValueError, match="terlalu besar: paling banyak 14 angka"):
        parse_decimal("100000000000000", decimal=None, precision=18, scale=4)


@given(st.decimals(min_value="-99999999999999", max_value="99999999999999", places=4))
def test_what_is_shown_to_indonesian_readers_reads_back_as_the_same_number(value: Decimal) -> None:
    assert parse_decimal(format_number(value), decimal="id", precision=18, scale=4) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1234567.89", "Rp 1.234.567,89"),
        ("0", "Rp 0,00"),
        ("-5", "-Rp 5,00"),
        ("1500.500000", "Rp 1.500,50"),
        ("0.125", "Rp 0,125"),
        ("1E+3", "Rp 1.000,00"),
    ],
)
def test_rupiah_are_shown_with_dots_and_a_comma_and_never_rounded(value: str, shown: str) -> None:
    assert format_rupiah(Decimal(value)) == shown


@pytest.mark.parametrize(
    ("value", "column", "held"),
    [
        ("99999999999999.9999", QTY, True),
        ("-99999999999999.9999", QTY, True),
        ("100000000000000", QTY, False),
        ("1E+20", QTY, False),
        ("0.00001", QTY, False),
        ("1.00000000", QTY, True),
        ("0.000001", COST, True),
        ("NaN", QTY, False),
        ("sNaN", QTY, False),
        ("Infinity", QTY, False),
        ("-Infinity", QTY, False),
    ],
)
def test_a_column_holds_a_number_exactly_or_not_at_all(value: str, column: tuple[int, int], held: bool) -> None:
    number = Decimal(value)

    assert fits(number, *column) is held
    assert misfits([Decimal(1), None, number], *column) == ([] if held else [2])
