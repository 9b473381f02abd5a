"""Budgets end a loop inside one attempt. A person who has a failed run go on is not refused because of what earlier
attempts have used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.store import workflow_views
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.ticket import BudgetExceeded, Ticket
from tests.workflow.world import MysqlWorld, World, gives

RERUNS = 20


class Last:
    """A last step that does what it is told, in order: goes "back" to the first one, or is "wrong"; then it ends."""

    def __init__(self, *deeds: str) -> None:
        self.deeds = list(deeds)

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        deed = self.deeds.pop(0) if self.deeds else "ends"
        if deed == "wrong":
            raise DocumentRefused("wrong")
        return {"_next_step": "first"} if deed == "back" else {}


def flow(last: Last, most: int = 6) -> Any:
    built = workflow("moody").then(gives(), name="first").then(gives(), name="second").then(last, name="last")
    return built.max_transitions(most).build()


def by_retry(world: World, run_id: int) -> None:
    world.act(run_id, control.retry, "ann")


def by_clearing(world: World, run_id: int) -> None:
    run = world.run(run_id)
    again(world, Ticket(run.dag_run_id, run.carrier_shadow_id or 0, run.n, run_id, clears=1))


def by_taking_it_over(world: World, run_id: int) -> None:
    run = world.run(run_id)
    with world.transaction() as tx:
        ticket = engine.take_over(tx, world.definitions[run.workflow], run.carrier_shadow_id or 0)
    again(world, ticket)


def again(world: World, ticket: Ticket) -> None:
    with suppress(DocumentRefused, BudgetExceeded):
        for step in ("first", "second", "last"):
            world.step(ticket, step)
    world.walk()


@pytest.mark.parametrize("goes_on", [by_retry, by_clearing, by_taking_it_over])
def test_a_run_that_a_person_has_go_on_again_and_again_can_always_end(
    world: World, goes_on: Callable[[World, int], None]
) -> None:
    """Each time what it was given has changed, so it goes back and does all of it again, and then it is wrong again."""
    run_id = world.begin(flow(Last("wrong", *["back", "wrong"] * RERUNS)))

    for _ in range(RERUNS):
        assert (world.status(run_id), world.error(run_id)) == ("failed", "wrong")
        goes_on(world, run_id)
    assert (world.status(run_id), world.error(run_id)) == ("failed", "wrong")
    goes_on(world, run_id)

    assert world.status(run_id) == "completed"
    assert world.run(run_id).transitions == 2 + 3 * RERUNS + 1, "all of them are still counted"


@pytest.mark.parametrize("goes_on", [by_retry, by_clearing, by_taking_it_over])
def test_a_loop_inside_one_attempt_ends_and_each_retry_has_as_many_transitions_again(
    world: World, goes_on: Callable[[World, int], None]
) -> None:
    run_id = world.begin(flow(Last(*["back"] * 100)))

    for attempt in (1, 2, 3):
        assert (world.status(run_id), world.run(run_id).transitions) == ("failed", 6 * attempt)
        assert world.error(run_id) == "workflow moody: 7 steps completed, max_transitions allows 6"
        goes_on(world, run_id)


def test_items_and_starts_are_counted_anew_too(world: World) -> None:
    agent = workflow("agent").then(gives(), name="work").build()
    last = Last("back", "back", "back")
    built = workflow("fans").for_each("items", gives(), name="first").start_workflows("items", agent)
    run_id = world.begin(
        built.then(last, name="last").max_for_each_items(3).max_started_workflows(3).build(), {"items": [1, 2]}
    )

    assert (world.status(run_id), world.run(run_id).current_step) == ("failed", "first"), "4 items of 3"
    world.act(run_id, control.retry)
    assert (world.status(run_id), world.run(run_id).current_step) == ("failed", "first"), "2 more, then 4 of 3 again"
    world.act(run_id, control.retry)
    world.act(run_id, control.retry)

    assert world.status(run_id) == "completed"
    assert len(world.children(run_id)) == 8


def test_one_step_that_asks_for_more_than_is_allowed_fails_however_often_it_is_retried(world: World) -> None:
    many = workflow("many").for_each("items", gives(), name="each").max_for_each_items(2).build()
    large = workflow("large").then(gives(text="x" * 60), name="a").max_state_bytes(64).build()
    runs = [world.begin(many, {"items": [1, 2, 3]}), world.begin(large)]

    for run_id in runs:
        world.act(run_id, control.retry)

    assert [(world.status(one), world.run(one).error_code) for one in runs] == [("failed", 422)] * 2
    assert world.effects == []


def test_how_often_a_loop_may_go_back_is_its_own_rule_and_no_retry_changes_it(world: World) -> None:
    loop = workflow("spins").then(gives(more=True), name="turn").repeat_while("turn", "more", max_iterations=2).build()
    run_id = world.begin(loop)
    assert world.effects == ["turn"] * 3

    world.act(run_id, control.retry)

    assert (world.status(run_id), world.run(run_id).error_code, world.effects) == ("failed", 409, ["turn"] * 3)


def test_the_status_shows_what_was_used_since(mysql_world: MysqlWorld) -> None:
    run_id = mysql_world.begin(flow(Last("wrong", "back", "wrong")))

    def used() -> dict[str, int]:
        with mysql_world.transaction() as tx:
            view = workflow_views.status(tx.conn, run_id)
        assert view is not None
        return {one.name: one.used for one in view.budgets}

    assert used()["transitions"] == 2
    mysql_world.act(run_id, control.retry)
    assert used()["transitions"] == 3
