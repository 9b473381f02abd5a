"""Behaviours 11 to 13, 82 and 84: status, lists, purge, history. What people read comes from the rows alone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.errors import DocumentRefused
from everest.store import workflow_lists, workflow_steps, workflow_trace, workflow_views
from everest.store.workflow_purge import purge
from everest.workflow import control
from everest.workflow.builder import workflow
from ingest_consumer import shadow as jobs
from tests.workflow.world import MysqlWorld, World, gives


def fails(state: dict[str, Any], step: Any) -> None:
    raise DocumentRefused("salah")


def test_011_the_status_hides_private_keys_and_an_unknown_run_has_none(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    built = workflow("shown", version="3").then(gives(a=1, _b=2), name="a").wait_for_signal("go", timeout=timedelta(1))
    built = built.then(gives(), name="z").max_transitions(9).build()
    run_id = world.begin(built, {"p": 0, "_secret": 1})

    with world.transaction() as tx:
        view = workflow_views.status(tx.conn, run_id, lambda name, version: built)
        assert workflow_views.status(tx.conn, run_id + 100) is None
        whole = tx.runs.get(run_id)

    assert view is not None
    assert (view.workflow, view.version, view.definition_hash) == ("shown", "3", built.definition_hash)
    assert (view.status, view.current_step, view.position, view.total_steps) == (
        "waiting_for_signal",
        "wait_for_go",
        2,
        3,
    )
    assert view.state == {"p": 0, "a": 1}
    assert (whole.state, whole.payload) == ({"p": 0, "_secret": 1, "a": 1}, {"p": 0, "_secret": 1})
    assert view.waiting is not None
    assert (view.waiting.names, view.waiting.remaining) == (["go"], ["go"])
    assert {one.name: (one.used, one.limit) for one in view.budgets}["transitions"] == (1, 9)


def test_012_the_list_has_all_and_filters_by_status(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    done = world.begin(workflow("done").then(gives(), name="a").build())
    bad = world.begin(workflow("bad").then(fails).build())
    waits = world.begin(workflow("waits").wait_for_signal("go").build())

    def listed(**chosen: Any) -> list[int]:
        with world.transaction() as tx:
            return [one.id for one in workflow_lists.page_of_runs(tx.conn, **chosen)]

    assert listed() == [waits, bad, done]
    assert [listed(status=one) for one in ("completed", "failed", "waiting_for_signal", "paused")] == [
        [done],
        [bad],
        [waits],
        [],
    ]
    assert listed(workflow="bad") == [bad]
    assert (listed(size=2), listed(size=2, before_id=bad)) == ([waits, bad], [done])


def test_013_only_runs_that_completed_longer_ago_are_purged(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    keyed = workflow("old").then(gives(), name="a").parallel({"l": gives(), "r": gives()}).build()
    old = world.begin(keyed, key="k")
    failed = world.begin(workflow("bad").then(fails).build())
    waiting = world.begin(workflow("waits").wait_for_signal("go").build())
    cancelled = world.start(workflow("cancelled").then(gives(), name="a").build())
    world.act(cancelled, control.cancel)
    world.pass_time(timedelta(days=8))
    recent = world.begin(workflow("recent").then(gives(), name="a").build())

    assert purge(world.transaction, timedelta(days=9), False, "budi") == 0
    assert purge(world.transaction, timedelta(days=7), False, "budi") == 1

    assert world.all_runs() == sorted([failed, waiting, cancelled, recent])
    for table in ("workflow_steps", "workflow_events", "rabbit_publish_shadow", "outbox"):
        assert world.rows(f"SELECT id FROM {table} WHERE workflow_id = %s", old) == []
    again = world.start(keyed, {"other": "payload"}, key="k")
    assert again not in (old, failed), "the key went with its run"


def test_082_a_record_holds_what_a_step_was_given_returned_and_left(world: World) -> None:
    built = workflow("traced").then(gives(a=Decimal("1.50"), _b=1), name="a").then(gives(c=3), name="b").build()
    run_id = world.begin(built, {"p": 0})

    records = world.records(run_id)

    first, second = records["a", 1, ""], records["b", 1, ""]
    assert (first["output"], first["state_after"]) == ({"a": Decimal("1.50")}, {"p": 0, "a": Decimal("1.50")})
    assert (second["output"], second["state_after"]) == ({"c": 3}, {"p": 0, "a": Decimal("1.50"), "c": 3})


def test_082_a_failure_holds_message_and_class(world: World) -> None:
    run_id = world.begin(workflow("traced").then(gives(a=1), name="a").then(fails).build())

    failed = world.records(run_id)["fails", 1, ""]
    assert (failed["status"], failed["output"], failed["state_after"]) == ("failed", None, None)
    assert (failed["error"]["type"], failed["error"]["message"]) == ("DocumentRefused", "salah")
    (event,) = [one for one in world.events(run_id) if one["event"] == "failed"]
    assert (event["step"], event["attempt"]) == ("fails", 1)
    assert (event["detail"]["type"], event["detail"]["message"]) == ("DocumentRefused", "salah")


def test_082_the_trace_shows_every_step_with_the_state_before_and_after(mysql_world: MysqlWorld) -> None:
    world = mysql_world

    def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"n": state.get("n", 0) + 1}

    built = (
        workflow("traced")
        .then(counts)
        .parallel({"l": gives(l=1), "r": gives(r=1)}, name="both")
        .repeat_until("counts", "n", 2)
        .then(fails)
        .build()
    )
    run_id = world.begin(built, {"p": 0, "_secret": 1})

    with world.transaction() as tx:
        steps = workflow_trace.trace(tx.conn, run_id)
        assert steps is not None
        pages = [workflow_trace.trace(tx.conn, run_id, size=4)]
        while pages[-1]:
            pages.append(workflow_trace.trace(tx.conn, run_id, after_id=pages[-1][-1].id, size=4))
        assert workflow_trace.trace(tx.conn, run_id + 100) is None

    assert [one for page in pages for one in page or []] == steps
    told = {(one.step, one.visit, one.branch): one for one in steps}
    first, second = told["counts", 1, ""], told["counts", 2, ""]
    assert (first.state_before, first.output, first.state_after) == ({"p": 0}, {"n": 1}, {"p": 0, "n": 1})
    assert second.state_before == {"p": 0, "n": 1, "l": 1, "r": 1}
    assert (second.output, second.n, second.attempt) == ({"n": 2}, 2, 1)
    assert (told["both", 1, "l"].output, told["both", 1, "r"].output) == ({"l": 1}, {"r": 1})
    last = told["fails", 2, ""]
    assert (last.state_before, last.state_after) == ({"p": 0, "n": 2, "l": 1, "r": 1}, None)
    assert (last.error or {})["message"] == "salah"


def test_082_what_a_finished_group_or_a_cancelled_run_left_open_is_not_shown_at_work(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    built = (
        workflow("left")
        .parallel({"l": gives(l=1), "r": gives(r=1)}, name="both")
        .wait_for_approval(name="asks")
        .build()
    )
    run_id = world.begin(built)
    # As a slot leaves it that another one was faster than.
    with world.transaction() as tx, tx.conn.cursor() as cursor:
        cursor.execute("UPDATE workflow_steps SET status = 'running', finished_at = NULL WHERE branch = 'r'")

    def told() -> dict[tuple[str, str], str]:
        with world.transaction() as tx:
            return {(one.step, one.branch): one.status for one in workflow_trace.trace(tx.conn, run_id) or []}

    assert told() == {
        ("both", ""): "completed", ("both", "l"): "completed", ("both", "r"): "closed", ("asks", ""): "waiting"
    }  # fmt: skip
    with world.transaction() as tx:
        control.cancel(tx, built, run_id, "sari")
    assert told()["asks", ""] == "cancelled"
    with world.transaction() as tx:
        assert [one.status for one in workflow_steps.steps(tx.conn, run_id, built)] == ["completed", "cancelled"]


@pytest.mark.parametrize(
    ("status", "run", "group", "shown"),
    [
        ("running", "running", "running", "running"), ("waiting", "paused", None, "waiting"),
        ("running", "running", "completed", "closed"), ("running", "failed", "running", "closed"),
        ("waiting", "failed", None, "closed"), ("running", "cancelled", "completed", "cancelled"),
        ("completed", "cancelled", None, "completed"), ("failed", "failed", "running", "failed"),
    ],
)  # fmt: skip
def test_082_a_record_is_shown_as_what_became_of_it(status: str, run: str, group: str | None, shown: str) -> None:
    assert workflow_trace.standing(status, run, group) == shown


def test_084_the_state_after_a_step_and_none_where_there_was_none(mysql_world: MysqlWorld) -> None:
    world = mysql_world

    def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"n": state.get("n", 0) + 1}

    run_id = world.begin(workflow("states").then(counts).repeat_until("counts", "n", 2).then(fails).build(), {"p": 0})

    with world.transaction() as tx:
        assert workflow_trace.state_at(tx.conn, run_id, "counts", visit=1) == {"p": 0, "n": 1}
        assert workflow_trace.state_at(tx.conn, run_id, "counts") == {"p": 0, "n": 2}
        absent = [("fails", None), ("counts", 3), ("nowhere", None)]
        assert [workflow_trace.state_at(tx.conn, run_id, *one) for one in absent] == [None] * 3
        assert workflow_trace.state_at(tx.conn, run_id + 100, "counts") is None


def test_084_the_timeline_comes_page_after_page(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    run_id = world.begin(workflow("told").then(gives(), name="a").then(gives(), name="b").then(fails).build())

    with world.transaction() as tx:
        whole = workflow_lists.timeline(tx.conn, run_id)
        assert whole is not None
        pages = [workflow_lists.timeline(tx.conn, run_id, size=3)]
        while pages[-1]:
            pages.append(workflow_lists.timeline(tx.conn, run_id, after_id=pages[-1][-1].id, size=3))
        assert workflow_lists.timeline(tx.conn, run_id + 100) is None

    assert [one for page in pages for one in page or []] == whole
    assert [(one.event, one.step) for one in whole] == [
        ("dispatched", None),
        ("started", "a"),
        ("completed", "a"),
        ("started", "b"),
        ("completed", "b"),
        ("started", "fails"),
        ("failed", "fails"),
    ]


def test_084_two_claims_never_get_the_same_job_message_or_item(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    run_id = world.start(workflow("claims").for_each("items", gives(), name="each").build(), {"items": [1, 2]})
    other = world.another()
    run = world.run(run_id)

    with world.transaction() as one, other.transaction() as two:
        taken = [list(jobs.queries.take_due(tx.conn, batch=10)) for tx in (one, two)]
        assert [len(rows) for rows in taken] == [1, 0], "a second relay passes the rows of the first by"
    claim = (run.carrier_shadow_id, run.dag_run_id, run.dag_id, run.dag_run_id, 1)
    claimed = []
    for database in (world.database, other):
        with database.transaction() as tx:
            claimed.append(jobs.claim(tx.conn, *claim))
    assert claimed == [True, False]
    with world.transaction() as tx:
        tx.runs.add_items(run, "each", [1, 2])
    with world.transaction() as one, other.transaction() as two:
        items = [tx.runs.claim_item(run_id, "each", 1, str(slot), 1) for slot, tx in enumerate((one, two, one))]
    assert [None if item is None else item.index for item in items] == [0, 1, None]


def test_084_three_claims_of_two_items_get_each_once(world: World) -> None:
    run_id = world.start(workflow("claims").for_each("items", gives(), name="each").build(), {"items": [1, 2]})
    run = world.run(run_id)
    with world.transaction() as tx:
        tx.runs.add_items(run, "each", [1, 2])
        items = [tx.runs.claim_item(run_id, "each", 1, str(slot), 1) for slot in range(3)]

    assert [None if item is None else item.index for item in items] == [0, 1, None]
