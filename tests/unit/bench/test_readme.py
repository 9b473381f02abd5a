"""The table of bench/README.md says what the results files say: change one, and the other has to follow."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"
SECTION = (BENCH / "README.md").read_text(encoding="utf-8").partition("## Results\n")[2].partition("\n### ")[0]
FILE = re.compile(r"results/([\d-]+\.json)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("| P")
]


@cache
def results(file: str) -> dict[str, dict[str, Any]]:
    return {result["id"]: result for result in json.loads((BENCH / "results" / file).read_text(encoding="utf-8"))}


def named(text: str) -> str:
    """The results file that a row names, or the section, for the rows that name none."""
    found = FILE.search(text)
    assert found is not None, f"no results file in {text[:80]!r}"
    return found[1]


def first(cell: str) -> tuple[float | None, int]:
    """The first number of a cell and its decimals."""
    found = NUMBER.search(cell)
    if found is None:
        return None, 0
    return float(found[0].replace(",", "")), len(found[0].partition(".")[2])


def id_of(row: list[str]) -> str:
    return re.split(r"[ ,]", row[0])[0]


@pytest.mark.parametrize("row", ROWS, ids=id_of)
def test_a_row_says_what_its_results_file_says(row: list[str]) -> None:
    found = results(named(row[0] if FILE.search(row[0]) else SECTION))
    if row[6].startswith("**not run**"):
        assert id_of(row) not in found
        assert not any(row[1:4])
        return
    result = found[id_of(row)]
    ratio, decimals = first(row[3])
    verdict = "reported"
    if result["must"] is not None:
        verdict = "aim met" if result["aim_met"] else "must met" if result["must_met"] else "missed"

    assert ratio == pytest.approx(result["ratio"], abs=0.5001 * 10**-decimals)
    assert ratio is not None
    assert ratio >= 10 or decimals >= 1, "two digits"
    assert (first(row[4])[0], first(row[5])[0]) == (result["must"], result["aim"])
    assert re.match(r"aim met|must met|missed|reported", row[6].strip("*")), row[6]
    assert row[6].strip("*").startswith(verdict)


def test_every_result_has_its_row() -> None:
    shown = [id_of(row) for row in ROWS]

    assert len(set(shown)) == len(shown)
    assert set(results(named(SECTION))) <= set(shown)
