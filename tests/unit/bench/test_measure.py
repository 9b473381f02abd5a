"""What is made of the numbers: medians, ratios, bounds and the file that keeps them. No test here asserts a time."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bench import __main__ as command
from bench import measure
from bench.measure import Result, Run


def result(id: str = "P2", ratio: float = 2.0, **changes: object) -> Result:
    values: dict[str, object] = {
        "id": id,
        "what": "posting",
        "unit": "s",
        "floor_what": "LOAD DATA",
        "value": ratio,
        "floor": 1.0,
        "ratio": ratio,
        "must": 2.5,
        "aim": 1.5,
    }
    return Result(**(values | changes))  # type: ignore[arg-type]


def test_the_ratio_is_that_of_the_medians() -> None:
    measured = measure.against_floor(
        "P2", "ours", "s", "floor", [Run(2, 1), Run(9, 4), Run(4, 2), Run(3, 1), Run(5, 3)], must=2.5, aim=1.5
    )

    assert (measured.value, measured.floor, measured.ratio) == (4, 2, 2)


@pytest.mark.parametrize(
    ("ratio", "larger_is_better", "must_met", "aim_met"),
    [
        (1.5, False, True, True),
        (2.5, False, True, False),
        (2.51, False, False, False),
        (3.0, True, True, True),
        (1.0, True, False, False),
    ],
)
def test_a_bound_is_met_from_its_own_side(ratio: float, larger_is_better: bool, must_met: bool, aim_met: bool) -> None:
    aim = 3.0 if larger_is_better else 1.5
    judged = result(ratio=ratio, aim=aim, larger_is_better=larger_is_better)

    assert (judged.must_met, judged.aim_met) == (must_met, aim_met)


def test_what_is_only_reported_is_neither_met_nor_missed() -> None:
    reported = result(must=None, aim=None)

    assert (reported.must_met, reported.aim_met, reported.bounds) == (None, None, "reported")


def test_each_side_is_first_in_turn_and_the_pairs_stay_together() -> None:
    order: list[str] = []

    def side(name: str, sign: int) -> object:
        def run(index: int) -> int:
            order.append(f"{name}{index}")
            return sign * index

        return run

    pairs = measure.side_by_side(3, side("ours", 1), side("floor", -1))  # type: ignore[arg-type]

    assert order == ["ours0", "floor0", "floor1", "ours1", "ours2", "floor2"]
    assert pairs == [(0, 0), (1, -1), (2, -2)]


def test_p95_of_twenty_is_the_second_largest() -> None:
    assert measure.percentile(list(range(20, 0, -1)), 0.95) == 19


def test_growth_is_the_slope_in_log_log() -> None:
    sizes = [1_000, 10_000, 100_000]

    assert measure.exponent(sizes, [size * 0.002 for size in sizes]) == pytest.approx(1)
    assert measure.exponent(sizes, [size**2 for size in sizes]) == pytest.approx(2)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0.00"), (0.00123, "0.0012"), (0.4567, "0.457"), (12.345, "12.3"), (4567.8, "4568")]
)
def test_figures_are_shown_with_three_digits_and_no_exponent(number: float, text: str) -> None:
    assert measure.show(number) == text


def test_the_json_holds_figure_floor_ratio_bounds_verdicts_runs_and_machine() -> None:
    written = result(runs=(Run(2.0, 1.0),)).as_json({"cores": 2})

    assert written["runs"] == [{"value": 2.0, "floor": 1.0}]
    assert {key: written[key] for key in ("id", "floor", "value", "ratio", "must", "must_met", "aim_met")} == {
        "id": "P2",
        "floor": 1.0,
        "value": 2.0,
        "ratio": 2.0,
        "must": 2.5,
        "must_met": True,
        "aim_met": False,
    }
    assert written["machine"] == {"cores": 2}
    json.dumps(written)


def test_a_later_run_on_the_same_day_keeps_what_it_did_not_measure(tmp_path: Path) -> None:
    command.write([result("P2", 9.0), result("P1", 1.0)], {}, tmp_path)
    file = command.write([result("P2", 2.0)], {}, tmp_path)

    entries = json.loads(file.read_text())
    assert [(entry["id"], entry["ratio"]) for entry in entries] == [("P1", 1.0), ("P2", 2.0)]


def test_the_table_says_which_bounds_are_missed() -> None:
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(command.table([result(ratio=9.0), result("P1", 1.0)], smoke=False))

    text = console.export_text()
    assert "missed" in text
    assert "aim met" in text
