"""Behaviours 70 to 75: idempotency keys, budgets, pruning, deadlines."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import Conflict, DocumentRefused
from everest.workflow import control, starts
from everest.workflow.builder import workflow
from everest.workflow.ticket import BudgetExceeded
from tests.workflow.world import MysqlWorld, World, gives

KEYED = workflow("keyed").then(gives(a=1), name="a").build()
TEMPLATED = workflow("templated").then(gives(a=1), name="a").idempotency_key("{k}").build()


def test_070_a_key_with_the_same_payload_is_the_same_run(world: World) -> None:
    first = world.start(KEYED, {"x": 1, "y": [1, 2]}, key="k")
    again = world.start(KEYED, {"y": (1, 2), "x": 1}, key="k")

    assert (again, world.all_runs(), len(world.messages(first))) == (first, [first], 1)
    assert len(world.run(first).definition_hash) == 64
    world.walk()
    assert (world.start(KEYED, {"x": 1, "y": [1, 2]}, key="k"), world.effects) == (first, ["a"])


@pytest.mark.parametrize("other", [{"x": 2}, {"x": True}, {"x": 1, "y": None}, {}])
def test_070_a_key_with_another_payload_is_a_conflict(world: World, other: dict[str, Any]) -> None:
    first = world.start(KEYED, {"x": 1}, key="k")

    with pytest.raises(Conflict, match=f"belongs to run {first}"):
        world.start(KEYED, other, key="k")

    assert (world.all_runs(), len(world.messages(first))) == ([first], 1)


def test_070_keys_of_two_workflows_do_not_meet(world: World) -> None:
    other = workflow("other").then(gives(), name="a").idempotency_key("{k}").build()

    runs = [world.start(KEYED, {"k": "same"}, key="same"), world.start(other, {"k": "same"})]

    assert len(set(runs)) == 2
    assert [world.run(one).idempotency_key for one in runs] == ["same", "same"]


@pytest.mark.parametrize("key", ["7:start_workflows:1:0", "7:child:1"])
def test_070_a_key_that_only_a_step_may_give_is_refused_with_a_sentence(world: World, key: str) -> None:
    """By such a key a step finds the run that an earlier try of it has begun; a person's run would be taken for it."""
    for definition, payload, given in ((KEYED, {}, key), (TEMPLATED, {"k": key}, None)):
        with pytest.raises(DocumentRefused, match="kept for the runs that a step begins; choose another"):
            world.start(definition, payload, key=given)

    assert world.all_runs() == []


@pytest.mark.parametrize("key", ["7", "7:8", "2026-01:child:x", "a:child:1", "7:child:1:0:0"])
def test_070_any_other_key_is_a_persons_own(world: World, key: str) -> None:
    assert world.run(world.start(KEYED, {}, key=key)).idempotency_key == key


def test_070_a_run_of_before_that_has_the_key_of_a_step_is_not_taken_for_its_child(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = workflow("child").then(gives(), name="work").build()
    parent = workflow("parent").then(gives(items=[1]), name="first").start_workflows("items", child).build()
    parent_id = world.start(parent)
    with monkeypatch.context() as before:
        before.setattr(starts, "_KEY_OF_A_STEP", re.compile("nothing"))
        strange = world.start(child, {}, key=f"{parent_id}:start_workflows:1:0")

    world.walk()

    assert (world.status(parent_id), world.status(strange)) == ("failed", "completed")
    assert f"run {strange} of workflow child" in (world.run(parent_id).error or {})["message"]
    assert world.children(parent_id) == []


@pytest.mark.parametrize("payload", [{"x": 1}, {"x": 2}])
def test_070_two_senders_at_once_start_one_run(mysql_world: MysqlWorld, payload: dict[str, Any]) -> None:
    """The second looks before the first has committed, and finds nothing."""
    world = mysql_world
    world.know(KEYED)
    has_looked, found = threading.Event(), []

    def second() -> None:
        with world.another().transaction() as tx:
            find, looks = tx.runs.find, [tx.runs.find("keyed", "k")]
            tx.runs.find = lambda *key: looks.pop() if looks else find(*key)
            has_looked.set()
            try:
                found.append(control.dispatch(tx, KEYED, payload, "k").workflow_id)
            except Conflict as conflict:
                found.append(conflict.message)

    with world.transaction() as tx:
        first = control.dispatch(tx, KEYED, {"x": 1}, "k").workflow_id
        worker = threading.Thread(target=second)
        worker.start()
        assert has_looked.wait(20)
    worker.join(30)

    if payload == {"x": 1}:
        assert found == [first]
    else:
        assert f"belongs to run {first}" in found[0]
    assert (world.all_runs(), len(world.messages(first))) == ([first], 1)
    assert world.run(first).payload == {"x": 1}
    assert len(world.rows("SELECT id FROM rabbit_publish_shadow")) == 1


def test_071_more_items_than_allowed_fail_the_run_before_one_is_touched(world: World) -> None:
    built = workflow("many").for_each("items", gives(), name="each").max_for_each_items(2).build()

    run_id = world.begin(built, {"items": [1, 2, 3]})

    assert (world.status(run_id), world.run(run_id).error_code, world.effects) == ("failed", 422, [])
    assert world.status(world.begin(built, {"items": [1, 2]})) == "completed"


def test_071_transitions_are_counted_and_the_one_too_many_is_taken_back(world: World) -> None:
    built = workflow("short").then(gives(a=1), name="a").then(gives(b=2), name="b").max_transitions(1).build()
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")
    assert (world.status(run_id), world.run(run_id).transitions) == ("running", 1)

    with pytest.raises(BudgetExceeded, match="max_transitions allows 1"):
        world.step(ticket, "b", is_last_try=False)

    assert (world.status(run_id), world.run(run_id).transitions) == ("failed", 1)
    assert (world.state(run_id), world.effects) == ({"a": 1}, ["a"])


def test_071_a_loop_fails_at_the_transition_behind_its_cap(world: World) -> None:
    calls: list[int] = []

    def works(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(step.visit)
        step.tx.write(step.visit)
        return {"more": True}

    run_id = world.begin(workflow("spins").then(works).repeat_while("works", "more").max_transitions(3).build())

    assert (world.status(run_id), world.run(run_id).transitions) == ("failed", 3)
    assert (calls, world.effects) == ([1, 2], [1, 2]), "work, loop, work; the second jump back is the fourth"


def test_072_a_state_that_grows_too_large_fails_with_its_first_step(world: World) -> None:
    built = workflow("grows").then(gives(text="x" * 60), name="a").max_state_bytes(64).build()
    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id), world.effects) == ("failed", {}, [])
    assert "max_state_bytes allows 64" in world.error(run_id)
    small = workflow("small").then(gives(text="x" * 40), name="a").max_state_bytes(64).build()
    assert world.status(world.begin(small)) == "completed"


def test_073_more_starts_than_allowed_leave_no_id_and_no_child(world: World) -> None:
    agent = workflow("agent").then(gives(), name="work").build()
    built = workflow("starts").start_workflows("items", agent).max_started_workflows(1).build()

    run_id = world.begin(built, {"items": ["x", "y"]})

    assert (world.status(run_id), world.children(run_id), world.effects) == ("failed", [], [])
    assert world.state(run_id) == {"items": ["x", "y"]}


def test_074_keys_that_nobody_wrote_for_long_are_dropped(world: World) -> None:
    built = workflow("prunes").prune_state_after(2)
    for number, name in enumerate("abcd"):
        built = built.then(gives(**{name: number}), name=name)
    run_id = world.start(built.build(), {"p": 0})
    ticket = world.deliver()
    seen = []
    for name in "abcd":
        world.step(ticket, name)
        seen.append("".join(sorted(world.state(run_id))))

    assert seen == ["ap", "abp", "bcp", "cdp"]


def test_074_a_key_lives_as_long_as_its_last_writer_and_nothing_is_dropped_unasked(world: World) -> None:
    def chain(name: str) -> Any:
        built = workflow(name).then(gives(a=1), name="a").then(gives(b=1), name="b").then(gives(a=2, p=9), name="c")
        return built.then(gives(d=1), name="d")

    pruned = world.begin(chain("rewrites").prune_state_after(2).build(), {"p": 0})
    whole = world.begin(chain("keeps").build(), {"p": 0})

    assert world.state(pruned) == {"p": 9, "a": 2, "d": 1}
    assert world.state(whole) == {"p": 9, "a": 2, "b": 1, "d": 1}


def test_074_the_payload_stays_even_when_a_step_wrote_it_long_ago(world: World) -> None:
    built = workflow("initial").prune_state_after(1).then(gives(p=1), name="a")
    for name in "bcd":
        built = built.then(gives(), name=name)

    assert world.state(world.begin(built.build(), {"p": 0})) == {"p": 1}


def late(state: dict[str, Any], step: Any) -> None:
    step.tx.write(["late", state])


@pytest.mark.parametrize("waits", [False, True])
def test_075_a_missed_deadline_fails_the_run_and_its_handler_gets_the_state(world: World, waits: bool) -> None:
    start = workflow("hurries").then(gives(a=1), name="a")
    start = start.wait_for_signal("go") if waits else start.delay(days=9)
    run_id = world.begin(start.must_complete_within(timedelta(hours=1)).on_deadline(late).build(), {"_secret": 1})

    assert world.do(run_id, control.expire) is False
    world.pass_time(timedelta(hours=1))
    assert world.do(run_id, control.expire) is True

    assert (world.status(run_id), world.run(run_id).error_code, world.job(run_id)) == ("failed", 504, "FAILED")
    assert world.effects == ["a", ["late", {"a": 1}]]
    assert world.do(run_id, control.expire) is False, "once"


def test_075_a_completed_run_and_one_without_a_deadline_are_left_alone(world: World) -> None:
    done = world.begin(workflow("done").then(gives(), name="a").must_complete_within(timedelta(hours=1)).build())
    free = world.begin(workflow("free").wait_for_signal("go").build())
    world.pass_time(timedelta(days=9))

    assert [world.do(one, control.expire) for one in (done, free)] == [False, False]
    assert [world.status(one) for one in (done, free)] == ["completed", "waiting_for_signal"]


def test_075_a_pause_stops_the_clock(world: World) -> None:
    built = workflow("rests").wait_for_signal("go").must_complete_within(timedelta(hours=2)).build()
    run_id = world.begin(built)
    world.pass_time(timedelta(hours=1))
    world.act(run_id, control.pause)
    world.pass_time(timedelta(hours=5))
    assert world.do(run_id, control.expire) is False
    world.act(run_id, control.resume)
    assert world.do(run_id, control.expire) is False

    world.pass_time(timedelta(minutes=59))
    assert world.do(run_id, control.expire) is False
    world.pass_time(timedelta(minutes=2))
    assert world.do(run_id, control.expire) is True
