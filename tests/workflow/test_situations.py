"""The 26 situations in which another engine was seen to hang, lose or double work. A test's number is the situation's.

What needs processes that die is in test_killed.py, what needs the reconciler's rounds in integration/reconciler.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tenacity import wait_none

from everest.errors import Conflict, DefinitionError, DocumentRefused, TransientDatabaseError, WaitTimeout
from everest.reconciler import rows
from everest.reconciler.workflows import WorkflowRepairs
from everest.store import database as store
from everest.workflow import again, control, engine, fanout, runner, starts
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.ticket import Fenced, Go
from tests.workflow.world import MysqlWorld, World, gives

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two transient tries nobody waits here."""
    monkeypatch.setattr(again, "wait_random_exponential", lambda **_: wait_none())


class Died(BaseException):
    """The process ends here."""


def never(state: dict[str, Any], step: Any) -> None:
    raise AssertionError("nobody may call this")


def per_item(state: dict[str, Any], step: Any) -> dict[str, Any]:
    step.tx.write([step.step, step.visit, step.item])
    return {"twice": step.item * 2}


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write("undo")


class Fixable:
    """Fails for good until it is repaired."""

    def __init__(self, **output: Any) -> None:
        self.is_broken, self.calls, self.output = True, 0, output

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        self.calls += 1
        step.tx.write(step.branch or step.step)
        if self.is_broken:
            raise DocumentRefused("rusak")
        return self.output


@contextmanager
def at_once(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Does this in another thread beside the body; what it raised is among the answers."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield answers
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "the other session hangs"


# ------------------------------------------------------------------------------------------------- fan-out, loops


@pytest.mark.parametrize(
    ("mode", "quorum", "ends"), [("all", None, True), ("first_success", None, False), ("quorum", 1, False)]
)
def test_01_zero_items_settle_empty_or_fail_with_the_name_of_the_step(
    world: World, mode: Any, quorum: int | None, ends: bool
) -> None:
    run_id = world.begin(
        workflow("none").for_each("items", never, "r", mode, quorum, name="each").build(), {"items": []}
    )

    if ends:
        assert (world.status(run_id), world.state(run_id)["r"]["total"]) == ("completed", 0)
    else:
        assert world.status(run_id) == "failed"
        assert "each" in world.error(run_id)


def test_02_a_quorum_above_the_count_fails_when_the_items_are_found(world: World) -> None:
    built = workflow("few").for_each("items", never, mode="quorum", quorum=3, name="each").build()
    run_id = world.begin(built, {"items": [1, 2]})

    assert (world.status(run_id), world.effects) == ("failed", [])
    assert "each" in world.error(run_id)


@pytest.mark.parametrize("source", [{"a": 1}, "text", 7, None])
def test_03_a_source_that_is_no_list_fails_at_once_and_for_good(world: World, source: Any) -> None:
    run_id = world.begin(workflow("odd").for_each("items", never, name="each").build(), {"items": source})

    assert world.status(run_id) == "failed"
    assert len(world.names(run_id, "started")) == 1


def test_04_each_pass_of_a_loop_has_its_own_branches_items_and_results(world: World) -> None:
    def more(state: dict[str, Any], step: Any) -> dict[str, Any]:
        passes = state.get("passes", 0) + 1
        return {"passes": passes, "items": list(range(passes * 10, passes * 10 + passes))}

    def left(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write([step.branch, step.visit])
        return {"left": state["passes"]}

    built = (
        workflow("loops")
        .then(more)
        .for_each("items", per_item, "r", name="each")
        .parallel({"left": left, "right": gives(right=1)}, name="both")
        .repeat_until("more", "passes", 3)
        .build()
    )
    run_id = world.begin(built)

    assert (world.status(run_id), world.state(run_id)["left"]) == ("completed", 3)
    assert world.state(run_id)["r"]["results"] == {str(index): {"twice": 2 * (30 + index)} for index in range(3)}
    items = [one for one in world.effects if one[0] == "each"]
    assert items == [
        ["each", 1, 10],
        ["each", 2, 20],
        ["each", 2, 21],
        ["each", 3, 30],
        ["each", 3, 31],
        ["each", 3, 32],
    ]
    assert [one for one in world.effects if one[0] == "left"] == [["left", 1], ["left", 2], ["left", 3]]


def test_05_a_retry_runs_only_the_branches_that_are_unfinished(world: World) -> None:
    broken = Fixable(b=2)
    built = workflow("group").parallel({"good": gives(a=1), "bad": broken, "late": gives(c=3)}).build()
    run_id = world.begin(built)
    assert world.status(run_id) == "failed"
    broken.is_broken = False

    world.act(run_id, control.retry)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "b": 2, "c": 3})
    assert sorted(world.effects) == ["bad", "good", "late"]


def test_05_a_branch_that_comes_late_or_again_does_not_undo_the_groups_failure(world: World) -> None:
    """Airflow begins and repeats tasks by itself: only the failed one, or one a person cleared, may reopen the run."""
    broken = Fixable(b=2)
    built = (
        workflow("group").parallel({"slow": gives(a=1), "bad": broken}, name="both").then(gives(z=1), name="z").build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        assert isinstance(engine.begin(tx, built, ticket, "both", "slow"), Go)
    with pytest.raises(DocumentRefused):
        world.step(ticket, "both", "bad")

    for branch in ("slow", "slow"):
        assert isinstance(world.step(ticket, "both", branch), engine.Leave)
    assert isinstance(world.step(ticket, "z"), engine.Leave)
    assert (world.status(run_id), world.job(run_id), world.effects) == ("failed", "FAILED", [])

    broken.is_broken = False
    cleared = replace(ticket, clears=1)
    world.step(cleared, "both", "bad")
    world.step(cleared, "both", "slow")
    world.step(cleared, "z")
    assert (world.status(run_id), sorted(world.effects)) == ("completed", ["bad", "slow", "z"])


def test_05_a_run_that_was_failed_from_outside_is_reopened_by_a_clear_alone(world: World) -> None:
    built = (
        workflow("late")
        .then(gives(a=1), name="a")
        .then(gives(b=1), name="b")
        .must_complete_within(timedelta(hours=1))
        .build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")
    world.database.move_clock(timedelta(hours=2))
    world.do(run_id, control.expire)

    assert isinstance(world.step(ticket, "b"), engine.Leave)
    assert world.status(run_id) == "failed"

    world.step(replace(ticket, clears=1), "b")
    assert world.status(run_id) == "completed"


def test_06_an_empty_group_is_refused_when_it_is_built() -> None:
    with pytest.raises(DefinitionError, match="at least one branch"):
        workflow("empty").parallel([], name="nothing").build()


# --------------------------------------------------------------------------------------------------------- waits


def test_07_each_wait_takes_a_signal_of_its_own_also_in_a_loop(world: World) -> None:
    def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"seen": [*state.get("seen", []), state["go"]["n"]]}

    built = (
        workflow("gates")
        .wait_for_signal("go", name="first", result_key="go")
        .then(counts)
        .repeat_until("first", condition=lambda state: len(state["seen"]) == 2)
        .wait_for_signal("go", name="second", result_key="go")
        .build()
    )
    run_id = world.begin(built)
    world.signal(run_id, "go", {"n": 1})
    assert (world.status(run_id), world.run(run_id).current_step) == ("waiting_for_signal", "first")
    world.signal(run_id, "go", {"n": 2})
    assert (world.status(run_id), world.run(run_id).current_step) == ("waiting_for_signal", "second")
    world.signal(run_id, "go", {"n": 3})

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"go": {"n": 3}, "seen": [1, 2]})


def test_07_a_wait_that_failed_and_is_retried_has_its_signals_still(world: World) -> None:
    built = (
        workflow("both").wait_for_signals(["a", "b"], name="gate", result_key="got", timeout=timedelta(hours=1)).build()
    )
    run_id = world.begin(built)
    world.signal(run_id, "a", {"n": 1})
    world.pass_time(timedelta(hours=2))
    assert world.status(run_id) == "failed"

    world.act(run_id, control.retry)
    world.signal(run_id, "b", {"n": 2})

    assert world.state(run_id) == {"got": {"a": {"n": 1}, "b": {"n": 2}}}


CHILD = workflow("child").wait_for_signal("go", name="gate").build()


def times_out(kind: str) -> Any:
    limit = {"timeout": timedelta(hours=1)}
    built = workflow(f"limited_{kind}")
    match kind:
        case "signal":
            return built.wait_for_signal("go", name="wait", **limit)
        case "approval":
            return built.wait_for_approval(name="wait", **limit)
        case "workflows":
            return built.wait_for_workflows("ids", name="wait", **limit)
        case _:
            return built.run_workflow(CHILD, name="wait", **limit)


@pytest.mark.parametrize("kind", ["signal", "approval", "workflows", "nested"])
def test_08_every_wait_ends_by_its_timeout(world: World, kind: str) -> None:
    other = world.begin(CHILD)
    run_id = world.begin(times_out(kind).build(), {"ids": [other]})
    assert world.status(run_id).startswith("waiting_for_")
    world.pass_time(timedelta(minutes=59))
    assert world.status(run_id).startswith("waiting_for_")

    world.pass_time(timedelta(minutes=2))

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)
    assert "wait" in world.error(run_id)


def test_08_a_wait_that_timed_out_is_not_tried_again(world: World) -> None:
    run_id = world.start(workflow("late").wait_for_signal("go", timeout=timedelta(hours=1)).build())
    world.walk()
    world.database.move_clock(timedelta(hours=2))
    ticket = world.deliver()

    with pytest.raises(WaitTimeout) as raised:
        world.step(ticket, world.run(run_id).current_step or "", is_last_try=False)

    assert runner.is_recorded(raised.value)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)


def test_08_a_deadline_covers_waiting(world: World) -> None:
    run_id = world.begin(workflow("due").wait_for_signal("go").must_complete_within(timedelta(hours=1)).build())
    assert not world.do(run_id, control.expire)
    world.database.move_clock(timedelta(hours=2))

    assert world.do(run_id, control.expire)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)


def test_08_a_deadline_whose_handler_raises_has_passed_all_the_same(world: World) -> None:
    def clumsy(state: dict[str, Any], step: Any) -> None:
        step.tx.write("half done")
        raise ZeroDivisionError

    due = workflow("due").wait_for_signal("go").must_complete_within(timedelta(hours=1)).on_deadline(clumsy).build()
    run_id = world.begin(due)
    world.database.move_clock(timedelta(hours=2))

    assert world.do(run_id, control.expire)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)
    assert world.events(run_id)[-1]["event"] == "deadline_handler_failed"
    assert world.effects == []


# --------------------------------------------------------------------------------------------------- nested runs


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


def wait_for_lock(world: MysqlWorld) -> None:
    """Until some session of this schema waits for a row of ours. The server renews its list of locks only when nobody
    asked for a tenth of a second."""
    with closing(store.connect(world.url)) as conn, conn.cursor() as cursor:
        for _ in range(PATIENCE_S * 5):
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p"
                " ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
            )
            conn.commit()
            if cursor.fetchone()[0]:
                return
            time.sleep(0.2)
    raise AssertionError("nobody waits for a lock")


# ------------------------------------------------------------------------------------------ cancel, compensation


def test_11_a_step_in_flight_leaks_nothing_and_what_was_done_is_undone(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    started, go_on = threading.Event(), threading.Event()

    def slow(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("in flight")
        started.set()
        assert go_on.wait(PATIENCE_S)
        return {"b": 1}

    built = (
        workflow("flight").then(gives(a=1), name="a", compensate_with=undo).then(slow, compensate_with=never).build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")

    def works() -> Any:
        return runner.run_step(built, ticket, "slow", other.transaction, is_last_try=True)

    with at_once(works) as answers:
        assert started.wait(PATIENCE_S)
        world.do(run_id, control.cancel, "budi")
        go_on.set()

    assert isinstance(answers[0], Fenced)
    world.compensate()
    assert (world.status(run_id), world.effects, world.state(run_id)) == ("cancelled", ["a", "undo"], {"a": 1})
    assert world.run(run_id).compensation == "done"


def dies(state: dict[str, Any], step: Any) -> None:
    step.tx.write("half")
    if DEATHS:
        DEATHS.pop()
        raise Died


DEATHS: list[int] = []


def test_12_compensation_goes_on_from_its_own_record_after_a_crash(world: World) -> None:
    built = (
        workflow("undone")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(gives(b=1), name="b", compensate_with=dies)
        .then(gives(c=1), name="c", compensate_with=undo)
        .wait_for_signal("go")
        .build()
    )
    run_id = world.begin(built)
    DEATHS[:] = [1]
    world.do(run_id, control.cancel)
    with pytest.raises(Died):
        world.compensate()
    assert world.effects == ["a", "b", "c", "undo"]
    assert world.run(run_id).compensation == "pending"

    world.compensate()

    assert world.effects == ["a", "b", "c", "undo", "half", "undo"]
    assert world.run(run_id).compensation == "done"


def throws(state: dict[str, Any], step: Any) -> None:
    if TROUBLE:
        raise RuntimeError(TROUBLE.pop())
    step.tx.write("undone at last")


TROUBLE: list[str] = []


def test_13_a_compensation_that_throws_is_retried_then_shown_and_retried_by_hand(world: World) -> None:
    built = (
        workflow("thrown")
        .then(gives(a=1), name="a", compensate_with=undo)
        .then(gives(b=1), name="b", compensate_with=throws)
        .wait_for_signal("go")
        .max_attempts(2)
        .build()
    )
    run_id = world.begin(built)
    TROUBLE[:] = ["third", "second", "first"]

    world.act(run_id, control.cancel)

    with world.transaction() as tx:
        shown = {one.step: (one.status, one.attempts) for one in tx.runs.compensations(run_id)}
    assert (world.run(run_id).compensation, shown) == ("failed", {"a": ("pending", 0), "b": ("failed", 2)})
    assert "undo" not in world.effects, "strictly newest first"
    world.act(run_id, control.compensate)
    assert world.run(run_id).compensation == "failed"
    world.act(run_id, control.compensate)

    assert (world.run(run_id).compensation, world.effects) == ("done", ["a", "b", "undone at last", "undo"])


def test_12_two_processes_at_one_compensation_do_it_once(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    built = workflow("twice").then(gives(a=1), name="a", compensate_with=holds).wait_for_signal("go").build()
    run_id = world.begin(built)
    world.do(run_id, control.cancel)
    HELD.clear()
    GO_ON.clear()

    with at_once(lambda: control.compensate_all(other.transaction, run_id, world.deployed)) as answers:
        assert HELD.wait(PATIENCE_S)
        assert control.compensate_all(world.transaction, run_id, world.deployed) is False, "another one is at it"
        GO_ON.set()

    assert answers == [True]
    assert world.effects == ["a", "held"]


HELD, GO_ON = threading.Event(), threading.Event()


def holds(state: dict[str, Any], step: Any) -> None:
    step.tx.write("held")
    HELD.set()
    assert GO_ON.wait(PATIENCE_S)


# --------------------------------------------------------------------------------------------------------- pause


def test_14_a_resume_while_the_step_is_at_work_runs_nothing_twice(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    started, go_on = threading.Event(), threading.Event()

    def slow(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("slow")
        started.set()
        assert go_on.wait(PATIENCE_S)
        return {}

    built = workflow("slowly").then(slow).run_workflow(CHILD).then(gives(z=1), name="z").build()
    run_id = world.start(built)
    ticket = world.deliver()

    with at_once(lambda: runner.run_step(built, ticket, "slow", other.transaction, is_last_try=True)) as answers:
        assert started.wait(PATIENCE_S)
        world.do(run_id, control.pause, "budi")
        world.do(run_id, control.resume, "budi")
        world.do(run_id, control.pause, "budi")
        world.do(run_id, control.resume, "budi")
        assert world.messages(run_id) == []
        go_on.set()

    assert isinstance(answers[0], engine.Forward)
    world.step(ticket, "child")
    world.act(run_id, control.pause)
    world.act(run_id, control.resume)
    (child_id,) = world.children(run_id)
    world.signal(child_id, "go")
    assert (world.status(run_id), world.effects) == ("completed", ["slow", "z"])


def test_14_a_pause_between_the_branches_of_a_group_loses_no_branch_at_work(world: World) -> None:
    built = workflow("group").parallel({"a": gives(a=1), "b": gives(b=1)}, name="both").build()
    run_id = world.start(built)
    ticket = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, built, ticket, "both", "a")
    assert isinstance(start, Go)
    world.do(run_id, control.pause)
    assert isinstance(world.step(ticket, "both", "b"), engine.Leave)
    assert world.job(run_id) == "PROCESSING", "branch a is still at work"

    with world.transaction() as tx:
        tx.write("a")
        engine.settle(tx, built, start.token, {"a": 1})
    assert (world.status(run_id), world.job(run_id)) == ("paused", "WAITING")
    world.act(run_id, control.resume)

    assert (world.status(run_id), world.effects) == ("completed", ["a", "b"])


def test_14_a_branch_that_left_under_a_pause_that_is_over_runs_when_the_others_are_done(world: World) -> None:
    """Else the reconciler would find a DAG run that ended too early, and give up after a few."""
    built = workflow("group").parallel({"a": gives(a=1), "b": gives(b=1), "c": gives(c=1)}, name="both").build()
    run_id = world.start(built)
    ticket = world.deliver()
    at_work = []
    for branch in ("a", "b"):
        with world.transaction() as tx:
            at_work.append(engine.begin(tx, built, ticket, "both", branch))
    world.do(run_id, control.pause)
    assert isinstance(world.step(ticket, "both", "c"), engine.Leave)
    world.do(run_id, control.resume)

    for start, messages in zip(at_work, (0, 1), strict=True):
        assert isinstance(start, Go)
        with world.transaction() as tx:
            engine.settle(tx, built, start.token, {start.token.branch: 1})
        assert len(world.messages(run_id)) == messages
    assert world.job(run_id) == "PENDING"
    world.walk()

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "b": 1, "c": 1})
    assert world.effects == ["c"], "a and b played their handlers here"


def test_14_what_stands_behind_a_slot_that_left_under_a_pause_runs_in_the_next_dag_run(world: World) -> None:
    """Airflow has skipped it in this one; and what the slot would have tried again, another one does."""
    built = workflow("items").for_each("items", per_item, "r", name="each").then(gives(z=1), name="z").build()
    run_id = world.start(built, {"items": [1, 2]})
    ticket = world.deliver()
    claimed: dict[str, Any] = {}
    for slot in ("0", "1"):
        with world.transaction() as tx:
            start = engine.begin(tx, built, ticket, "each", slot)
        assert isinstance(start, Go)
        with world.transaction() as tx:
            fanout.expand(tx, built, tx.runs.lock(run_id), built.step("each"), start.token)
        with world.transaction() as tx:
            claimed[slot] = (start.token, fanout.claim(tx, built.step("each"), start.token))
    token, first = claimed["0"]
    with world.transaction() as tx:
        engine.fail_item(tx, built, built.step("each"), token, first, RuntimeError("again"), 1)
    world.do(run_id, control.pause)
    with world.transaction() as tx:
        assert isinstance(fanout.claim(tx, built.step("each"), token), engine.Leave)
    world.do(run_id, control.resume)

    token, second = claimed["1"]
    with world.transaction() as tx:
        engine.settle_item(tx, built, built.step("each"), token, second, {})
    with world.transaction() as tx:
        left = fanout.claim(tx, built.step("each"), token)
    assert isinstance(left, fanout.Claimed)
    assert left.index == first.index
    with world.transaction() as tx:
        result = engine.settle_item(tx, built, built.step("each"), token, left, {})

    assert isinstance(result, engine.Leave)
    assert (world.job(run_id), world.run(run_id).current_step) == ("PENDING", "z")
    world.walk()
    assert world.status(run_id) == "completed"


@pytest.mark.parametrize("fails_meanwhile", [True, False])
def test_14_items_that_failed_for_good_are_tried_again_after_a_failure_and_not_after_a_pause(
    mysql_world: MysqlWorld, fails_meanwhile: bool
) -> None:
    world = mysql_world
    calls: list[int] = []

    def refuses_the_first(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(step.item)
        if step.item == 1:
            raise DocumentRefused("salah")
        if step.item == 2 and calls.count(2) == 1:
            world.meanwhile(step.workflow_id, control.pause)
        return {}

    built = workflow("any").for_each("items", refuses_the_first, "r", "quorum", 2, name="each").build()
    run_id = world.start(built, {"items": [1, 2, 3]})
    world.walk()
    assert world.status(run_id) == "paused"
    if fails_meanwhile:
        with world.transaction() as tx:
            engine.fail_run(tx, built, tx.runs.lock(run_id), DocumentRefused("menyerah", code=503), None)
        world.act(run_id, control.retry, "ann")
    else:
        world.act(run_id, control.resume)

    assert world.status(run_id) == "completed"
    assert calls == ([1, 2, 1, 3] if fails_meanwhile else [1, 2, 3])


def test_14_a_pause_within_a_for_each_stops_after_the_item_and_goes_on_behind_it(world: World) -> None:
    def pauses(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.item)
        return {}

    built = workflow("items").for_each("items", pauses, "r", name="each").build()
    run_id = world.start(built, {"items": [1, 2, 3]})
    ticket = world.deliver()
    original = built.step("each")
    seen: list[int] = []

    def counted() -> Any:
        seen.append(1)
        if len(seen) == 4:  # begin, expand, claim and the first item are done
            world.do(run_id, control.pause)
        return world.transaction()

    result = runner.run_step(built, ticket, original.name, counted, is_last_try=True, branch="0")

    assert isinstance(result, engine.Leave)
    assert (world.status(run_id), world.job(run_id)) == ("paused", "WAITING")
    assert len(world.effects) < 3
    world.act(run_id, control.resume)
    assert (world.status(run_id), world.effects) == ("completed", [1, 2, 3])


def test_15_a_wait_that_is_reached_under_a_pause_is_recorded_and_the_pause_stays(world: World) -> None:
    built = (
        workflow("gate")
        .then(gives(a=1), name="a")
        .wait_for_signal("go", name="gate", timeout=timedelta(hours=1))
        .build()
    )
    run_id = world.start(built)
    ticket = world.deliver()
    world.step(ticket, "a")
    with world.transaction() as tx:
        start = engine.begin(tx, built, ticket, "gate")
    assert isinstance(start, Go)
    world.do(run_id, control.pause)

    with world.transaction() as tx:
        engine.enter(tx, built, start.token)

    assert (world.status(run_id), world.waiting(run_id)["names"], world.messages(run_id)) == ("paused", ["go"], [])
    world.act(run_id, control.resume)
    assert world.status(run_id) == "waiting_for_signal"
    world.signal(run_id, "go")
    assert world.status(run_id) == "completed"


# ------------------------------------------------------------------------------------------------------ hand-offs


def test_16_a_hand_off_that_fails_half_way_starts_exactly_one_run_per_item(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = workflow("agent").then(gives(done=1), name="work").build()
    built = workflow("hands").start_workflows("items", agent, name="start").wait_for_agents().build()
    original, left = starts.start_child, [7, 4, 2]

    def stumbles(*arguments: Any, **named: Any) -> int:
        if left and arguments[5] == left[-1]:
            left.pop()
            raise TransientDatabaseError("deadlock", 1213) if len(left) % 2 else RuntimeError("a bug")
        return original(*arguments, **named)

    monkeypatch.setattr(starts, "start_child", stumbles)
    run_id = world.begin(built, {"items": list(range(10))})

    assert (left, world.status(run_id)) == ([], "completed")
    children = world.children(run_id)
    assert world.state(run_id)["started_workflow_ids"] == children
    assert [world.state(one)["item"] for one in children] == list(range(10))
    assert world.effects == ["work"] * 10


# ------------------------------------------------------------------------------------------ state, keys, versions


def test_17_a_key_lives_as_long_as_its_last_writer(world: World) -> None:
    built = workflow("prunes").then(gives(old=1, kept=1), name="a").then(gives(kept=2), name="b")
    run_id = world.begin(built.then(gives(c=1), name="c").prune_state_after(2).build())

    assert world.state(run_id) == {"kept": 2, "c": 1}


def test_18_a_key_belongs_to_its_workflow_and_its_payload(world: World) -> None:
    one = workflow("one").then(gives(a=1), name="a").idempotency_key("{k}").build()
    two = workflow("two").then(gives(a=1), name="a").idempotency_key("{k}").build()
    first = world.begin(one, {"k": "x"})

    assert world.start(two, {"k": "x"}) != first
    assert world.start(one, {"k": "x"}) == first
    with pytest.raises(Conflict, match="another payload"):
        world.dispatch(one, {"k": "x", "more": 1})


def test_18_two_dispatches_of_one_key_at_once_make_one_run(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    built = workflow("keyed").then(gives(a=1), name="a").idempotency_key("{k}").build()
    world.know(built)

    def dispatches() -> Any:
        with other.transaction() as tx:
            return control.dispatch(tx, built, {"k": "x"}).workflow_id

    beside = ExitStack()
    with world.transaction() as tx:
        first = control.dispatch(tx, built, {"k": "x"}).workflow_id
        answers = beside.enter_context(at_once(dispatches))
        wait_for_lock(world)
    beside.close()

    assert answers == [first]
    world.walk()
    assert (world.all_runs(), world.effects, world.status(first)) == ([first], ["a"], "completed")


def test_19_a_run_of_another_definition_stops_with_a_sentence(world: World) -> None:
    old = workflow("changes").wait_for_signal("go", name="gate").then(gives(a=1), name="a").build()
    new = (
        workflow("changes")
        .wait_for_signal("go", name="gate")
        .then(gives(b=1), name="b")
        .then(gives(c=1), name="c")
        .build()
    )
    run_id = world.begin(old)
    world.definitions["changes"] = new

    world.signal(run_id, "go")

    assert (world.status(run_id), world.effects) == ("failed", [])
    assert "another definition" in world.error(run_id)


@pytest.mark.parametrize("budget", ["transitions", "bytes"])
def test_20_a_budget_that_breaks_on_delivery_keeps_the_signal_and_fails_the_run(world: World, budget: str) -> None:
    built = workflow("tight").then(gives(a=1), name="a").wait_for_signal("go", name="gate", result_key="got")
    built = built.max_transitions(1) if budget == "transitions" else built.max_state_bytes(100)
    run_id = world.begin(built.build())

    world.signal(run_id, "go", {"text": "x" * 200})

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 422)
    assert world.signals(run_id) == [("go", {"text": "x" * 200})]
    assert "got" not in world.state(run_id)


def test_21_chunks_survive_a_retry_by_hand(world: World) -> None:
    produced: list[int] = []
    broken = [True]

    def numbers(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
        for number in range(len(chunks), 5):
            if number == 3 and broken:
                raise DocumentRefused("putus")
            produced.append(number)
            yield number

    run_id = world.begin(workflow("streams").stream(numbers, lambda chunks, state: {"all": chunks}).build())
    assert (world.status(run_id), world.chunks(run_id, "numbers")) == ("failed", [0, 1, 2])
    broken.clear()

    world.act(run_id, control.retry)

    assert (world.state(run_id), produced) == ({"all": [0, 1, 2, 3, 4]}, [0, 1, 2, 3, 4])
    assert world.chunks(run_id, "numbers") == []


WAITING_STEPS: dict[str, Callable[[], Any]] = {
    "signal": lambda: workflow("w_signal").wait_for_signal("go", name="wait"),
    "delay": lambda: workflow("w_delay").delay(60, name="wait"),
    "workflows": lambda: workflow("w_workflows").wait_for_workflows("ids", name="wait"),
    "nested": lambda: workflow("w_nested").run_workflow(CHILD, name="wait"),
}


@pytest.mark.parametrize("kind", WAITING_STEPS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_22_a_crash_around_the_commit_of_a_wait_leaves_a_task_or_a_recorded_wait(
    world: World, kind: str, moment: str
) -> None:
    built = WAITING_STEPS[kind]().then(gives(z=1), name="z").build()
    other = world.begin(CHILD)
    run_id = world.start(built, {"ids": [other]})
    ticket = world.deliver()

    with pytest.raises(Died):
        runner.run_step(built, ticket, "wait", dying_at(world, 2, moment), is_last_try=True)

    if moment == "before":
        assert (world.status(run_id), world.job(run_id)) == ("running", "PROCESSING"), "its DAG run is known to be dead"
        with world.transaction() as tx:
            engine.recover(tx, built, tx.runs.lock(run_id), 3, "died")
        world.walk()
    assert world.job(run_id) == "WAITING"
    assert world.waiting(run_id)["step"] == "wait"
    assert len(world.children(run_id)) == (1 if kind == "nested" else 0)
    for one in (run_id, other, *world.children(run_id)):
        if world.status(one) == "waiting_for_signal":
            world.signal(one, "go")
    world.pass_time(timedelta(minutes=2))
    assert (world.status(run_id), world.effects) == ("completed", ["z"])


def dying_at(world: World, number: int, moment: str) -> Callable[[], Any]:
    """Transactions of a process that dies right before or right after the commit of this one."""
    seen: list[int] = []

    @contextmanager
    def transaction() -> Iterator[Any]:
        seen.append(1)
        with world.transaction() as tx:
            yield tx
            if len(seen) == number and moment == "before":
                raise Died
        if len(seen) == number:
            raise Died

    return transaction


def test_23_an_unknown_target_fails_without_running_the_handler_again(world: World) -> None:
    calls: list[int] = []

    def strays(state: dict[str, Any], step: Any) -> dict[str, Any]:
        calls.append(1)
        return {"_next_step": "nowhere"}

    run_id = world.begin(workflow("strays").then(strays).max_attempts(5).build())

    assert (world.status(run_id), len(calls)) == ("failed", 1)
    assert "nowhere" in world.error(run_id)


def test_23_an_unknown_target_of_a_reducer_runs_no_further_item(world: World) -> None:
    built = workflow("strays").for_each(
        "items", per_item, mode="first_success", reducer=lambda state, step: {"_next_step": "nowhere"}, name="each"
    )
    run_id = world.begin(built.build(), {"items": [1, 2, 3]})

    assert (world.status(run_id), world.effects) == ("failed", [])
    assert "nowhere" in world.error(run_id)
    assert len(world.names(run_id, "started")) == 1


def test_24_a_waiter_and_the_end_it_waits_for_at_once_do_not_miss_each_other(mysql_world: MysqlWorld) -> None:
    world, other = mysql_world, mysql_world.another()
    work = workflow("work").then(gives(a=1), name="a").build()
    waits = workflow("waits").wait_for_workflows("ids", name="wait").then(gives(z=1), name="z").build()
    worker = world.start(work)
    worker_ticket = world.deliver()
    waiter = world.start(waits, {"ids": [worker]})
    ticket = world.deliver()
    with world.transaction() as tx:
        start = engine.begin(tx, waits, ticket, "wait")
    assert isinstance(start, Go)

    beside = ExitStack()
    with world.transaction() as tx:
        engine.enter(tx, waits, start.token)
        ends = partial(runner.run_step, work, worker_ticket, "a", other.transaction, is_last_try=True)
        beside.enter_context(at_once(ends))
        wait_for_lock(world)
    beside.close()

    world.walk()
    assert (world.status(waiter), world.effects) == ("completed", ["a", "z"])


def test_24_a_wake_up_that_was_lost_is_found_by_the_reconciler(mysql_world: MysqlWorld) -> None:
    world = mysql_world
    other = world.begin(CHILD)
    waiter = world.begin(workflow("waits").wait_for_workflows("ids", name="wait").build(), {"ids": [other]})
    with world.transaction() as tx, tx.conn.cursor() as cursor:
        cursor.execute("UPDATE workflow_runs SET status = 'completed' WHERE id = %s", (other,))
    world.walk()
    assert world.status(waiter) == "waiting_for_workflows"

    repairs = WorkflowRepairs(world.database, world.deployed, lambda: False)  # type: ignore[arg-type]
    with world.transaction() as tx:
        found = rows.decided_waits(tx.conn, rows.Page(100))
    assert [repairs.wake_waiter(one) for one in (*found, *found)] == [True, False]

    world.walk()
    assert world.status(waiter) == "completed"


def test_24_two_runs_that_begin_to_wait_for_each_other_at_once_are_told(mysql_world: MysqlWorld) -> None:
    """Both look before either has recorded its wait: locks make one of them look again."""
    world, other = mysql_world, mysql_world.another()
    ring = workflow("ring").wait_for_signal("ids", name="learn").wait_for_workflows("ids", name="wait").build()
    one, two = world.begin(ring), world.begin(ring)
    tickets = {}
    for run_id, ids in ((one, [two]), (two, [one])):
        world.do(run_id, control.signal, "ids", {"ids": ids})
        tickets[run_id] = world.deliver()
        world.step(tickets[run_id], "learn")
    both = threading.Barrier(2)

    def waits(run_id: int, database: Any) -> Any:
        both.wait(PATIENCE_S)
        return runner.run_step(ring, tickets[run_id], "wait", database.transaction, is_last_try=True)

    with at_once(lambda: waits(two, other)) as answers:
        try:
            answers.append(waits(one, world.database))
        except DocumentRefused as refused:
            answers.append(refused)

    told = [answer for answer in answers if isinstance(answer, DocumentRefused)]
    assert len(answers) == 2
    assert told, answers
    assert all("ring" in refused.message or "terpenuhi" in refused.message for refused in told)
    assert "waiting_for_workflows" not in {world.status(one), world.status(two)} or len(told) == 1
    world.walk()
    assert {world.status(one), world.status(two)} == {"failed"}


def test_25_an_item_limit_on_a_first_step_fails_the_run(world: World) -> None:
    built = workflow("many").for_each("items", never, name="each").max_for_each_items(2).build()
    run_id = world.begin(built, {"items": [1, 2, 3]})

    assert (world.status(run_id), world.run(run_id).error_code, world.effects) == ("failed", 422, [])
    assert "max_for_each_items" in world.error(run_id)


def test_25_a_budget_that_an_items_result_breaks_runs_no_further_item(world: World) -> None:
    def large(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.item)
        return {"text": "x" * 500}

    built = workflow("large").for_each("items", large, mode="first_success", name="each").max_state_bytes(300).build()
    run_id = world.begin(built, {"items": [1, 2, 3]})

    assert (world.status(run_id), world.run(run_id).error_code, world.effects) == ("failed", 422, [])
    assert len(world.names(run_id, "started")) == 1


def test_26_the_count_is_reset_also_when_a_branch_leaves_the_loop(world: World) -> None:
    def outer(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"outer": state.get("outer", 0) + 1, "inner": 0}

    def leaves(state: dict[str, Any], step: Any) -> dict[str, Any]:
        inner = state["inner"] + 1
        return {"inner": inner} | ({"_next_step": "behind"} if inner == 3 else {})

    built = (
        workflow("leaves")
        .then(outer)
        .then(leaves)
        .repeat_until("leaves", "inner", "never", max_iterations=2, name="inner_again")
        .then(gives(), name="behind")
        .repeat_until("outer", "outer", 3, name="outer_again")
        .build()
    )
    run_id = world.begin(built)

    assert (world.status(run_id), world.effects) == ("completed", ["behind"] * 3)


def test_26_a_loops_count_is_reset_when_the_loop_is_left(world: World) -> None:
    def outer(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"outer": state.get("outer", 0) + 1, "inner": 0}

    def inner(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write([state["outer"], state["inner"]])
        return {"inner": state["inner"] + 1}

    built: Definition = (
        workflow("loops")
        .then(outer)
        .then(inner)
        .repeat_until("inner", "inner", 3, max_iterations=2, name="inner_again")
        .repeat_until("outer", "outer", 3, max_iterations=2, name="outer_again")
        .build()
    )
    run_id = world.begin(built)

    assert world.status(run_id) == "completed"
    assert world.effects == [[one, two] for one in (1, 2, 3) for two in (0, 1, 2)]
