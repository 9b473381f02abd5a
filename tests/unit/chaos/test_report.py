"""What a chaos run says of itself: how it is played again, and when it proves nothing."""

from __future__ import annotations

import shlex
from collections import Counter

import pytest

from stack.shape import CELERY, Shape
from tests.chaos import __main__ as chaos
from tests.chaos import schedule
from tests.chaos.faults import FAULTS
from tests.chaos.run import Report

WRONG = ["SO-1 was posted 2 times"]


@pytest.mark.parametrize(
    ("only", "shape", "is_ours", "words"),
    [
        pytest.param([], Shape(), False, ["make", "chaos"], id="all"),
        pytest.param(["kill", "cut"], Shape(), True, ["make", "chaos"], id="some, as in make test"),
        pytest.param(
            ["deadlock"],
            Shape(CELERY, 2, 2, True),
            False,
            ["make", "chaos", "EXECUTOR=celery", "WORKERS=2", "CONSUMERS=2", "STANDBY=1"],
            id="another shape",
        ),
    ],
)
def test_a_failing_run_prints_the_command_that_plays_it_again(
    only: list[str], shape: Shape, is_ours: bool, words: list[str]
) -> None:
    plan = schedule.draw(7, 40.0, only)
    report = Report(plan.without(["consumer-mysql"]), shape, is_ours, wrong=WRONG)

    (line,) = [line for line in str(report).splitlines() if "again: " in line]
    *command, arguments = shlex.split(line.partition("again: ")[2])

    assert command == words
    chosen = chaos.choices().parse_args(shlex.split(arguments.removeprefix("ARGS=")))
    assert chaos.drawn(chosen) == [plan]
    assert chosen.ours == is_ours
    assert (
        Shape.choose({f"EVEREST_STACK_{name}": value for name, _, value in (w.partition("=") for w in words[2:])})
        == shape
    )


def test_a_run_in_which_hardly_anything_broke_proves_nothing() -> None:
    def said(only: list[str], *happened: str) -> list[str]:
        return Report(schedule.draw(7, 40.0, only), happened=Counter(happened)).of_itself()

    assert said([], "kill", "cut", "submit") == ["a quiet run proves nothing: of the faults only cut, kill happened"]
    assert said([]) == ["a quiet run proves nothing: of the faults only none happened"]
    assert said([], "kill", "cut", "freeze") == []
    assert said(["kill"], "kill") == []


@pytest.mark.parametrize(
    ("broken", "away", "happened", "nothing", "is_named"),
    [
        pytest.param(1, 0, 0, 0, True, id="once, by itself"),
        pytest.param(2, 2, 0, 0, False, id="twice, its server was away"),
        pytest.param(3, 3, 0, 0, True, id="its server is always away"),
        pytest.param(3, 0, 1, 0, False, id="it happened once"),
        pytest.param(1, 0, 0, 1, False, id="it found nothing once"),
    ],
)
def test_a_fault_that_raises_whenever_it_is_to_happen_fails_the_run(
    broken: int, away: int, happened: int, nothing: int, is_named: bool
) -> None:
    report = Report(schedule.draw(7, 40.0), happened=Counter(fault.name for fault in FAULTS if fault.name != "clock"))
    report.happened["clock"] += happened
    report.happened = +report.happened
    report.nothing += Counter(clock=nothing)
    report.broken["clock"], report.met_nobody["clock"] = broken, away

    assert bool(report.of_itself()) == is_named
    if is_named:
        assert report.of_itself() == [f"clock raised each of the {broken} times that it was to happen"]
        assert f"raised: clock {broken}" in str(report)


def test_without_libfaketime_nothing_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stack.machine.fake_clock", lambda: None)

    assert chaos.main(["--seed", "7"]) == 1
    assert "libfaketime is not installed" in capsys.readouterr().out
