"""The benchmarks that need no running stack, as `make bench-smoke` runs them: each finishes, and checks for itself that
what it timed was done. How fast is nobody's business here.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from datetime import date

import pytest

from bench import pages
from bench.__main__ import benchmarks
from bench.pages_data import Filled
from bench.pages_list import groups
from everest.settings import MysqlUrl
from stack.layout import Layout

TODAY = date(2026, 12, 1)
FILLED = Filled(1, TODAY, TODAY, 1, 2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize(
    "name",
    [
        "P1",
        "P3",
        "P2",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("P8", "P9", "P11", "PAGES")),
    ],
)
def test_a_benchmark_works_in_small(servers: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable, value in servers.items():
        monkeypatch.setenv(variable, value)
    local = Layout.here().local
    local.mkdir(exist_ok=True)

    with (local / "bench.lock").open("w") as one_at_a_time:  # their own server has one folder
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        results = [result for _, run in benchmarks({name}, smoke=True) for result in run()]

    assert results
    assert all(result.id.startswith(name) for result in results)
    assert all(run.value > 0 for result in results for run in result.runs)


def test_no_page_is_missed_by_its_benchmark(mysql_server: MysqlUrl) -> None:
    with pages.served(mysql_server) as (app, _client):
        pages.check_nothing_is_forgotten(app, [path for group in groups(FILLED) for _, path, _ in group.pages])
