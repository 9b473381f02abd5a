"""Columns of a frame, and codes as keys."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from everest.opname.lines import are_plain, code_flaw, columns


def test_every_kind_of_null_that_pandas_has_comes_out_as_none() -> None:
    frame = pd.DataFrame({"lot": pd.Series([None, float("nan"), pd.NA, pd.NaT, "", "L1"], dtype=object)})

    assert columns(frame, "lot") == [[None, None, None, None, "", "L1"]]


def test_a_null_in_a_text_column_of_pandas_own_string_type_is_none() -> None:
    frame = pd.DataFrame({"lot": ["L1", None, "NA"]})

    assert columns(frame, "lot") == [["L1", None, "NA"]]


def test_a_column_of_floats_is_a_fault_and_not_a_quantity_h42() -> None:
    read_with_coercion = pd.DataFrame({"harga_pokok": [9007199254740993.1234]})

    with pytest.raises(TypeError, match="harga_pokok must hold Decimal or None, not float"):
        columns(read_with_coercion, "harga_pokok")


def test_a_decimal_nan_is_not_taken_for_a_null() -> None:
    frame = pd.DataFrame({"qty_fisik": pd.Series([None, Decimal("NaN")], dtype=object)})

    null, nan = columns(frame, "qty_fisik")[0]
    assert null is None
    assert nan.is_nan()


@pytest.mark.parametrize(
    "code", ["00123", "8991234567890123456", "NA", "1e5", "ITM 1", "Å-Ⅷ", "null", "0", "🙂", "a\u00a0b"]
)
def test_a_code_is_any_visible_text_h45(code: str) -> None:
    assert code_flaw(code) is None


@pytest.mark.parametrize("code", [None, ""])
def test_an_empty_code_is_flawed(code: str | None) -> None:
    assert code_flaw(code) == "kosong"


@pytest.mark.parametrize("code", ["A1 ", " A1", "A1\t", "\nA1", "A1\u00a0", "\u3000A1", "A1\u2003", " "])
def test_a_code_with_white_space_at_an_edge_is_flawed(code: str) -> None:
    assert "spasi" in str(code_flaw(code))


@pytest.mark.parametrize(
    "character",
    [
        *("\x00", "\x1f", "\x7f", "\x85", "\u200b", "\u200e", "\u202e", "\ufeff", "\u2028", "\u00ad"),
        *("\ufe0f", "\u034f", "\u3164", "\uffa0", "\u115f", "\u2800", "\u180b", "\U000e0100", "\U0001d173"),
    ],
)
def test_a_code_with_a_character_that_nobody_sees_is_flawed_wherever_it_stands(character: str) -> None:
    for code in (f"A{character}1", f"{character}A1", f"A1{character}"):
        assert code_flaw(code)
        assert not are_plain(["B", code], may_be_empty=False), "told from all codes at once"


def test_codes_of_other_alphabets_are_plain() -> None:
    assert are_plain(["Å-Ⅷ", "部品", "é", "🙂"], may_be_empty=False)
