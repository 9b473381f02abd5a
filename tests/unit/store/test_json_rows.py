"""Thousands of rows as JSON arrays, each small enough for one statement."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import chain

import pytest

from everest.store import json_rows

LONG_REASON = "\N{CJK UNIFIED IDEOGRAPH-8BA1}" * 255


def test_a_usual_count_of_20_000_lines_is_one_statement() -> None:
    rows = [
        (number, f"ITM-{number:05d}", "", "GD-A", "PCS", "10.0000", "11.0000", "1.5", None) for number in range(20_000)
    ]
    assert [len(some) for some, _ in json_rows.pieces(rows)] == [20_000]


def test_rows_with_long_texts_are_fewer_to_a_statement_and_none_is_lost_or_moved() -> None:
    rows = [[number, LONG_REASON, Decimal("1.50")] for number in range(20_000)]

    found = list(json_rows.pieces(rows))

    assert list(chain.from_iterable(some for some, _ in found)) == rows
    assert [row for _, text in found for row in json.loads(text)] == [[n, why, str(cost)] for n, why, cost in rows]
    assert max(len(text.encode()) for _, text in found) <= json_rows.MOST_BYTES


def test_a_row_that_weighs_too_much_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "MOST_BYTES", 10)
    assert list(json_rows.arrays(["a", "x" * 100, "b"])) == ['["a"]', json.dumps(["x" * 100]), '["b"]']


def test_of_no_rows_there_is_no_statement() -> None:
    assert list(json_rows.pieces([])) == []
