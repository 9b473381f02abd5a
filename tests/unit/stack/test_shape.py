"""How many of what: chosen on the command line, remembered, and never silently wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stack.layout import StackError
from stack.roster import GROUPS, programs
from stack.shape import MOST, Shape
from tests.queue_rig import ROOT


def test_without_a_word_it_is_one_of_each_on_the_local_executor() -> None:
    assert Shape.choose({}) == Shape("local", consumers=1, standby=False)
    assert not [one.name for one in programs(Shape()) if one.number > 1 or one.role == "airflow-worker"]


def test_what_is_said_counts_and_what_is_not_said_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "shape.json"
    Shape.choose({"EVEREST_STACK_EXECUTOR": "celery", "EVEREST_STACK_WORKERS": "3"}).save(file)
    later = Shape.choose({"EVEREST_STACK_STANDBY": "1"}, Shape.load(file))
    assert later == Shape("celery", workers=3, consumers=1, standby=True)
    assert Shape.choose({"EVEREST_STACK_EXECUTOR": "local"}, later).executor == "local"


@pytest.mark.parametrize("text", ["", "{}x", '{"of": "another time"}'])
def test_a_file_that_says_nothing_is_no_choice(tmp_path: Path, text: str) -> None:
    file = tmp_path / "shape.json"
    file.write_text(text)
    assert Shape.load(file) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"EXECUTOR": "kubernetes"}, "EXECUTOR='kubernetes' must be local or celery"),
        ({"EXECUTOR": "celery", "WORKERS": "0"}, f"WORKERS='0' must be a number from 1 to {MOST}"),
        ({"CONSUMERS": "many"}, "CONSUMERS='many'"),
        ({"STANDBY": "yes"}, "STANDBY='yes' must be 0 or 1"),
        ({"WORKERS": "2"}, "EXECUTOR=celery"),
    ],
)
def test_a_wrong_word_is_refused_by_name(said: dict[str, str], words: str) -> None:
    with pytest.raises(StackError, match=words):
        Shape.choose({f"EVEREST_STACK_{name}": value for name, value in said.items()})


def test_a_larger_stack_adds_programs_behind_the_others_and_no_group_of_the_small_one_changes() -> None:
    small, large = programs(Shape()), programs(Shape("celery", workers=2, consumers=3, standby=True))
    added = [one.name for one in large if one not in small]
    assert added == [
        "airflow-worker-1", "airflow-worker-2", "consumer-2", "consumer-3", "relay-2", "reconciler-2",
    ]  # fmt: skip
    for group in {one.group for one in small}:
        assert [one for one in small if one.group == group] == [one for one in large if one.group == group]
    assert [GROUPS.index(one.group) for one in large] == sorted(GROUPS.index(one.group) for one in large)


def test_make_hands_over_what_its_command_line_says_and_nothing_that_the_shell_happens_to_have() -> None:
    def shown(*arguments: str) -> str:
        return subprocess.run(
            ["make", "--no-print-directory", "-f", "-", "shown", *arguments],
            input="include Makefile\nshown:\n\t@env\n",
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "WORKERS": "7"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert "EVEREST_STACK_" not in shown()
    assert "EVEREST_STACK_EXECUTOR=celery" in shown("EXECUTOR=celery")
    assert "EVEREST_STACK_WORKERS" not in shown("EXECUTOR=celery")
