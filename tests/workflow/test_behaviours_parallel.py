"""Behaviours 18 to 21: branches run side by side, merge when they commit, and hand on once."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.runner import run_step
from everest.workflow.ticket import Forward, Go, Leave, Replay
from tests.workflow.world import MysqlWorld, World, gives

GROUP = (
    workflow("group")
    .then(gives(a=1), name="first")
    .parallel({"left": gives(b=2), "right": gives(c=3)}, name="both")
    .then(gives(d=4), name="last")
    .build()
)


def test_018_both_branches_are_there_to_run_at_once_and_nothing_else(world: World) -> None:
    world.start(GROUP)
    ticket = world.deliver()
    world.step(ticket, "first")

    with world.transaction() as tx:
        begun = [engine.begin(tx, GROUP, ticket, "both", branch) for branch in ("left", "right")]
        after = engine.begin(tx, GROUP, ticket, "last")

    assert all(isinstance(one, Go) for one in begun)
    assert after == Leave("the workflow stands at both")


def test_018_branches_in_two_sessions_commit_side_by_side(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    meet = threading.Barrier(2, timeout=20)

    def meets(state: dict[str, Any], step: Any) -> dict[str, Any]:
        meet.wait()  # breaks, and with it the test, if one branch waits for the other's commit
        step.tx.write(step.branch)
        return {step.branch: 1}

    built = workflow("together").parallel({"left": meets, "right": meets}).then(gives(z=1), name="last").build()
    run_id = world.start(built)
    ticket = world.deliver()
    results: list[Any] = []

    def branch(name: str) -> None:
        results.append(run_step(built, ticket, "parallel", world.another().transaction, True, branch=name))

    workers = [threading.Thread(target=branch, args=(name,)) for name in ("left", "right")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)

    assert sorted(map(repr, results)) == sorted(map(repr, [Replay(), Forward("last")]))
    assert sorted(world.effects) == ["left", "right"]
    world.step(ticket, "last")
    assert world.state(run_id) == {"left": 1, "right": 1, "z": 1}


def test_019_after_one_branch_the_run_still_stands_there_and_after_both_it_goes_on(world: World) -> None:
    run_id = world.start(GROUP)
    ticket = world.deliver()
    world.step(ticket, "first")

    assert world.step(ticket, "both", "right") == Replay()
    assert (world.run(run_id).current_step, world.state(run_id)) == ("both", {"a": 1, "c": 3})
    assert world.step(ticket, "both", "right") == Replay(), "a recorded branch does not run again"
    assert world.step(ticket, "both", "left") == Forward("last")
    assert world.effects == ["first", "right", "left"]


def test_020_all_outputs_and_the_payload_are_in_the_state_afterwards(world: World) -> None:
    run_id = world.begin(GROUP, {"p": 0})
    only = world.begin(workflow("only").parallel([one, two]).build(), {"p": 0})

    assert world.state(run_id) == {"p": 0, "a": 1, "b": 2, "c": 3, "d": 4}
    assert world.effects.count("last") == 1
    assert (world.status(only), world.state(only)) == ("completed", {"p": 0, "one": 1, "two": 2})


def one(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"one": 1}


def two(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"two": 2}


def test_020_a_retry_runs_only_the_branch_that_failed(world: World) -> None:
    failures = [1]

    def right(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise RuntimeError("putus")
        return {"right": 1}

    built = workflow("half").parallel({"left": gives(left=1), "right": right}).max_attempts(1).build()
    run_id = world.begin(built)
    assert (world.status(run_id), world.state(run_id)) == ("failed", {"left": 1})

    world.act(run_id, control.retry)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"left": 1, "right": 1})
    assert world.effects == ["left"]


def _price(state: dict[str, Any], step: Any, region: str) -> dict[str, Any]:
    """Fetches the prices of a region."""
    return {region: step.attempt}


def test_021_a_branch_has_its_own_payload_and_the_groups_options_reach_its_task(world: World) -> None:
    from everest.workflow.airflow_dag import to_dag

    built = (
        workflow("prices")
        .parallel(
            {"jawa": partial(_price, region="jawa"), "bali": partial(_price, region="bali")},
            timeout=timedelta(minutes=5),
        )
        .on_queue("slow")
        .with_priority("high")
        .max_attempts(4)
        .build()
    )
    run_id = world.begin(built)

    assert world.state(run_id) == {"jawa": 1, "bali": 1}
    tasks = [to_dag(built).get_task(f"parallel.{name}") for name in ("jawa", "bali")]
    for task in tasks:
        assert (task.queue, task.priority_weight, task.retries) == ("slow", world.run(run_id).priority, 3)
        assert task.execution_timeout == timedelta(minutes=5)


@pytest.mark.parametrize("first", ["speaks", "silent"])
@pytest.mark.parametrize("key", ["_next_step", "_response"])
def test_a_branch_cannot_say_where_the_run_goes_whichever_commits_last(world: World, first: str, key: str) -> None:
    branches = {"speaks": gives(**{key: "z"}), "silent": gives(a=1)}
    ordered = {name: branches[name] for name in sorted(branches, key=lambda name: name != first)}
    built = workflow("group").parallel(ordered, name="both").then(gives(z=1), name="z").max_attempts(1).build()

    run_id = world.begin(built)

    assert world.status(run_id) == "failed"
    assert "branch speaks returns " + key in world.error(run_id)
