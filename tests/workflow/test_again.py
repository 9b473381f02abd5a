"""What is tried again, and with what pauses: trouble of the database costs no tries, a handler's own failures are tried
again after a rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import MySQLdb
import pytest

from everest.errors import DocumentRefused, StepTimeout, TransientDatabaseError
from everest.workflow import again, control
from everest.workflow.builder import workflow
from everest.workflow.runner import run_step
from tests.workflow.world import MemoryWorld, MysqlWorld, World, gives

STORM = 20
"""Deadlocks one after another: more than any number of tries that somebody would allow."""


class Clock:
    """Time that passes while somebody rests, and then alone."""

    def __init__(self) -> None:
        self.now, self.rests = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr("tenacity.nap.time.sleep", clock.sleep)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    return clock


class Stormy:
    """A handler that the database refuses so often, first in each place."""

    def __init__(self, times: int, *places: Any) -> None:
        self.left = dict.fromkeys(places or (None,), times)
        self.number = 1213

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        if self.left.get(step.item, 0) > 0:
            self.left[step.item] -= 1
            raise MySQLdb.OperationalError(self.number, "Deadlock found when trying to get lock")
        step.tx.write(step.item or step.occasion or step.step)
        return {}


def test_a_storm_of_deadlocks_costs_a_step_none_of_its_tries(mysql_world: MysqlWorld, clock: Clock) -> None:
    built = workflow("stormy").then(Stormy(STORM), name="a").max_attempts(1).build()

    run_id = mysql_world.begin(built)

    assert (mysql_world.status(run_id), mysql_world.effects) == ("completed", ["a"])
    assert mysql_world.names(run_id, "failed", "retried") == []


def test_a_storm_of_deadlocks_costs_an_item_none_of_its_tries(mysql_world: MysqlWorld, clock: Clock) -> None:
    built = workflow("stormy").for_each("items", Stormy(STORM, "x", "y"), name="each").max_attempts(1).build()

    run_id = mysql_world.begin(built, {"items": ["x", "y", "z"]})

    assert (mysql_world.status(run_id), mysql_world.effects) == ("completed", ["x", "y", "z"])
    assert mysql_world.names(run_id, "failed", "retried") == []


def test_a_storm_of_deadlocks_costs_a_compensation_none_of_its_tries(mysql_world: MysqlWorld, clock: Clock) -> None:
    built = workflow("stormy").then(gives(), name="a", compensate_with=stormy_undo).wait_for_signal("go").build()
    run_id = mysql_world.begin(built)
    UNDO.left = {None: STORM}

    mysql_world.act(run_id, control.cancel)

    assert (mysql_world.run(run_id).compensation, mysql_world.effects) == ("done", ["a", "compensate"])


def test_a_storm_of_deadlocks_in_a_failure_handler_leaves_the_failure_and_what_it_does(
    mysql_world: MysqlWorld, clock: Clock
) -> None:
    storm = Stormy(STORM)

    def refuse(state: dict[str, Any], step: Any) -> None:
        raise DocumentRefused("salah")

    built = workflow("stormy").then(refuse, name="a").on_failure(lambda state, step, error: storm(state, step)).build()

    run_id = mysql_world.begin(built)

    assert mysql_world.status(run_id) == "failed"
    assert len(mysql_world.effects) == 1, "its handler committed with the end, once"
    assert mysql_world.names(run_id, "failure_handler_failed") == []


def test_trouble_that_lasts_ends_in_its_own_error_after_a_minute(world: World, clock: Clock) -> None:
    def never(state: dict[str, Any], step: Any) -> None:
        raise TransientDatabaseError("lost connection", 2013)

    built = workflow("never").then(never, name="a").build()
    world.start(built)
    ticket = world.deliver()

    with pytest.raises(TransientDatabaseError, match="2013"):
        world.step(ticket, "a", is_last_try=False)

    assert again.PATIENCE.total_seconds() <= clock.now < again.PATIENCE.total_seconds() + again.LONGEST_PAUSE_S
    assert len(set(clock.rests)) > 5 and max(clock.rests) <= again.LONGEST_PAUSE_S, "by chance, and bounded"


def test_trouble_that_takes_long_each_time_is_tried_some_times_all_the_same(clock: Clock) -> None:
    tries: list[int] = []

    def slow() -> None:
        tries.append(1)
        clock.now += 50
        raise TransientDatabaseError("lock wait timeout", 1205)

    with pytest.raises(TransientDatabaseError):
        again.when_transient(slow)

    assert len(tries) == again.TRIES_AT_LEAST


def test_an_item_that_fails_is_tried_again_after_growing_rests_and_behind_the_others(
    world: World, clock: Clock
) -> None:
    calls: list[tuple[str, float]] = []

    def shaky(state: dict[str, Any], step: Any) -> None:
        calls.append((step.item, clock.now))
        if step.item == "x" and len([one for one, _ in calls if one == "x"]) < 3:
            raise RuntimeError("putus")

    built = workflow("shaky").for_each("items", shaky, name="each").max_attempts(3).build()
    run_id = world.start(built, {"items": ["x", "y", "z"]})

    run_step(built, world.deliver(), "each", world.transaction, True, branch="0", rest=clock.sleep)

    assert world.status(run_id) == "completed"
    assert [one for one, _ in calls] == ["x", "y", "z", "x", "x"]
    times = [at for one, at in calls if one == "x"]
    assert 0.7 < times[1] - times[0] < times[2] - times[1] < 3


def test_a_run_that_is_paused_while_an_item_rests_does_not_try_it_again(world: World, clock: Clock) -> None:
    calls: list[str] = []

    def fails(state: dict[str, Any], step: Any) -> None:
        calls.append(step.item)
        raise RuntimeError("putus")

    def paused_meanwhile(seconds: float) -> None:
        world.meanwhile(run_id, control.pause)

    built = workflow("shaky").for_each("items", fails, name="each").max_attempts(3).build()
    run_id = world.start(built, {"items": ["x"]})

    run_step(built, world.deliver(), "each", world.transaction, True, branch="0", rest=paused_meanwhile)

    assert (calls, world.status(run_id)) == (["x"], "paused")


def test_a_compensation_that_fails_is_tried_again_after_growing_rests(world: World, clock: Clock) -> None:
    built = workflow("undone").then(gives(), name="a", compensate_with=failing_undo).wait_for_signal("go").build()
    run_id = world.begin(built)
    world.do(run_id, control.cancel)

    assert control.compensate_all(world.transaction, run_id, world.deployed, clock.sleep) is False

    assert world.run(run_id).compensation == "failed"
    assert len(clock.rests) == 2 and clock.rests[0] < clock.rests[1]


def test_a_handler_of_an_end_that_calls_itself_worth_another_try_cannot_keep_the_end_from_being_recorded() -> None:
    world = MemoryWorld()

    def late(state: dict[str, Any], step: Any) -> None:
        raise StepTimeout("the mail server")

    built = workflow("due").wait_for_signal("go").must_complete_within(timedelta(hours=1)).on_deadline(late).build()
    run_id = world.begin(built)
    world.database.move_clock(timedelta(hours=2))

    assert world.do(run_id, control.expire)
    assert (world.status(run_id), world.events(run_id)[-1]["event"]) == ("failed", "deadline_handler_failed")


UNDO = Stormy(0)


def stormy_undo(state: dict[str, Any], step: Any) -> None:
    UNDO(state, step)


def failing_undo(state: dict[str, Any], step: Any) -> None:
    raise RuntimeError("putus")
