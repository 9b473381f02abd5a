"""Approval limits: above is above, equal is within."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from everest.opname.limits import DOCUMENT_LIMIT, LINE_LIMIT, are_kept, exceeded, limit_problems
from everest.opname.variance import compute_variance
from tests.unit.opname.tables import lines, said

# Surplus 3,000.00 on line 1, shortage 5,001.00 on line 2: 8,001.00 in all.
FRAME = compute_variance(
    lines(
        # kode | lot | gudang | sistem | fisik | harga
        "A     | ''  | GD-A   | 10     | 12    | 1500.00",
        "B     | ''  | GD-A   | 7      | 5     | 2500.50",
        "C     | ''  | GD-A   | 3      | 3     | 900",
    )
).frame


def test_without_limits_nothing_needs_approval() -> None:
    assert limit_problems(FRAME, None, None) == []


def test_amounts_equal_to_their_limits_are_within_them() -> None:
    assert limit_problems(FRAME, Decimal("8001.00"), Decimal("5001.00")) == []


def test_surplus_and_shortage_count_together_against_the_limit_of_a_document() -> None:
    problems = limit_problems(FRAME, Decimal("8000.99"), None)

    assert said(problems) == [(None, "batas_dokumen")]
    assert "Rp 8.001,00" in problems[0].pesan
    assert "Rp 8.000,99" in problems[0].pesan


def test_each_line_above_the_limit_of_a_line_is_named_whatever_its_sign() -> None:
    problems = limit_problems(FRAME, None, Decimal("2999.99"))

    assert said(problems) == [(1, "batas_baris"), (2, "batas_baris")]
    assert "Rp 5.001,00" in problems[1].pesan


def test_a_limit_of_zero_lets_only_documents_without_value_pass() -> None:
    assert said(limit_problems(FRAME, Decimal(0), Decimal(0))) == [
        (None, "batas_dokumen"),
        (1, "batas_baris"),
        (2, "batas_baris"),
    ]


LIMITS = st.none() | st.decimals(0, 9000, places=2)


@given(LIMITS, LIMITS)
def test_total_and_largest_line_say_whether_any_limit_is_exceeded(
    of_the_document: Decimal | None, of_a_line: Decimal | None
) -> None:
    problems = limit_problems(FRAME, of_the_document, of_a_line)
    quiet = problems == []

    assert exceeded(FRAME, of_the_document, of_a_line) == (
        of_the_document if any(one.kolom == DOCUMENT_LIMIT for one in problems) else None,
        of_a_line if any(one.kolom == LINE_LIMIT for one in problems) else None,
    )
    assert are_kept(Decimal("8001.00"), Decimal("5001.00"), of_the_document, of_a_line) == quiet
