"""Behaviours 54 to 61: waiting for other runs, and handing work to them."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.workflow import control, family
from everest.workflow.builder import workflow
from everest.workflow.runner import run_step
from tests.workflow.world import MysqlWorld, World, gives


def held(world: World, count: int) -> list[int]:
    """Runs that complete when they get the signal `go`, or fail with `{"bad": True}`."""

    def ends(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if state.get("bad"):
            raise DocumentRefused("salah")
        return {"done": state["number"], "_hidden": 1}

    built = workflow("held").wait_for_signal("go").then(ends).build()
    return [world.begin(built, {"number": number}) for number in range(count)]


def test_054_a_wait_for_another_run_ends_with_its_public_state(world: World) -> None:
    (other,) = held(world, 1)
    run_id = world.begin(
        workflow("waits").wait_for_workflow(other, result_key="other").then(gives(z=1), name="z").build()
    )
    assert (world.status(run_id), world.waiting(run_id)["remaining"]) == ("waiting_for_workflows", [other])
    assert (world.job(run_id), world.messages(run_id)) == ("WAITING", [])

    world.signal(other, "go")

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"other": {"number": 0, "done": 0}, "z": 1})


def test_054_a_run_that_is_completed_already_is_not_waited_for(world: World) -> None:
    (other,) = held(world, 1)
    world.signal(other, "go")

    run_id = world.begin(workflow("late").wait_for_workflow(other).build())

    assert (world.status(run_id), world.run(run_id).n) == ("completed", 1)


def test_055_any_resumes_at_the_first_completion_with_only_that_one(world: World) -> None:
    others = held(world, 2)
    run_id = world.begin(workflow("any").wait_for_workflows(others, mode="any", result_key="first").build())

    world.signal(others[1], "go")

    assert world.status(run_id) == "completed"
    assert list(world.state(run_id)["first"]) == [str(others[1])]


def test_056_a_quorum_resumes_after_the_second_of_three(world: World) -> None:
    others = held(world, 3)
    built = workflow("most").wait_for_workflows(others, mode="quorum", quorum=2, result_key="came").build()
    run_id = world.begin(built)

    world.signal(others[2], "go")

    waiting = world.waiting(run_id)
    assert (world.status(run_id), waiting["matched"], waiting["remaining"]) == ("waiting_for_workflows", 1, others[:2])
    world.signal(others[0], "go")
    assert world.status(run_id) == "completed"
    assert set(world.state(run_id)["came"]) == {str(others[0]), str(others[2])}


def test_057_the_ids_may_stand_in_the_state(world: World) -> None:
    others = held(world, 2)
    one = workflow("one").wait_for_workflow("which", result_key="other").build()
    several = workflow("several").wait_for_workflows("which").build()
    waits = [world.begin(one, {"which": others[0]}), world.begin(several, {"which": others})]
    wrong = [world.begin(one, {}), world.begin(one, {"which": "x"}), world.begin(one, {"which": 999})]

    for other in others:
        world.signal(other, "go")

    assert [world.status(run_id) for run_id in waits] == ["completed", "completed"]
    assert world.state(waits[0])["other"]["done"] == 0
    assert [world.status(run_id) for run_id in wrong] == ["failed"] * 3
    assert "'which'" in world.error(wrong[0])
    assert "999" in world.error(wrong[2])


def test_058_a_wait_that_has_become_impossible_fails_and_not_before(world: World) -> None:
    others = held(world, 3)
    every = world.begin(workflow("every").wait_for_workflows(others).build())
    most = world.begin(workflow("most").wait_for_workflows(others, mode="quorum", quorum=2).build())

    world.signal(others[0], "go", {"bad": True})
    assert [world.status(one) for one in (every, most)] == ["failed", "waiting_for_workflows"]
    assert f"{others[0]} failed" in world.error(every)
    world.act(others[1], control.cancel, "budi")

    assert world.status(most) == "failed"
    assert f"{others[1]} cancelled" in world.error(most)


def test_058_a_ring_is_refused_when_it_would_close(world: World) -> None:
    built = workflow("ring").wait_for_signal("go").wait_for_workflow("other").build()
    first = world.begin(built)
    second = world.begin(built)
    world.signal(first, "go", {"other": second})
    world.signal(second, "go", {"other": first})

    assert "ring" in world.error(second)
    assert [world.status(one) for one in (first, second)] == ["failed", "failed"]
    itself = world.begin(built)
    world.signal(itself, "go", {"other": itself})
    assert world.status(itself) == "failed"


def test_058_a_wait_for_runs_ends_by_its_timeout_too(world: World) -> None:
    others = held(world, 1)
    run_id = world.begin(workflow("late").wait_for_workflows(others, timeout=timedelta(hours=1)).build())

    world.pass_time(timedelta(hours=1))

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)


AGENT = workflow("agent", version="7").wait_for_signal("go").then(gives(done=True), name="work").build()


def test_059_one_independent_run_per_item_and_the_parent_goes_on(world: World) -> None:
    built = workflow("hands_off").start_workflows("items", AGENT).then(gives(z=1), name="z").build()

    run_id = world.begin(built, {"items": ["x", "y"], "p": 0})

    assert world.status(run_id) == "completed"
    children = world.children(run_id)
    assert world.state(run_id)["started_workflow_ids"] == children
    for index, child_id in enumerate(children):
        child = world.run(child_id)
        assert (child.status, child.version, child.workflow) == ("waiting_for_signal", "7", "agent")
        assert (child.parent_id, child.parent_step, child.parent_index) == (run_id, None, index)
        assert child.payload == {"items": ["x", "y"], "p": 0, "item": "xy"[index], "start_item_index": index}


def test_059_without_inheritance_a_child_gets_its_item_only(world: World) -> None:
    built = workflow("alone").start_workflows("items", AGENT, payload_key="which", inherit_state=False).build()

    run_id = world.begin(built, {"items": ["x"], "p": 0})

    (child_id,) = world.children(run_id)
    assert world.run(child_id).payload == {"which": "x", "start_item_index": 0}


def test_059_any_number_of_tries_starts_one_child_per_item(world: World) -> None:
    built = workflow("tries").start_workflows("items", AGENT).then(gives(z=1), name="z").build()
    run_id = world.start(built, {"items": ["x", "y"]})
    ticket = world.deliver()

    class Lost(Exception):
        pass

    opened: list[int] = []

    @contextmanager
    def loses_the_second_commit() -> Any:
        opened.append(1)
        with world.transaction() as tx:
            yield tx
            if len(opened) == 2:
                raise Lost

    with pytest.raises(Lost):
        run_step(built, ticket, "start_workflows", loses_the_second_commit, is_last_try=False)
    assert world.children(run_id) == [], "children are rows of the step's own transaction"
    world.step(ticket, "start_workflows")

    assert len(world.children(run_id)) == 2
    assert world.state(run_id)["started_workflow_ids"] == world.children(run_id)


def test_060_started_runs_can_be_waited_for(world: World) -> None:
    built = workflow("gathers").start_workflows("items", AGENT).wait_for_workflows("started_workflow_ids").build()
    run_id = world.begin(built, {"items": ["x", "y"]})
    children = world.children(run_id)

    for child_id in reversed(children):
        world.signal(child_id, "go")

    results = world.state(run_id)["workflows"]
    assert world.status(run_id) == "completed"
    assert {key: one["start_item_index"] for key, one in results.items()} == {
        str(children[0]): 0,
        str(children[1]): 1,
    }
    assert all(one["done"] for one in results.values())


def test_061_agents_have_keys_of_their_own(world: World) -> None:
    built = workflow("agents").start_agents("items", AGENT).wait_for_agents().build()
    run_id = world.begin(built, {"items": ["x"]})
    (child_id,) = world.children(run_id)

    world.signal(child_id, "go")

    assert list(world.state(run_id)["agent_results"]) == [str(child_id)]
    assert world.state(run_id)["started_workflow_ids"] == [child_id]


@pytest.mark.parametrize(("bad", "status"), [((), "completed"), ((0,), "completed"), ((0, 1), "failed")])
def test_061_a_group_with_a_quorum_resumes_at_two_and_fails_when_two_of_three_failed(
    world: World, bad: tuple[int, ...], status: str
) -> None:
    def work(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if state["start_item_index"] in bad:
            raise DocumentRefused("salah")
        return {"done": True}

    agent = workflow("member").wait_for_signal("go").then(work).build()
    built = (
        workflow("group")
        .start_agents("items", agent, group_key="batch")
        .wait_for_workflow_group("batch", mode="quorum", quorum=2)
        .then(gives(z=1), name="z")
        .build()
    )
    run_id = world.begin(built, {"items": ["x", "y", "w"], "batch": "batch-9"})
    children = world.children(run_id)
    assert {world.run(one).group_key for one in children} == {"batch-9"}
    world.signal(children[0], "go")
    assert world.status(run_id) == "waiting_for_workflows"
    world.signal(children[1], "go")
    if len(bad) == 1:
        assert world.status(run_id) == "waiting_for_workflows"
        world.signal(children[2], "go")

    assert world.status(run_id) == status
    if status == "completed":
        assert len(world.state(run_id)["group_results"]) == 2


@pytest.mark.parametrize("mode", ["all", "any"])
def test_the_end_of_one_costs_its_waiter_the_same_however_many_it_waits_for(mysql_world: MysqlWorld, mode: Any) -> None:
    """Five hundred that end would else read each other half a million times, under the waiter's lock."""
    world, costs = mysql_world, []
    for count in (2, 12):
        ids = held(world, count)
        world.begin(workflow(f"waits_for_{count}").wait_for_workflows("ids", mode=mode).build(), {"ids": ids})
        with world.transaction() as tx:
            run, waiters = family.lock_with_waiters(tx, ids[0])
            run.status, run.finished_at = "completed", tx.now
            tx.runs.save(run)
            before = statements(tx)
            family.wake(tx, waiters)
            costs.append(statements(tx) - before)

    assert costs[0] == costs[1]


def statements(tx: Any) -> int:
    with tx.conn.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
        row = cursor.fetchone()
        return int(row["Value"] if isinstance(row, dict) else row[1])


@pytest.mark.parametrize("ids", [[], "two"])
def test_a_wait_for_one_workflow_refuses_a_list_of_none_or_several(world: World, ids: Any) -> None:
    child = workflow("child").then(gives(a=1), name="a").build()
    found = [world.start(child) for _ in range(2)] if ids == "two" else ids
    run_id = world.begin(
        workflow("waits").wait_for_workflow("ids", name="other").max_attempts(1).build(), {"ids": found}
    )

    assert world.status(run_id) == "failed"
    assert f"names {len(found)} workflows" in world.error(run_id)
