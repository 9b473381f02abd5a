"""Fields that a wait for input asks for: what is read of them, what is wrong with them, what is no declaration."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from everest.errors import DefinitionError
from everest.workflow.builder import workflow
from everest.workflow.fields import MAX_TEXT, Field, Flaw, read

FIELDS = (
    Field("nama", label="Nama penghitung"),
    Field("orang", "number"),
    Field("selesai", "date"),
    Field("regu", "choice", choices=("A", "B")),
    Field("catatan", is_required=False),
)
SOUND = {"nama": " Joko ", "orang": "3", "selesai": "2026-08-31", "regu": "B", "catatan": ""}


def test_what_is_filled_in_becomes_values_of_their_kind() -> None:
    payload, flaws = read(FIELDS, SOUND | {"unasked": "x"})
    assert flaws == {}
    told = {"nama": "Joko", "orang": 3, "selesai": date(2026, 8, 31), "regu": "B", "catatan": None}
    assert payload == told and type(payload["orang"]) is int


@pytest.mark.parametrize("text", ["0.10", "0,10", "0,125", "1.5000", "1500,125", "-12345678901234567890,0000000001"])
def test_a_number_with_a_point_is_exact(text: str) -> None:
    payload, flaws = read([Field("n", "number")], {"n": text})
    assert flaws == {} and str(payload["n"]) == text.replace(",", ".") and isinstance(payload["n"], Decimal)


@pytest.mark.parametrize(
    ("field", "text", "flaw"),
    [
        ("nama", "  ", "missing"),
        ("nama", "x" * (MAX_TEXT + 1), "long"),
        ("orang", "tiga", "number"),
        ("orang", "1e9", "number"),
        ("orang", "NaN", "number"),
        ("orang", "1.000.000", "number"),
        ("orang", "\u0663", "number"),
        ("orang", "1.500", "thousands"),
        ("orang", "-999,000", "thousands"),
        ("selesai", "31-08-2026", "date"),
        ("regu", "C", "choice"),
    ],
)
def test_each_flaw_is_told_by_its_field(field: str, text: str, flaw: Flaw) -> None:
    assert read(FIELDS, SOUND | {field: text})[1] == {field: flaw}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([Field("a"), Field("a")], "names a field twice"),
        ([Field("two words")], "'two words' needs a name"),
        ([Field("a", "colour")], "is of kind 'colour'"),  # type: ignore[arg-type]
        ([Field("a", "choice")], "has choices exactly if"),
        ([Field("a", choices=("x",))], "has choices exactly if"),
        ([Field(f"a{n}") for n in range(51)], "asks for 51 fields"),
    ],
)
def test_a_declaration_that_is_none_is_refused_when_built(fields: list[Any], told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        workflow("w").wait_for_input("x", fields=fields).build()
