"""State survives its way through JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest.workflow import codec

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.datetimes(timezones=st.sampled_from([None, UTC]))
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=3))
def test_what_goes_in_comes_out(state: dict[str, Any]) -> None:
    assert codec.loads(codec.dumps(state)) == state


@given(st.dictionaries(st.sampled_from(["$decimal", "$date", "$datetime", "$object", "$x"]), values, max_size=3))
def test_a_users_own_dollar_key_is_not_mistaken_for_a_tag(state: dict[str, Any]) -> None:
    assert codec.loads(codec.dumps(state)) == state


def test_types_come_back_as_themselves() -> None:
    state = {"d": Decimal("1.50"), "on": date(2026, 1, 31), "at": datetime(2026, 1, 31, 17, 30, tzinfo=UTC)}

    back = codec.loads(codec.dumps(state))

    assert {key: type(value) for key, value in back.items()} == {"d": Decimal, "on": date, "at": datetime}
    assert str(back["d"]) == "1.50", "the scale stays"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: "a"}, {"x": {2, 3}}, pandas.NaT])
def test_what_json_cannot_hold_is_refused_not_bent(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        codec.dumps({"value": value})


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**30])
def test_a_whole_number_of_more_than_64_bits_is_text_in_the_json_for_mysql_would_make_it_a_float(value: int) -> None:
    assert json.loads(codec.dumps({"n": value}))["n"] == {"$int": str(value)}
    assert codec.loads(codec.dumps({"n": value})) == {"n": value}
    assert json.loads(codec.dumps([2**64 - 1, -(2**63), True])) == [2**64 - 1, -(2**63), True]
