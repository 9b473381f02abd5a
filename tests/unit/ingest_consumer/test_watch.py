"""When the watch looks, and whom it wakes. That it does so on a real row: tests/integration/ingest_consumer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from ingest_consumer import watch as module
from ingest_consumer.watch import Watch


class Rows:
    """Stands in for the database and its query: (shadow id, run) of the jobs at work."""

    def __init__(self) -> None:
        self.at_work: set[tuple[int, str]] = set()
        self.asked: list[tuple[int, ...]] = []

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        yield None

    def runs_at_work(self, _conn: Any, shadow_ids: tuple[int, ...]) -> set[tuple[int, str]]:
        self.asked.append(shadow_ids)
        return {row for row in self.at_work if row[0] in shadow_ids}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    made = Rows()
    monkeypatch.setattr(module, "queries", made)
    return made


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def watch(rows: Rows, clock: list[float]) -> Watch:
    return Watch(rows, timedelta(milliseconds=10), lambda: clock[0])  # type: ignore[arg-type]


def test_whoever_waits_is_woken_once_when_the_row_has_left_the_run(watch: Watch, rows: Rows) -> None:
    woken: list[str] = []
    rows.at_work = {(1, "run 1"), (2, "run 2")}
    watch.begin(1, "run 1", lambda: woken.append("first"))
    watch.begin(2, "run 2", lambda: woken.append("second"))

    watch.look()
    assert woken == []

    rows.at_work = {(1, "run 1"), (2, "a newer run")}
    watch.look()
    watch.look()
    assert woken == ["second"], "once, and only whose run is over"


def test_two_deliveries_of_one_run_are_both_woken(watch: Watch, rows: Rows) -> None:
    woken: list[str] = []
    watch.begin(1, "run", lambda: woken.append("first"))
    watch.begin(1, "run", lambda: woken.append("second"))

    watch.look()

    assert sorted(woken) == ["first", "second"]
    assert rows.asked == [(1,)], "one statement, one row"


def test_nobody_is_woken_who_waits_no_more_and_without_anybody_nothing_is_read(watch: Watch, rows: Rows) -> None:
    woken: list[str] = []
    one = watch.begin(1, "run", lambda: woken.append("first"))
    watch.end(one)
    watch.end(one)

    watch.look()

    assert (woken, rows.asked) == ([], [])


def test_a_run_is_looked_at_less_often_the_longer_it_takes(watch: Watch, clock: list[float]) -> None:
    assert watch.pause_s() == 1.0, "nobody waits"
    watch.begin(1, "run", lambda: None)

    pauses = []
    for age in (0.0, 0.5, 3.0, 50.0, 3600.0):
        clock[0] = 100.0 + age
        pauses.append(round(watch.pause_s(), 3))
    assert pauses == [0.01, 0.01, 0.03, 0.5, 1.0]

    watch.begin(2, "a young run beside it", lambda: None)
    assert watch.pause_s() == 0.01
