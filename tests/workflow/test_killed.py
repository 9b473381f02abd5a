"""A process is killed (SIGKILL) right before and right after each commit of a rich workflow: another one takes over,
and in the end every history is the same, each business row there exactly once."""

from __future__ import annotations

import os
import signal
import traceback
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from tests.conftest import empty_all_tables
from tests.workflow.mortal import Moment, Mortal

SOME = 11
"""`make test` kills at every so-many-th boundary, `make test-all` at each."""


def carry_on(url: MysqlUrl, death: tuple[int, Moment] | None) -> int:
    """In a process of its own. Returns how it ended, as os.waitpid tells."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        Mortal(url, death).carry_on()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def undisturbed(url: MysqlUrl) -> tuple[int, dict[str, Any]]:
    with closing(Mortal(url)) as world:
        return world.carry_on(), world.end_state()


def end_state(url: MysqlUrl) -> dict[str, Any]:
    with closing(Mortal(url)) as world:
        return world.end_state()


def kill_at(url: MysqlUrl, boundary: int, commits: int, moment: Moment, expected: dict[str, Any]) -> None:
    with closing(store.connect(url)) as conn, store.transaction(conn):
        empty_all_tables(conn)
    how = carry_on(url, (boundary, moment))
    # The last one or two boundaries are only there when its timers make as many commits as undisturbed.
    is_near_the_end = boundary > commits - 2
    assert os.WIFSIGNALED(how) or is_near_the_end, f"it ended before its commit {boundary}"
    assert how == 0 or os.WTERMSIG(how) == signal.SIGKILL
    assert carry_on(url, None) == 0, f"killed {moment} commit {boundary}"

    found = end_state(url)
    assert Counter(found["business"]) == Counter(expected["business"]), f"killed {moment} commit {boundary}"
    found["business"] = expected["business"]  # agents go side by side: their order is free
    assert found == expected, f"killed {moment} commit {boundary}"


def test_the_rich_workflow_undisturbed_does_what_it_says(database: MysqlUrl) -> None:
    commits, found = undisturbed(database)

    assert commits > 80
    assert found["statuses"] == [
        ("agent", "completed"),
        ("agent", "completed"),
        ("child", "completed"),
        ("rich", "cancelled"),
    ]
    assert (found["state"]["sum"], found["state"]["chunks"], found["state"]["late"]) == (6, [0, 1, 2], True)
    assert found["state"]["agents"].keys() == {1, 2}
    assert found["business"][-7:-1] == [one for one in found["business"] if one.startswith("undo")]
    assert (found["business"][-1], found["unsent"][0]["n"], found["chunks"][0]["n"]) == ("cleaned", 0, 0)
    assert max(Counter(one for one in found["business"] if not one.startswith("undo")).values()) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_some_boundaries_it_ends_the_same(database: MysqlUrl, moment: Moment) -> None:
    commits, expected = undisturbed(database)
    for boundary in range(2, commits, SOME):
        kill_at(database, boundary, commits, moment, expected)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_each_boundary_it_ends_the_same(database: MysqlUrl, moment: Moment) -> None:
    commits, expected = undisturbed(database)
    for boundary in range(1, commits + 1):
        kill_at(database, boundary, commits, moment, expected)
    print(f"killed {moment} each of {commits} commits")
