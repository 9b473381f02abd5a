"""Columns in fixed point: the same answers as columns of Decimal objects, whatever a column of the schema may hold."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everest.opname import variance
from everest.opname.amounts import COST, QTY, as_column
from everest.opname.decimals import Decimals
from everest.opname.fingerprint import lines_digest, values_digest
from everest.opname.fixed import FixedPoint, FixedPointDtype
from everest.opname.lines import DECIMAL_COLUMNS
from everest.opname.summary import Summary
from tests.unit.opname.tables import frame, said

Row = tuple[Decimal | None, Decimal | None, Decimal | None]

# Where one of the numbers on the way begins to exceed 63 bits, as steps of quantity and cost, and its neighbours.
EDGES = [variance.LARGEST_AMOUNT, 2**31, 2**53, 2**62, 2**63 // 10**6, 10**12, 10**18]


def steps(limit: int) -> st.SearchStrategy[int]:
    """Below the limit on both sides: small, around the edges, and anything."""
    near = st.sampled_from(EDGES).flatmap(lambda edge: st.integers(edge - 2, edge + 2))
    size = st.one_of(st.integers(0, 300), near, st.integers(0, limit - 1), st.integers(0, 10**10))
    return st.tuples(size.filter(lambda one: one < limit), st.sampled_from([1, 1, -1])).map(lambda two: two[0] * two[1])


def column(precision: int, scale: int) -> st.SearchStrategy[Decimal | None]:
    number = steps(10**precision).map(lambda one: as_column(Decimal(one).scaleb(-scale), precision, scale))
    return st.one_of(number, number, number, st.none())


def half_way(count: int, cost: int) -> Row:
    """A line whose value is exactly half a cent behind some cent."""
    return Decimal(0), Decimal(count * 5).scaleb(-4), Decimal((2 * cost + 1) * 10**7).scaleb(-6)


ROWS = st.lists(
    st.one_of(
        st.tuples(column(*QTY), column(*QTY), column(*COST)),
        st.builds(half_way, st.integers(1, 10**9), st.integers(0, 10**9)),
    ),
    max_size=6,
)


def in_objects(rows: list[Any]) -> pd.DataFrame:
    return frame([(f"ITM-{n}", "", "GD-A", *row) for n, row in enumerate(rows)])


def in_steps(rows: list[Any]) -> pd.DataFrame:
    """The same as `books.lines` gives it; a column that does not fit stays one of objects."""
    made = in_objects(rows)
    for name, size in DECIMAL_COLUMNS.items():
        values = [None if value is None else str(as_column(value, *size)) for value in made[name].tolist()]
        found = FixedPoint.read(values, *size)
        if found is not None:
            made[name] = found
    return made


def summary(values: pd.DataFrame) -> Summary:
    return Summary.of(values, values_digest(values))


def texts(values: Any) -> list[str | None]:
    return [None if value is None else str(value) for value in values.tolist()]


@given(ROWS)
@example([(Decimal(0), Decimal("922337203.6753"), Decimal("0.999999"))])
@example([(Decimal("-99999999999999.9999"), Decimal("99999999999999.9999"), Decimal(1))])
@example([(Decimal(0), Decimal("0.0001"), Decimal("9223372036854.775807"))])
@example([(Decimal(0), Decimal("0.0001"), Decimal("9223372036854.775808"))])
@example([(Decimal(1), Decimal(0), Decimal("0.005")), (Decimal(0), Decimal(1), Decimal("0.005"))])
@settings(deadline=None, max_examples=200)
def test_whole_numbers_give_what_the_reference_in_decimals_gives(rows: list[Row]) -> None:
    expected, found = variance.compute_variance(in_objects(rows)), variance.compute_variance(in_steps(rows))

    assert [*map(str, found.problems)] == [*map(str, expected.problems)]
    for name in variance.VARIANCE_COLUMNS:
        assert texts(found.frame[name]) == texts(expected.frame[name])
    if not found.problems and all(None not in texts(expected.frame[name]) for name in variance.VARIANCE_COLUMNS):
        assert summary(found.frame) == summary(expected.frame)


@pytest.mark.parametrize(
    ("fisik", "harga", "is_in_steps"),
    [
        (variance.LARGEST_AMOUNT, 999_999, True),
        (variance.LARGEST_AMOUNT + 1, 999_999, False),
        (10**9, 9_223_372_036 * 10**6 + 999_999, True),
        (10**9, 9_223_372_037 * 10**6, False),
        (1, 2**63 - 1, True),
        (1, 2**63, False),
    ],
)
def test_the_way_through_whole_numbers_ends_where_63_bits_end_and_nothing_else_changes(
    fisik: int, harga: int, is_in_steps: bool
) -> None:
    rows = [(Decimal(0), Decimal(fisik).scaleb(-4), Decimal(harga).scaleb(-6))]

    found = variance.compute_variance(in_steps(rows)).frame

    assert isinstance(found["nilai_debet"].array, FixedPoint) == is_in_steps
    assert texts(found["nilai_debet"]) == texts(variance.compute_variance(in_objects(rows)).frame["nilai_debet"])


def test_one_item_of_many_pieces_and_another_of_a_high_cost_stay_whole_numbers() -> None:
    """Each product fits, though the largest quantity times the largest cost would not."""
    rows = [(Decimal(0), Decimal("9000000"), Decimal("0.5")), (Decimal(0), Decimal(1), Decimal("9000000000000"))]

    found = variance.compute_variance(in_steps(rows)).frame

    assert isinstance(found["nilai_debet"].array, FixedPoint)
    assert texts(found["nilai_debet"]) == ["4500000.00", "9000000000000.00"]
    assert variance.totals(found) == (Decimal("9000004500000.00"), Decimal("0.00"))


def test_a_sum_beyond_63_bits_is_exact() -> None:
    rows = [(Decimal(0), Decimal("100"), Decimal("9000000000000"))] * 300

    assert variance.totals(variance.compute_variance(in_steps(rows)).frame) == (Decimal("270000000000000000.00"), 0)


def test_a_variance_that_its_column_cannot_hold_is_named_as_ever() -> None:
    result = variance.compute_variance(in_steps([(Decimal("-99999999999999.9999"), Decimal(1), Decimal(5))]))

    assert said(result.problems) == [(1, "selisih_qty")]


@given(st.lists(column(*COST), max_size=6))
@settings(deadline=None)
def test_whatever_is_asked_of_a_column_has_one_answer(values: list[Decimal | None]) -> None:
    objects = Decimals(values)
    fixed = FixedPoint.read([None if value is None else f"{value:f}" for value in values], *COST)
    if fixed is None:
        assert any(value is not None and abs(int(value.scaleb(6))) >= 2**63 - 1 for value in values)
        return

    assert fixed.tolist() == list(fixed) == [fixed.at(place) for place in range(len(values))] == values
    for name in ("has_null", "has_zero"):
        assert getattr(fixed, name) == getattr(objects, name)
    assert (fixed.negatives(), fixed.count_nonzero()) == (objects.negatives(), objects.count_nonzero())
    for size in (COST, QTY, (10, 6)):
        assert fixed.misfits(*size) == objects.misfits(*size)
    assert ([*fixed.texts(*COST)], fixed.step_texts(*COST)) == (objects.texts(*COST), objects.step_texts(*COST))
    for same in (fixed[:].copy(), fixed.take(range(len(values)))):
        assert [*same.texts(*COST)] == objects.texts(*COST)
    if objects.has_null:
        for number in (fixed, objects):
            with pytest.raises(TypeError):
                number.total()
    else:
        assert (fixed.total(), fixed.largest()) == (objects.total(), objects.largest())


@pytest.mark.parametrize("text", ["1", "1.00", "1.00000", "", " 1.0000", "1e4", "+1.0000", "1.0000\n", "NaN", "١.0000"])
def test_a_text_that_is_not_of_the_column_is_not_guessed_at(text: str) -> None:
    assert FixedPoint.read(["2.0000", text], *QTY) is None


def test_the_largest_number_of_a_column_fits_and_the_next_does_not() -> None:
    assert FixedPoint.read(["99999999999999.9999", "-99999999999999.9999"], *QTY) is not None
    assert FixedPoint.read(["100000000000000.0000"], *QTY) is None
    assert FixedPoint.read(["-100000000000000.0000"], *QTY) is None


def test_a_frame_handles_such_a_column_as_one_of_decimals() -> None:
    """Nobody who looks into the frame sees steps."""
    rows: list[Row] = [(Decimal("1.5"), None, Decimal(2)), (Decimal("-3"), Decimal("0"), None)]
    made = in_steps(rows)

    assert str(made["qty_sistem"].dtype) == "fixed[4]"
    assert made["qty_sistem"].tolist() == [Decimal("1.5"), Decimal(-3)]
    assert made["qty_fisik"].iloc[1] == Decimal(0)
    assert made["qty_fisik"].isna().tolist() == [True, False]
    assert made.iloc[::-1]["harga_pokok"].tolist() == [None, Decimal(2)]
    assert made[made["qty_sistem"] == Decimal(-3)]["kode_barang"].tolist() == ["ITM-1"]
    assert pd.concat([made, made])["qty_sistem"].tolist() == [Decimal("1.5"), Decimal(-3)] * 2
    assert made["qty_sistem"].astype(object).tolist() == [Decimal("1.5"), Decimal(-3)]
    assert made.reindex([1, 7])["qty_sistem"].tolist() == [Decimal(-3), None]
    assert (made["qty_sistem"].dtype == "fixed[4]", made["qty_sistem"].dtype == "object") == (True, False)
    assert pd.Series([Decimal(7), None], dtype=FixedPointDtype(2)).tolist() == [Decimal(7), None]
    with pytest.raises(ValueError, match="does not fit"):
        pd.Series([Decimal("0.001")], dtype=FixedPointDtype(2))


@given(ROWS)
@settings(deadline=None)
def test_both_ways_of_holding_a_document_have_one_fingerprint(rows: list[Row]) -> None:
    assert lines_digest(in_steps(rows), "GD-A") == lines_digest(in_objects(rows), "GD-A")
    computed = [variance.compute_variance(made(rows)) for made in (in_steps, in_objects)]
    if not computed[1].problems and computed[1].frame["nilai_debet"].notna().all():
        assert len({values_digest(each.frame) for each in computed}) == 1
