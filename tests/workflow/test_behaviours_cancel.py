"""Behaviours 62 to 69: ending a run by hand, and undoing what it did."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from everest.errors import Conflict
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.ticket import Fenced
from tests.workflow.world import MysqlWorld, World, gives


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write(["undo", state])


def cleans(state: dict[str, Any], step: Any) -> None:
    step.tx.write(["clean", state])


def undone(world: World) -> list[Any]:
    return [one for one in world.effects if isinstance(one, list)]


def fails(state: dict[str, Any], step: Any) -> None:
    raise RuntimeError("putus")


@pytest.mark.parametrize("first", ["running", "paused", "waiting_for_signal", "failed", "delayed"])
def test_062_a_cancel_ends_a_run_that_is_not_final(world: World, first: str) -> None:
    built = workflow("ends").then(gives(a=1), name="a").max_attempts(1)
    if first == "failed":
        built = built.then(fails)
    elif first == "waiting_for_signal":
        built = built.wait_for_signal("go")
    elif first == "delayed":
        built = built.delay(60)
    run_id = world.start(built.then(gives(z=1), name="z").build())
    if first == "paused":
        world.do(run_id, control.pause)
    elif first != "running":
        world.walk()
    assert world.status(run_id) == ("running" if first == "delayed" else first)

    world.act(run_id, control.cancel, "budi", "salah unggah")

    run = world.run(run_id)
    assert (run.status, run.error_code, world.job(run_id)) == ("cancelled", 499, "CANCELLED")
    assert world.error(run_id) == "dibatalkan oleh budi: salah unggah"
    assert (world.messages(run_id), "z" in world.effects) == ([], False)
    (event,) = [one for one in world.events(run_id) if one["event"] == "cancelled"]
    assert event["detail"] == {"actor": "budi", "reason": "salah unggah"}


def test_062_a_step_in_flight_cannot_commit_any_more(world: World) -> None:
    built = workflow("flies").then(gives(a=1), name="a").then(gives(z=1), name="z").build()
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, built, ticket, "a")
    world.do(run_id, control.cancel, "budi")

    def commits() -> None:
        with world.transaction() as tx:
            tx.write("leaked")
            engine.settle(tx, built, start.token, {"a": 1})

    with pytest.raises(Fenced, match="cancelled"):
        commits()

    assert (world.status(run_id), world.state(run_id), world.effects) == ("cancelled", {}, [])


def test_062_a_cancel_does_not_wait_for_the_step_at_work_and_undoes_what_was_done_before(
    mysql_world: MysqlWorld,
) -> None:
    world = mysql_world

    def is_cancelled_at_work(state: dict[str, Any], step: Any) -> dict[str, Any]:
        world.meanwhile(step.workflow_id, control.cancel, "budi")
        step.tx.write("leaked")
        return {"b": 2}

    built = workflow("busy").then(gives(a=1), name="a", compensate_with=undo).then(is_cancelled_at_work).build()
    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id)) == ("cancelled", {"a": 1})
    assert world.effects == ["a", ["undo", {"a": 1}]]


def test_063_the_cleanup_handler_gets_the_public_state_only(world: World) -> None:
    built = workflow("cleans").then(gives(a=1, _b=2), name="a").wait_for_signal("go").on_cancel(cleans).build()
    run_id = world.begin(built, {"p": 0, "_secret": 1})

    world.act(run_id, control.cancel)

    assert undone(world) == [["clean", {"p": 0, "a": 1}]]
    assert world.run(run_id).compensation == "done"


def test_064_a_run_that_has_ended_cannot_be_cancelled(world: World) -> None:
    done = world.begin(workflow("done").then(gives(a=1), name="a").build())
    twice = world.start(workflow("twice").then(gives(a=1), name="a").build())
    world.act(twice, control.cancel)

    with pytest.raises(Conflict, match="is completed"):
        world.do(done, control.cancel)
    with pytest.raises(Conflict, match="is cancelled"):
        world.do(twice, control.cancel)


def test_065_compensations_run_newest_first_over_snapshots_without_private_keys(world: World) -> None:
    built = (
        workflow("undoes")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(gives(b=2), name="plain")
        .then(gives(a=3), name="c", compensate_with=undo)
        .wait_for_signal("go")
        .then(gives(z=1), name="z", compensate_with=undo)
        .on_cancel(cleans)
        .build()
    )
    run_id = world.begin(built, {"p": 0, "_secret": 1})

    world.act(run_id, control.cancel)

    assert undone(world) == [
        ["undo", {"p": 0, "a": 3, "b": 2}],
        ["undo", {"p": 0, "a": 1}],
        ["clean", {"p": 0, "a": 3, "b": 2}],
    ]


def test_065_every_pass_of_a_loop_is_undone_once(world: World) -> None:
    def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"n": state.get("n", 0) + 1}

    built = (
        workflow("loops")
        .then(counts, compensate_with=undo)
        .repeat_until("counts", "n", 3)
        .wait_for_signal("go")
        .build()
    )
    run_id = world.begin(built)

    world.act(run_id, control.cancel)

    assert undone(world) == [["undo", {"n": 3}], ["undo", {"n": 2}], ["undo", {"n": 1}]]


def test_066_after_a_failure_they_run_where_the_workflow_says_so_and_that_is_its_end(world: World) -> None:
    built = (
        workflow("all_or_nothing")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(fails)
        .max_attempts(1)
        .compensate_on_failure()
        .build()
    )

    run_id = world.begin(built)

    assert (world.status(run_id), world.run(run_id).compensation) == ("failed", "done")
    assert undone(world) == [["undo", {"a": 1}]]
    with pytest.raises(Conflict, match="already been compensated"):
        world.do(run_id, control.retry)


def test_067_without_that_nothing_is_undone_and_a_retry_works(world: World) -> None:
    failures = [1]

    def flaky(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise RuntimeError("putus")
        return {"b": 2}

    built = workflow("keeps").then(gives(a=1), name="a", compensate_with=undo).then(flaky).max_attempts(1).build()
    run_id = world.begin(built)
    assert (world.status(run_id), world.run(run_id).compensation, undone(world)) == ("failed", None, [])

    world.act(run_id, control.retry)

    assert (world.status(run_id), world.state(run_id), undone(world)) == ("completed", {"a": 1, "b": 2}, [])


def test_068_the_snapshot_of_a_wait_holds_the_signal_and_that_of_a_nested_run_its_keys(world: World) -> None:
    child = workflow("child").then(gives(c=3), name="work").build()
    built = (
        workflow("deep")
        .wait_for_signal("go", compensate_with=undo)
        .run_workflow(child, compensate_with=undo)
        .wait_for_signal("end")
        .build()
    )
    run_id = world.begin(built)
    world.signal(run_id, "go", {"s": 1})

    world.act(run_id, control.cancel)

    assert undone(world) == [["undo", {"s": 1, "c": 3}], ["undo", {"s": 1}]]


def test_068_a_nested_run_that_is_cancelled_along_undoes_its_own_steps(world: World) -> None:
    child = workflow("child").then(gives(c=3), name="work", compensate_with=undo).wait_for_signal("go").build()
    built = workflow("parent").then(gives(a=1), name="a", compensate_with=undo).run_workflow(child).build()
    run_id = world.begin(built)
    (child_id,) = world.children(run_id)

    world.act(run_id, control.cancel)

    assert [world.run(one).compensation for one in (run_id, child_id)] == ["done", "done"]
    assert sorted(undone(world), key=str) == [["undo", {"a": 1, "c": 3}], ["undo", {"a": 1}]]


def test_069_handlers_of_both_kinds_receive_arguments_of_their_own(world: World) -> None:
    def returns(state: dict[str, Any], step: Any, shelf: str) -> None:
        step.tx.write(["returned to", shelf])

    def tells(state: dict[str, Any], step: Any, who: str) -> None:
        step.tx.write(["told", who])

    built = (
        workflow("arguments")
        .then(gives(a=1), name="a", compensate_with=partial(returns, shelf="B-2"))
        .wait_for_signal("go")
        .on_cancel(partial(tells, who="gudang"))
        .build()
    )
    run_id = world.begin(built)

    world.act(run_id, control.cancel)

    assert undone(world) == [["returned to", "B-2"], ["told", "gudang"]]


def test_065_a_compensation_that_keeps_failing_is_shown_and_can_be_tried_again_by_hand(world: World) -> None:
    failures = [1, 1, 1]

    def sticks(state: dict[str, Any], step: Any) -> None:
        step.tx.write(["tried"])
        if failures:
            failures.pop()
            raise RuntimeError("gudang terkunci")
        step.tx.write(["undone"])

    built = (
        workflow("sticks")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(gives(b=1), name="b", compensate_with=sticks)
        .wait_for_signal("go")
        .max_attempts(3)
        .build()
    )
    run_id = world.begin(built)
    world.act(run_id, control.cancel)
    world.compensate()

    with world.transaction() as tx:
        stack = {one.step: (one.status, one.attempts) for one in tx.runs.compensations(run_id)}
        error = next(one.error for one in tx.runs.compensations(run_id) if one.step == "b")
    assert (world.run(run_id).compensation, stack) == ("failed", {"a": ("pending", 0), "b": ("failed", 3)})
    assert "gudang terkunci" in error["message"]
    assert undone(world) == [], "what failed tries wrote is gone, and nothing older is undone before the newer one"

    world.act(run_id, control.compensate, "budi")

    assert world.run(run_id).compensation == "done"
    assert undone(world) == [["tried"], ["undone"], ["undo", {"a": 1}]]
