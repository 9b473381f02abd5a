"""Two copies of a task at once, branches and slots side by side, on real rows: no second effect, and nothing is stuck.

Relay and consumer as processes: integration/ingest_consumer. Two reconcilers: integration/reconciler.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tenacity import wait_none

from everest.workflow import again, control, engine, runner
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.ticket import Fenced, Ticket
from ingest_consumer import shadow as jobs
from tests.workflow.world import MysqlWorld, gives

PATIENCE_S = 60


@pytest.fixture(autouse=True)
def little_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "wait_random_exponential", lambda **_: wait_none())


def together(*works: Callable[[], Any]) -> list[Any]:
    """Each in a thread of its own; what they answered, or raised, in their order."""
    answers: list[Any] = [None] * len(works)

    def run(number: int) -> None:
        try:
            answers[number] = works[number]()
        except Exception as error:
            answers[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "it hangs"
    return answers


def copies(world: MysqlWorld, built: Definition, ticket: Ticket, step: str, *branches: str) -> list[Callable[[], Any]]:
    """Tasks of one DAG run, each in a process of its own."""

    def task(database: Any, branch: str) -> Any:
        return runner.run_step(built, ticket, step, database.transaction, is_last_try=True, branch=branch)

    return [partial(task, world.another(), branch) for branch in branches]


def meet(parties: int) -> Callable[[], None]:
    """Whoever comes waits for the others, the first time; a task that is tried again goes on alone."""
    barrier = threading.Barrier(parties)

    def wait() -> None:
        with suppress(threading.BrokenBarrierError):
            barrier.wait(5)

    return wait


@pytest.mark.parametrize("is_last_step", [False, True])
def test_two_copies_of_a_task_commit_once(mysql_world: MysqlWorld, is_last_step: bool) -> None:
    both = meet(2)

    def slow(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("slow")
        both()
        return {"attempt": step.attempt}

    built = workflow("copies").then(slow, compensate_with=slow)
    done = (built if is_last_step else built.then(gives(z=1), name="z")).build()
    run_id = mysql_world.start(done)

    answers = together(*copies(mysql_world, done, mysql_world.deliver(), "slow", "", ""))

    assert sorted(isinstance(answer, Fenced) for answer in answers) == [False, True], answers
    assert (mysql_world.effects, mysql_world.state(run_id)) == (["slow"], {"attempt": 2})
    assert mysql_world.status(run_id) == ("completed" if is_last_step else "running")
    with mysql_world.transaction() as tx:
        assert len(tx.runs.compensations(run_id)) == 1


def test_branches_side_by_side_move_the_pointer_once(mysql_world: MysqlWorld) -> None:
    every = meet(4)

    def branch(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.branch)
        every()
        return {step.branch: 1}

    built = workflow("group").parallel(dict.fromkeys("abcd", branch), name="all").then(gives(z=1), name="z").build()
    run_id = mysql_world.start(built)
    ticket = mysql_world.deliver()

    answers = together(*copies(mysql_world, built, ticket, "all", *"abcd"))

    assert sorted(type(answer).__name__ for answer in answers) == ["Forward", "Replay", "Replay", "Replay"], answers
    mysql_world.step(ticket, "z")
    assert mysql_world.state(run_id) == {"a": 1, "b": 1, "c": 1, "d": 1, "z": 1}
    assert Counter(mysql_world.effects) == Counter("abcdz")


@pytest.mark.parametrize("slots", ["0123", "0011", "0000"])
def test_slots_and_copies_of_slots_do_each_item_once_and_end(mysql_world: MysqlWorld, slots: str) -> None:
    def one(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.item)
        return {"twice": step.item * 2}

    built = workflow("each").for_each("items", one, "r", name="each", concurrency=4).then(gives(z=1), name="z").build()
    run_id = mysql_world.start(built, {"items": list(range(30))})
    ticket = mysql_world.deliver()

    answers = together(*copies(mysql_world, built, ticket, "each", *slots))

    assert [one for one in answers if isinstance(one, Exception) and not isinstance(one, Fenced)] == []
    assert sum(isinstance(answer, engine.Forward) for answer in answers) == 1, answers
    mysql_world.step(ticket, "z")
    assert Counter(one for one in mysql_world.effects if one != "z") == Counter(range(30))
    assert (mysql_world.status(run_id), mysql_world.state(run_id)["r"]["succeeded"]) == ("completed", 30)


def test_slots_take_different_items_at_the_same_time(mysql_world: MysqlWorld) -> None:
    """Each holds its claim open while the other claims."""
    built = workflow("each").for_each("items", gives(), name="each").build()
    run_id = mysql_world.start(built, {"items": list(range(50))})
    with mysql_world.transaction() as tx:
        tx.runs.add_items(tx.runs.lock(run_id), "each", list(range(50)))
    other = mysql_world.another()

    with mysql_world.transaction() as one, other.transaction() as two:
        found = [tx.runs.claim_item(run_id, "each", 1, slot, 1) for tx, slot in ((one, "0"), (two, "1"))]
        assert [item.index for item in found if item is not None] == [0, 1]


def test_an_early_end_drops_what_the_other_slots_have_at_work(mysql_world: MysqlWorld) -> None:
    every = meet(3)

    def one(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.item)
        every()
        return {}

    built = (
        workflow("first").for_each("items", one, "r", "first_success", name="each").then(gives(z=1), name="z").build()
    )
    run_id = mysql_world.start(built, {"items": [1, 2, 3, 4, 5]})
    ticket = mysql_world.deliver()

    answers = together(*copies(mysql_world, built, ticket, "each", *"012"))

    assert sorted(type(answer).__name__ for answer in answers) == ["Forward", "Replay", "Replay"], answers
    mysql_world.step(ticket, "z")
    assert (mysql_world.status(run_id), len(mysql_world.effects)) == ("completed", 2)


def test_two_copies_of_a_hand_off_start_each_run_once(mysql_world: MysqlWorld) -> None:
    agent = workflow("agent").then(gives(a=1), name="work").build()
    built = workflow("hands").start_workflows("items", agent, name="start").then(gives(z=1), name="z").build()
    run_id = mysql_world.start(built, {"items": [1, 2, 3]})
    ticket = mysql_world.deliver()

    together(*copies(mysql_world, built, ticket, "start", "", "", ""))
    mysql_world.step(ticket, "start")
    mysql_world.step(ticket, "z")
    mysql_world.walk()

    assert mysql_world.state(run_id)["started_workflow_ids"] == mysql_world.children(run_id)
    assert len(mysql_world.children(run_id)) == 3
    assert Counter(mysql_world.effects) == Counter({"z": 1, "work": 3})


def test_two_copies_of_a_nested_run_make_one_child(mysql_world: MysqlWorld) -> None:
    child = workflow("child").then(gives(c=1), name="work").build()
    built = workflow("parent").run_workflow(child).build()
    run_id = mysql_world.start(built)

    together(*copies(mysql_world, built, mysql_world.deliver(), "child", "", "", ""))
    mysql_world.walk()

    assert (mysql_world.status(run_id), len(mysql_world.children(run_id)), mysql_world.effects) == (
        "completed",
        1,
        ["work"],
    )


def test_two_copies_of_a_stream_store_each_chunk_once(mysql_world: MysqlWorld) -> None:
    both = meet(2)

    def numbers(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
        both()
        yield from range(len(chunks), 20)

    built = workflow("stream").stream(numbers, lambda chunks, state: {"all": chunks}).build()
    run_id = mysql_world.start(built)

    together(*copies(mysql_world, built, mysql_world.deliver(), "numbers", "", ""))

    assert mysql_world.state(run_id) == {"all": list(range(20))}


def test_runs_that_end_at_once_wake_the_one_that_waits_for_them_once(mysql_world: MysqlWorld) -> None:
    every = meet(6)

    def work(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write("work")
        every()
        return {}

    worker = workflow("worker").then(work).build()
    built = workflow("waits").wait_for_workflows("ids", name="wait").then(gives(z=1), name="z").build()
    workers = [mysql_world.start(worker) for _ in range(6)]
    tickets = [mysql_world.deliver() for _ in workers]
    run_id = mysql_world.begin(built, {"ids": workers})

    answers = together(*(copies(mysql_world, worker, ticket, "work", "")[0] for ticket in tickets))

    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    assert len(mysql_world.messages(run_id)) == 1
    mysql_world.walk()
    assert (mysql_world.status(run_id), Counter(mysql_world.effects)) == ("completed", Counter({"work": 6, "z": 1}))


def test_a_signal_and_a_timeout_at_once_give_one_answer(mysql_world: MysqlWorld) -> None:
    built = (
        workflow("late")
        .wait_for_signal("go", name="gate", result_key="got", timeout=timedelta(hours=1), on_timeout={"late": True})
        .then(gives(z=1), name="z")
        .build()
    )
    for _ in range(5):
        run_id = mysql_world.begin(built)
        mysql_world.database.move_clock(timedelta(hours=2))
        ticket = mysql_world.deliver()
        other, third = mysql_world.another(), mysql_world.another()

        def signals(run_id: int = run_id, database: Any = other) -> None:
            with database.transaction() as tx:
                control.signal(tx, built, run_id, "go", {"n": 1})

        def task(ticket: Ticket = ticket, database: Any = third) -> Any:
            return runner.run_step(built, ticket, "gate", database.transaction, is_last_try=True)

        answers = together(signals, task)
        assert isinstance(answers[1], engine.Forward), answers
        mysql_world.step(ticket, "z")
        mysql_world.walk()
        assert mysql_world.status(run_id) == "completed"
        assert mysql_world.state(run_id) in ({"got": {"n": 1}, "z": 1}, {"late": True, "z": 1})
    assert mysql_world.effects == ["z"] * 5


def test_two_relays_publish_each_message_once_and_end_a_delay_once(mysql_world: MysqlWorld) -> None:
    """Their statements, interleaved: what one holds, the other passes by."""
    built = workflow("late").delay(60).then(gives(z=1), name="z").build()
    runs = [mysql_world.begin(built) for _ in range(4)]
    mysql_world.database.move_clock(timedelta(minutes=2))
    other = mysql_world.another()

    with mysql_world.transaction() as one, other.transaction() as two:
        first = list(jobs.queries.take_due(one.conn, batch=2))
        second = list(jobs.queries.take_due(two.conn, batch=10))
        assert (len(first), len(second)) == (2, 2)
        assert {row[0] for row in first} & {row[0] for row in second} == set()

    def wakes(database: Any, shadow_id: int, dag_run_id: str) -> int:
        with database.transaction() as tx:
            return int(jobs.queries.wake(tx.conn, shadow_id=shadow_id, dag_run_id=dag_run_id))

    for run_id in runs:
        run = mysql_world.run(run_id)
        relays = [partial(wakes, base, run.carrier_shadow_id, run.dag_run_id) for base in (other, mysql_world.database)]
        assert sorted(together(*relays)) == [0, 1]
    mysql_world.walk()
    assert ([mysql_world.status(one) for one in runs], mysql_world.effects) == (["completed"] * 4, ["z"] * 4)
