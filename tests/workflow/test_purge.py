"""13: ended workflows go away with everything about them, and nothing goes that somebody still needs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from everest.errors import Conflict
from everest.store.workflow_purge import RUNS_PER_TRANSACTION, purge
from everest.workflow import control
from everest.workflow.builder import workflow
from tests import builders
from tests.workflow.world import MysqlWorld, gives

DAY = timedelta(days=1)
TABLES = ("workflow_runs", "workflow_steps", "workflow_items", "workflow_signals", "workflow_chunks",
          "workflow_compensations", "workflow_events", "rabbit_publish_shadow", "outbox")  # fmt: skip


RICH = (
    workflow("rich")
    .then(gives(items=[1, 2]), name="first", compensate_with=gives())
    .for_each("items", gives(), name="each")
    .wait_for_signal("go")
    .build()
)
SHORT = workflow("short").then(gives(), name="only").idempotency_key("{k}").build()
WAITS = workflow("waits").wait_for_signal("never").build()


def rows_left(world: MysqlWorld) -> dict[str, int]:
    return {table: world.rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"] for table in TABLES}


def run(world: MysqlWorld, days: int = 30, with_cancelled: bool = False, dry_run: bool = False) -> int:
    return purge(world.database.transaction, days * DAY, with_cancelled, "budi", dry_run)


def aged(world: MysqlWorld) -> None:
    world.pass_time(31 * DAY)


def test_13_only_completed_runs_of_that_age_go_and_all_their_rows_with_them(mysql_world: MysqlWorld) -> None:
    old = mysql_world.begin(RICH)
    mysql_world.signal(old, "go")
    failed = mysql_world.begin(workflow("fails").then(lambda state, step: 1 / 0, name="only").max_attempts(1).build())
    aged(mysql_world)
    young = mysql_world.begin(SHORT, {"k": "1"})
    waiting = mysql_world.begin(WAITS)

    assert run(mysql_world, dry_run=True) == 1
    assert mysql_world.all_runs() == [old, failed, young, waiting]
    assert run(mysql_world) == 1

    assert mysql_world.all_runs() == [failed, young, waiting]
    for table in TABLES[1:]:
        assert mysql_world.rows(f"SELECT 1 FROM {table} WHERE workflow_id = %s", old) == [], table
    assert run(mysql_world) == 0
    (line,) = mysql_world.rows("SELECT actor, after_value FROM audit_log WHERE action = 'purge'")
    assert (line["actor"], str(old) in str(line["after_value"])) == ("budi", True)


def test_18_a_key_goes_with_its_run(mysql_world: MysqlWorld) -> None:
    first = mysql_world.begin(SHORT, {"k": "1"})
    with pytest.raises(Conflict):
        mysql_world.start(SHORT, {"k": "1", "other": True})
    aged(mysql_world)

    run(mysql_world)

    assert mysql_world.start(SHORT, {"k": "1", "other": True}) != first


def test_cancelled_runs_go_when_asked_for_and_never_before_they_are_undone(mysql_world: MysqlWorld) -> None:
    def stuck(state: dict[str, Any], step: Any) -> None:
        raise OSError("printer on fire")

    undone = mysql_world.begin(RICH)
    mysql_world.act(undone, control.cancel)
    sticks = workflow("sticks").then(gives(), name="only", compensate_with=stuck).wait_for_signal("go").build()
    not_undone = mysql_world.begin(sticks)
    mysql_world.act(not_undone, control.cancel)
    aged(mysql_world)

    assert run(mysql_world) == 0
    assert run(mysql_world, with_cancelled=True) == 1
    assert mysql_world.all_runs() == [not_undone]


def test_a_document_of_the_books_and_its_jobs_stay(mysql_world: MysqlWorld, connection: Any) -> None:
    from everest.opname.workflow import POST_OPNAME

    # The world's clock is not this machine's: a count frozen after it would lie in the future.
    document = builders.document(connection, diotorisasi_at=mysql_world.now)
    connection.commit()
    mysql_world.know(POST_OPNAME)
    with mysql_world.transaction() as tx:
        sent = control.dispatch(
            tx, POST_OPNAME, {"transaksi_id": document.transaksi_id}, transaksi_id=document.transaksi_id
        )
    mysql_world.walk()
    assert mysql_world.status(sent.workflow_id) == "completed"
    aged(mysql_world)
    before = rows_left(mysql_world)

    assert run(mysql_world, with_cancelled=True) == 0
    mysql_world.rows("UPDATE rabbit_publish_shadow SET transaksi_id = NULL")
    assert run(mysql_world, with_cancelled=True) == 0, "its payload still names the document"

    assert rows_left(mysql_world) == before


def test_children_stay_as_long_as_their_parent_is_at_work_and_waits_find_what_they_name(
    mysql_world: MysqlWorld,
) -> None:
    parent = (
        workflow("parent")
        .run_workflow(workflow("inner").then(gives(), name="only").build())
        .start_workflows("items", SHORT, payload_key="k", inherit_state=False)
        .wait_for_signal("go")
        .wait_for_agents()
        .build()
    )
    dependency = mysql_world.begin(SHORT, {"k": "dependency"})
    waiter = mysql_world.begin(workflow("waiter").wait_for_workflows([dependency, mysql_world.begin(WAITS)]).build())
    unneeded = mysql_world.begin(SHORT, {"k": "unneeded"})
    family = mysql_world.begin(parent, {"items": ["a", "b"]})
    children = mysql_world.children(family)
    assert {mysql_world.status(one) for one in children} == {"completed"}
    aged(mysql_world)

    assert run(mysql_world) == 1
    assert unneeded not in mysql_world.all_runs()
    assert {dependency, waiter, family, *children} <= set(mysql_world.all_runs())

    mysql_world.signal(family, "go")
    assert mysql_world.status(family) == "completed"
    aged(mysql_world)
    assert run(mysql_world) == 1 + len(children)
    assert dependency in mysql_world.all_runs()


def test_many_runs_go_in_small_transactions(mysql_world: MysqlWorld) -> None:
    for number in range(RUNS_PER_TRANSACTION + 5):
        mysql_world.start(SHORT, {"k": str(number)})
    mysql_world.walk()
    aged(mysql_world)

    assert run(mysql_world) == RUNS_PER_TRANSACTION + 5

    assert set(rows_left(mysql_world).values()) == {0}
    assert len(mysql_world.rows("SELECT 1 FROM audit_log WHERE action = 'purge'")) == 2


def test_a_run_that_another_purge_holds_is_left_to_it(mysql_world: MysqlWorld) -> None:
    first, second = mysql_world.begin(SHORT, {"k": "1"}), mysql_world.begin(SHORT, {"k": "2"})
    aged(mysql_world)

    with mysql_world.another().transaction() as tx:
        tx.runs.lock(first)
        assert run(mysql_world) == 1

    assert mysql_world.all_runs() == [first]
    assert second not in mysql_world.all_runs()


def test_nothing_younger_than_a_day_can_be_purged(mysql_world: MysqlWorld) -> None:
    with pytest.raises(ValueError, match="at least 1 day"):
        purge(mysql_world.database.transaction, timedelta(hours=23), False, "budi")
