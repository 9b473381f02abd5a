"""The short ways around a second look at 20,000 lines: what they skip, and that they find nothing less."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest.opname.amounts import COST, MONEY, QTY, fits, misfits
from everest.opname.document import Header, References, input_hash, still_valid, validate
from everest.opname.lines import are_plain, code_flaw
from everest.opname.rules import BEYOND_THE_HASH, RULES
from tests.unit.opname.tables import ACCOUNTS, header, lines, references, said

COUNTED = ("A | | | 10 | 12 | 1500", "B | L1 | GD-B | 7 | 5 | 0.5", "C | | | 3 | 3 | ")


@pytest.mark.parametrize(
    ("document", "master_data", "column"),
    [
        (header(otorisasi_level=1), references(), "otorisasi_level"),
        (header(diotorisasi_oleh=" "), references(), "diotorisasi_oleh"),
        (header(), references(warehouses={"GD-A": True, "GD-B": False}), "gudang_kode"),
        (header(), references(warehouses={"GD-A": False, "GD-B": True}), "gudang_kode"),
        (header(), references(accounts={ACCOUNTS.persediaan: True, ACCOUNTS.laba_selisih: True}), "kode_akun"),
    ],
)
def test_a_document_known_as_valid_is_still_held_against_what_its_hash_does_not_cover(
    document: Header, master_data: References, column: str
) -> None:
    counted = lines(*COUNTED)
    assert input_hash(document, counted, "OPNAME") == input_hash(header(), counted, "OPNAME")

    again = validate(document, counted, master_data, is_known_valid=True)

    assert column in {problem.kolom for problem in again}
    assert again == validate(document, counted, master_data)


def test_a_cost_of_zero_is_looked_at_again_because_a_setting_decides() -> None:
    counted = lines("A | | | 10 | 12 | 0")

    assert validate(header(), counted, references(allow_zero_cost=True), is_known_valid=True) == []
    assert said(validate(header(), counted, references(), is_known_valid=True)) == [(1, "harga_pokok")]


@given(
    level=st.sampled_from([1, 2]),
    name=st.sampled_from(["sari", " "]),
    open_warehouses=st.sets(st.sampled_from(["GD-A", "GD-B"])),
    active_accounts=st.sets(st.sampled_from([ACCOUNTS.persediaan, ACCOUNTS.laba_selisih, ACCOUNTS.rugi_selisih])),
    free=st.booleans(),
    allowed=st.booleans(),
)
def test_a_summary_of_the_lines_says_whether_anything_is_wrong_as_the_lines_would(
    level: int, name: str, open_warehouses: set[str], active_accounts: set[str], free: bool, allowed: bool
) -> None:
    document = header(otorisasi_level=level, diotorisasi_oleh=name)
    counted = lines("A | | GD-A | 10 | 12 | 1500", f"B | L1 | GD-B | 7 | 5 | {'0' if free else '0.5'}")
    master_data = references(
        warehouses={code: code in open_warehouses for code in ("GD-A", "GD-B")},
        accounts=dict.fromkeys(active_accounts, True),
        allow_zero_cost=allowed,
    )

    problems = validate(document, counted, master_data, is_known_valid=True)

    assert still_valid(document, master_data, ["GD-A", "GD-B"], free) == (problems == [])


def test_the_rules_of_the_second_look_are_some_of_the_first() -> None:
    assert set(BEYOND_THE_HASH) < set(RULES)
    # `still_valid` answers for the two that look at lines; whoever adds a third teaches it that, too.
    of_lines = {"_line_warehouses", "_costs"}
    of_the_header = {"_authorisation", "_unreadable", "_header_codes", "_accounts"}
    assert {rule.__name__ for rule in BEYOND_THE_HASH} == of_lines | of_the_header


@given(st.lists(st.text(max_size=5), max_size=6), st.booleans())
def test_codes_that_are_plain_all_together_have_no_flaw_one_by_one(codes: list[str], may_be_empty: bool) -> None:
    if are_plain(codes, may_be_empty=may_be_empty):
        assert [code for code in codes if code_flaw(code) and not (may_be_empty and code == "")] == []


def test_ordinary_codes_are_plain_and_doubtful_ones_are_looked_at() -> None:
    assert are_plain(["BRG-1", "00123", "é"], may_be_empty=False)
    assert are_plain(["", "L1"], may_be_empty=True)
    for doubtful in ("A 1", " A", "A\u200b", "A\n", "\xa0A", ""):
        assert not are_plain(["BRG-1", doubtful], may_be_empty=False)
    assert not are_plain(["BRG-1", None], may_be_empty=True)


@pytest.mark.parametrize("column", [QTY, COST, MONEY])
@given(values=st.lists(st.none() | st.decimals(allow_nan=True, allow_infinity=True), max_size=5))
def test_a_whole_column_misses_no_number_that_does_not_fit(
    column: tuple[int, int], values: list[Decimal | None]
) -> None:
    expected = [place for place, value in enumerate(values) if value is not None and not fits(value, *column)]

    assert misfits(values, *column) == expected
