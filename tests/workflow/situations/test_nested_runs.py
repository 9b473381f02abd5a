"""A parent and its nested run (the situations: see conftest.py)."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from everest.errors import Conflict
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.ticket import Fenced, Go
from tests.workflow.situations.handlers import CHILD, Fixable, at_once, wait_for_lock
from tests.workflow.world import MysqlWorld, World, gives


def test_09_a_child_that_fails_fails_its_parent_and_both_complete_when_retried_in_turn(world: World) -> None:
    broken = Fixable(c=1)
    child = workflow("breaks").then(broken, name="only").build()
    run_id = world.begin(workflow("parent").run_workflow(child).then(gives(z=1), name="z").build())
    (child_id,) = world.children(run_id)
    assert (world.status(child_id), world.status(run_id)) == ("failed", "failed")
    assert "rusak" in world.error(run_id)
    broken.is_broken = False

    world.act(child_id, control.retry)
    world.act(run_id, control.retry)

    assert (world.status(child_id), world.status(run_id), world.state(run_id)) == (
        "completed",
        "completed",
        {"c": 1, "z": 1},
    )
    assert world.children(run_id) == [child_id]


def test_09_a_child_that_is_cancelled_fails_its_parent(world: World) -> None:
    run_id = world.begin(workflow("parent").run_workflow(CHILD).build())
    (child_id,) = world.children(run_id)

    world.act(child_id, control.cancel)

    assert world.status(run_id) == "failed"
    assert "cancelled" in world.error(run_id)


def test_10_a_cancel_takes_nested_runs_along_and_a_late_child_changes_nothing(world: World) -> None:
    inner = workflow("inner").then(gives(c=1), name="only").build()
    outer = workflow("outer").run_workflow(inner).build()
    top = workflow("top").run_workflow(outer).build()
    run_id = world.start(top)
    world.step(world.deliver(), "outer")
    (outer_id,) = world.children(run_id)
    world.step(world.deliver(), "inner")
    (inner_id,) = world.children(outer_id)
    late = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, inner, late, "only")
    assert isinstance(start, Go)

    world.act(run_id, control.cancel)

    def commits() -> None:
        with world.transaction() as tx:
            tx.write("leaked")
            engine.settle(tx, inner, start.token, {"c": 1})

    with pytest.raises(Fenced):
        commits()
    assert [world.status(one) for one in (run_id, outer_id, inner_id)] == ["cancelled"] * 3
    assert world.effects == []
    with pytest.raises(Conflict, match="cancelled"):
        world.do(run_id, control.cancel)


def test_10_a_cancel_sees_the_nested_run_that_is_being_made(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    parent = workflow("parent").run_workflow(CHILD).build()
    run_id = world.start(parent)
    ticket = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, parent, ticket, "child")
    assert isinstance(start, Go)

    def cancels() -> None:
        with other.transaction() as tx:
            control.cancel(tx, parent, run_id, "budi")

    beside = ExitStack()
    with world.transaction() as tx:
        engine.enter(tx, parent, start.token)
        beside.enter_context(at_once(cancels))
        wait_for_lock(world)
    beside.close()

    (child_id,) = world.children(run_id)
    assert (world.status(run_id), world.status(child_id)) == ("cancelled", "cancelled")
