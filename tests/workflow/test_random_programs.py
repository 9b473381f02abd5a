"""Random definitions of all step types, nested and in loops, under random faults, against a plain model.

A failing example prints its program and seed; `Chaos(program, seed, rate).play()` plays it again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, seed, settings
from hypothesis import strategies as st
from tenacity import wait_none

from everest.workflow import again
from tests.workflow.chaos import FAULTS, Chaos
from tests.workflow.programs import (
    NAMES,
    Agents,
    Chunks,
    Each,
    Group,
    Loop,
    Nested,
    Node,
    Person,
    Plain,
    Program,
    Signals,
    Sleep,
    Timeout,
)

SEED = 20_260_101
BATCHES, BATCH = 8, 1_000


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Between two transient tries nobody waits here, and nobody keeps thousands of warnings about them."""
    monkeypatch.setattr(again, "wait_random_exponential", lambda **_: wait_none())
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


rarely = st.sampled_from([False, False, False, False, True])
flaky = st.sampled_from([0, 0, 0, 1])


@st.composite
def eaches(draw: st.DrawFn) -> Each:
    size = draw(st.integers(0, 4))
    mode = draw(st.sampled_from(["all", "first_success", "quorum"]))
    quorum = draw(st.integers(1, max(1, size + draw(st.sampled_from([0, 0, 0, 1]))))) if mode == "quorum" else None
    bad = draw(st.frozensets(st.integers(0, max(0, size - 1)), max_size=size))
    # One that fails is tried again behind the others, or before them once its slot has died: who is first is chance.
    fails = draw(flaky) if mode == "all" else 0
    return Each(draw(st.booleans()), fails, draw(st.booleans()), size, mode, quorum, bad, draw(st.booleans()))


def trouble(kind: type[Node], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Node]:
    return st.builds(kind, broken=rarely, flaky=flaky, undo=st.booleans(), **fields)


SIMPLE = st.one_of(
    trouble(Plain, skip=st.sampled_from([0, 0, 0, 1, 2])),
    trouble(Plain),
    trouble(Group, branches=st.integers(1, 3), bad=st.integers(0, 2)),
    eaches(),
    trouble(Chunks, count=st.integers(0, 3)),
    st.builds(Sleep, seconds=st.sampled_from([0, 60])),
    st.builds(
        Signals,
        undo=st.booleans(),
        names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple),
        mode=st.sampled_from(["one", "all", "any"]),
        keyed=st.booleans(),
    ),
    st.builds(
        Person, undo=st.booleans(), kind=st.sampled_from(["approval", "decision", "input"]), says_no=st.booleans()
    ),
    st.builds(Timeout, goes_on=st.sampled_from([True, True, True, False])),
)


def bodies(depth: int) -> st.SearchStrategy[tuple[Node, ...]]:
    if depth == 0:
        return st.lists(SIMPLE, min_size=0, max_size=3).map(tuple)
    inner = bodies(depth - 1)
    small = st.deferred(lambda: programs(0))
    times = st.integers(1, 3)
    loop = times.flatmap(
        lambda count: st.builds(
            Loop,
            body=inner,
            times=st.just(count),
            until=st.booleans(),
            most=st.sampled_from([None, max(1, count - 1), max(1, count - 1), max(1, count - 2)]),
        )
    )
    nested = st.builds(Nested, undo=st.booleans(), program=small)
    agents = st.builds(Agents, undo=st.booleans(), program=small, size=st.integers(0, 2), waits=st.booleans())
    return st.lists(st.one_of(SIMPLE, loop, nested, agents), min_size=1, max_size=4).map(tuple)


@st.composite
def programs(draw: st.DrawFn, depth: int) -> Program:
    nodes = draw(bodies(depth))
    has_loop = any(isinstance(node, Loop) for node in nodes)
    return Program(
        nodes,
        attempts=draw(st.integers(2, 3)),
        undoes_failures=draw(rarely),
        cleans_up=draw(st.booleans()),
        keep=None if has_loop else draw(st.sampled_from([None, None, 1, 2])),
        most_steps=draw(st.sampled_from([None, None, None, None, 2, 5, 9])),
        fused=draw(st.booleans()),
        repaired=draw(st.sampled_from([True, True, True, False])),
    )


def plays_as_expected(program: Program, number: int, rate: float, cancels: bool) -> Chaos:
    note(f"Chaos({program!r}, seed={number}, rate={rate}, cancels={cancels})")
    chaos = Chaos(program, number, rate, cancels=cancels)
    chaos.play()
    chaos.check()
    event(f"root {chaos.database.tables.runs[1].status}")
    return chaos


ARGUMENTS = {
    "program": programs(2),
    "number": st.integers(0, 2**32),
    "rate": st.sampled_from([0.0, 0.05, 0.15, 0.3]),
    "cancels": rarely,
}
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


@settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=QUIET)
@given(**ARGUMENTS)
def test_a_random_program_ends_as_its_model_whatever_happens_to_it(**arguments: Any) -> None:
    plays_as_expected(**arguments)


@pytest.mark.long
@pytest.mark.parametrize("number", range(BATCHES))
def test_thousands_of_random_programs_end_as_their_models(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Batches with a seed each: one that fails is played again alone, with `-k` and its number."""
    counts = {"programs": 0, "commits": 0, "faults": 0}

    @seed(SEED + number)
    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=QUIET)
    @given(**ARGUMENTS)
    def play(**arguments: Any) -> None:
        chaos = plays_as_expected(**arguments)
        counts["programs"] += 1
        counts["commits"] += chaos.commits
        counts["faults"] += chaos.faults

    play()
    with capsys.disabled():
        print(f"\nrandom programs: {counts}, seed {SEED + number}")
    assert counts["programs"] >= BATCH


RICH = Program(
    (
        Plain(flaky=1, undo=True),
        Group(branches=2, bad=1, flaky=1, undo=True),
        Loop(body=(Each(size=2, reduces=True, bad=frozenset({1}), flaky=1), Signals(names=("red",))), times=2),
        Chunks(count=2, flaky=1),
        Nested(program=Program((Plain(broken=True, undo=True), Person()), cleans_up=True)),
        Agents(program=Program((Plain(),)), size=2),
        Sleep(),
        Timeout(),
        Person(kind="decision", says_no=True, undo=True),
    ),
    cleans_up=True,
)


SMALL = Program(
    (
        Plain(flaky=1, undo=True),
        Group(branches=2, bad=1, broken=True),
        Each(size=2, bad=frozenset({1}), flaky=1),
        Nested(program=Program((Signals(),))),
    ),
)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "program", [pytest.param(SMALL, id="small"), pytest.param(RICH, id="rich", marks=pytest.mark.long)]
)
def test_a_fault_at_each_single_commit_changes_nothing(program: Program, fault: Any) -> None:
    quiet = Chaos(program, plan={})
    quiet.play()
    quiet.check()
    assert quiet.database.tables.runs[1].status == "completed"

    for commit in range(1, quiet.commits + 1):
        chaos = Chaos(program, plan={commit: fault})
        chaos.play()
        assert chaos.faults == 1
        chaos.check()
