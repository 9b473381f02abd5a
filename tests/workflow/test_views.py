"""What is shown of a workflow: everything about it from its rows, nothing it does not want to show."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.store import workflow_lists, workflow_views
from everest.store.workflow_views import RunView
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from tests.workflow.world import MysqlWorld, gives


def look(world: MysqlWorld, run_id: int, definition: Definition | None = None) -> RunView:
    with world.transaction() as tx:
        view = workflow_views.status(tx.conn, run_id, lambda name, version: definition)
    assert view is not None
    return view


def test_11_an_unknown_run_is_none(mysql_world: MysqlWorld) -> None:
    with mysql_world.transaction() as tx:
        assert workflow_views.status(tx.conn, 99) is None
        assert workflow_lists.timeline(tx.conn, 99) is None


def test_11_control_values_are_hidden_and_exact_values_shown(mysql_world: MysqlWorld) -> None:
    done = workflow("done").then(gives(amount=Decimal("1.50"), _secret=1), name="only").build()

    view = look(mysql_world, mysql_world.begin(done, {"p": 1, "_q": 2}), done)

    assert view.state == {"p": 1, "amount": Decimal("1.50")}
    assert view.as_json()["state"] == {"p": 1, "amount": "1.50"}
    assert (view.status, view.position, view.total_steps, view.definition) == ("completed", 1, 1, "deployed")


def test_a_changed_definition_is_told_from_a_missing_one(mysql_world: MysqlWorld) -> None:
    first = workflow("w").wait_for_signal("go").build()
    changed = workflow("w").wait_for_signal("go").then(gives(), name="more").build()
    run_id = mysql_world.begin(first)

    assert look(mysql_world, run_id, first).definition == "deployed"
    assert (look(mysql_world, run_id, changed).definition, look(mysql_world, run_id, changed).total_steps) == (
        "changed",
        None,
    )
    assert look(mysql_world, run_id).definition == "missing"


def test_48_all_of_two_signals_shows_matched_and_remaining(mysql_world: MysqlWorld) -> None:
    both = workflow("both").wait_for_signals(["a", "b"], timeout=timedelta(hours=1)).build()
    run_id = mysql_world.begin(both)
    until = mysql_world.now + timedelta(hours=1)

    mysql_world.signal(run_id, "a", {"n": 1}, actor="sari")
    wait = look(mysql_world, run_id, both).waiting

    assert wait is not None
    assert (wait.kind, wait.mode, wait.names, wait.remaining) == ("signal", None, ["a", "b"], ["b"])
    assert (wait.matched["a"]["payload"], wait.matched["a"]["by"]) == ({"n": 1}, "sari")
    assert wait.until is not None
    assert abs(wait.until - until) < timedelta(seconds=5)


def test_51_a_correlation_is_shown_with_its_value(mysql_world: MysqlWorld) -> None:
    run_id = mysql_world.begin(workflow("c").wait_for_signal("paid", correlation_key="order").build(), {"order": 7})

    wait = look(mysql_world, run_id).waiting

    assert wait is not None
    assert wait.correlation == {"key": "order", "value": 7}


def test_54_56_a_wait_for_workflows_shows_each_with_its_status(mysql_world: MysqlWorld) -> None:
    open_one = workflow("open_one").wait_for_signal("go").build()
    ids = [mysql_world.begin(open_one) for _ in range(3)]
    run_id = mysql_world.begin(workflow("q").wait_for_workflows(ids, mode="quorum", quorum=2).build())

    mysql_world.signal(ids[1], "go")
    wait = look(mysql_world, run_id).waiting

    assert wait is not None
    assert (wait.kind, wait.mode, wait.quorum, wait.matched, wait.remaining) == (
        "workflows",
        "quorum",
        2,
        1,
        [ids[0], ids[2]],
    )
    assert [one["status"] for one in wait.workflows] == ["waiting_for_signal", "completed", "waiting_for_signal"]


def test_a_paused_wait_is_shown_with_what_it_goes_back_to(mysql_world: MysqlWorld) -> None:
    run_id = mysql_world.begin(workflow("p").wait_for_approval().build())
    mysql_world.act(run_id, control.pause)

    view = look(mysql_world, run_id)

    assert (view.status, view.paused_status) == ("paused", "waiting_for_signal")
    assert view.waiting is not None
    assert view.waiting.remaining == ["approval"]


def test_counters_stand_beside_their_budgets(mysql_world: MysqlWorld) -> None:
    limited = (
        workflow("limited")
        .then(gives(items=[1, 2, 3], done=False), name="first")
        .for_each("items", gives(), name="each")
        .repeat_until("first", "done", max_iterations=1)
        .max_for_each_items(10)
        .max_transitions(50)
        .max_state_bytes(10_000)
        .build()
    )

    view = look(mysql_world, mysql_world.begin(limited), limited)

    used = {one.name: (one.used, one.limit) for one in view.budgets}
    assert used["for_each_items"] == (6, 10)
    assert used["transitions"] == (5, 50)
    assert used["state_bytes"][0] > 100
    assert (view.status, view.visit, view.loops) == ("failed", 2, {"repeat": 1})
    assert view.error is not None
    assert view.error["code"] == 409


def test_items_and_branches_of_the_step_at_work_are_counted(mysql_world: MysqlWorld) -> None:
    def odd(state: dict[str, Any], step: Any) -> None:
        if step.item % 2 == 0:
            raise ValueError("even")

    each = workflow("each").for_each("items", odd, name="each").max_attempts(1).build()

    view = look(mysql_world, mysql_world.begin(each, {"items": [1, 2, 3]}), each)

    assert view.status == "failed"
    assert sum(view.items.values()) == 3
    assert view.items["failed"] == 1
    assert [one["status"] for one in view.branches] == ["failed"]


def test_every_dag_run_is_named_as_airflow_knows_it(mysql_world: MysqlWorld) -> None:
    twice = workflow("twice").wait_for_signal("a").wait_for_signal("b").build()
    run_id = mysql_world.begin(twice, key="K")
    mysql_world.signal(run_id, "a")

    view = look(mysql_world, run_id)

    shadow = view.shadow_id
    assert [(one.n, one.dag_id, one.dag_run_id) for one in view.dag_runs] == [
        (n, "twice", f"twice__K__{shadow}__{n}") for n in (3, 2, 1)
    ]
    assert [one.steps_completed for one in view.dag_runs] == [0, 1, 0]


def test_compensations_are_shown_newest_first_with_their_progress(mysql_world: MysqlWorld) -> None:
    def stuck(state: dict[str, Any], step: Any) -> None:
        raise OSError("printer on fire")

    undoes = (
        workflow("undoes")
        .then(gives(), name="one", compensate_with=stuck)
        .then(gives(), name="two", compensate_with=gives())
        .wait_for_signal("go")
        .max_attempts(1)
        .build()
    )
    run_id = mysql_world.begin(undoes)
    mysql_world.act(run_id, control.cancel, "budi")

    view = look(mysql_world, run_id, undoes)

    assert view.compensation == "failed"
    assert [(one["step"], one["status"], one["attempts"]) for one in view.compensations] == [
        ("two", "done", 1),
        ("one", "failed", 1),
    ]
    assert "printer on fire" in view.compensations[1]["error"]["message"]


def test_handed_off_runs_and_their_parent_see_each_other(mysql_world: MysqlWorld) -> None:
    child = workflow("child").then(gives(), name="only").build()
    run_id = mysql_world.begin(workflow("hands_off").start_workflows("items", child).build(), {"items": [1, 2]})

    view = look(mysql_world, run_id)
    (first, _) = view.children

    assert view.children_by_status == {"completed": 2}
    parent = look(mysql_world, first["id"]).parent
    assert parent is not None
    assert (parent["id"], parent["index"], parent["is_nested"], parent["status"]) == (run_id, 0, False, "completed")


def test_12_the_list_filters_and_pages(mysql_world: MysqlWorld) -> None:
    done, waits = workflow("done").then(gives(), name="only").build(), workflow("waits").wait_for_signal("go").build()
    mysql_world.begin(done)
    mysql_world.pass_time(timedelta(days=2))
    ids = [mysql_world.begin(waits) for _ in range(3)]

    def page(**chosen: Any) -> list[int]:
        with mysql_world.transaction() as tx:
            return [one.id for one in workflow_lists.page_of_runs(tx.conn, **chosen)]

    assert page() == [ids[2], ids[1], ids[0], 1]
    assert page(size=2) == [ids[2], ids[1]]
    assert page(size=2, before_id=ids[1]) == [ids[0], 1]
    assert page(status="completed") == [1]
    assert page(status="waiting_for_signal", workflow="waits", before_id=ids[2]) == [ids[1], ids[0]]
    assert page(created_before=mysql_world.now - timedelta(days=1)) == [1]
    assert page(created_since=mysql_world.now - timedelta(days=1)) == ids[::-1]


def test_a_list_tells_an_error_of_very_many_problems_without_them(mysql_world: MysqlWorld) -> None:
    """Some megabytes for a line of the list; one with few is whole, and the run's own page has all of them."""
    ids = [mysql_world.begin(workflow("waits").wait_for_signal("go").build()) for _ in range(2)]
    told = [{"code": 422, "message": "ditolak", "errors": [{"pesan": "salah"}] * count} for count in (5_000, 3)]
    with mysql_world.transaction() as tx, tx.conn.cursor() as cursor:
        for run_id, error in zip(ids, told, strict=True):
            cursor.execute("UPDATE workflow_runs SET error = %s WHERE id = %s", (json.dumps(error), run_id))
    with mysql_world.transaction() as tx:
        for chosen in ({}, {"status": "waiting_for_signal"}):
            few, many = (one.error for one in workflow_lists.page_of_runs(tx.conn, **chosen))
            assert (few, many) == (told[1], {"code": 422, "message": "ditolak"})
    assert look(mysql_world, ids[0]).error == told[0]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_84_the_timeline_is_whole_whatever_the_page(mysql_world: MysqlWorld, size: int) -> None:
    run_id = mysql_world.begin(workflow("w").then(gives(), name="one").wait_for_signal("go").build())
    found: list[str] = []
    after = 0
    with mysql_world.transaction() as tx:
        while page := workflow_lists.timeline(tx.conn, run_id, after, size):
            found += [one.event for one in page]
            after = page[-1].id

    assert found == ["dispatched", "started", "completed", "started", "parked"]
