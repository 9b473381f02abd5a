"""The workflows that the numbered lists of behaviours and situations go through on the running stack.

Each is small and holds several lines of the lists. Handlers leave a business row per call, and some of them end their
own process, as a power cut would, before the commit of their first try. Airflow's processes import this module, and so
do the test's own reconciler and the commands (for what undoes a step).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn

from everest.errors import DocumentRefused
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.fields import Field

GATE_SECONDS = 120
DIES = "EVEREST_TEST_DIES"
"""Set in the environment of a command that is to die in the middle of undoing a step."""

State = dict[str, Any]


def note(step: Any, *about: Any) -> None:
    """A business row, in the step's own transaction."""
    words = [step.step, step.visit, step.branch if step.index is None else step.index, *about]
    write(step, "did", ":".join(map(str, words)))


def write(step: Any, action: str, reason: str) -> None:
    with step.tx.conn.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_log (actor, action, workflow_id, reason) VALUES ('guest', %s, %s, %s)",
            (action, step.workflow_id, reason),
        )


def has_written(step: Any, action: str, reason: str | None = None) -> bool:
    """Whether such a row of this workflow is committed."""
    with step.tx.conn.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM audit_log WHERE actor = 'guest' AND workflow_id = %s AND action = %s"
            " AND (reason = %s OR %s IS NULL) LIMIT 1",
            (step.workflow_id, action, reason, reason),
        )
        return cursor.fetchone() is not None


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody outlives SIGKILL")


def wait_at_gate(state: State, step: Any) -> None:
    """As long as the test holds the gate that the payload names for this step, its transaction stays open."""
    gate = state.get("gates", {}).get(step.branch or step.step)
    if gate is not None:
        with step.tx.conn.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK(%s, %s)", (gate, GATE_SECONDS))
            cursor.execute("SELECT RELEASE_LOCK(%s)", (gate,))


# ------------------------------------------------------------------------------------------------------ handlers


def does(state: State, step: Any) -> State:
    """Leaves a business row."""
    note(step)
    wait_at_gate(state, step)
    return {step.branch or step.step: step.visit}


def dies_at_first(state: State, step: Any) -> State:
    """Its process is killed before the commit of the first try."""
    note(step)
    if step.attempt == 1:
        die()
    return {step.branch or step.step: step.attempt}


def refuses_at_first(state: State, step: Any) -> State:
    """Fails for good at its first try, once the branch beside it has committed."""
    note(step)
    if step.attempt == 1:
        for _ in range(GATE_SECONDS * 10):
            if has_written(step, "did", "both:1:left"):
                break
            time.sleep(0.1)
        raise DocumentRefused("belum bisa")
    return {step.branch or step.step: step.attempt}


def refuses_in_first_run(state: State, step: Any) -> State:
    """Fails for good until somebody has it begin a DAG run of its own, where the payload says so."""
    note(step)
    wait_at_gate(state, step)
    if state.get("refuses") and step.n == 1:
        raise DocumentRefused("belum bisa")
    return {step.step: step.n}


def fails_twice(state: State, step: Any) -> State:
    note(step)
    if step.attempt < 3:
        raise RuntimeError(f"attempt {step.attempt}")
    return {"seen": [state["given"], state["first"], "_private" in state], "attempts": step.attempt}


def begins(state: State, step: Any) -> State:
    note(step)
    return {"first": 1, "_private": 2}


def jumps(state: State, step: Any) -> State:
    note(step)
    return {"_next_step": "last"}


def strays(state: State, step: Any) -> State:
    note(step)
    return {"_next_step": "nowhere"}


def doubles(state: State, step: Any) -> State:
    """The slot that has the second item dies with it at its first try."""
    note(step)
    if step.index == 1 and step.attempt == 1 and state.get("dies"):
        die()
    if step.index == 1 and step.n == 1 and state.get("refuses"):
        raise DocumentRefused("belum bisa")
    return {"twice": step.item * 2}


def adds(state: State, step: Any) -> State:
    return {"sum": sum(one["twice"] for one in state["doubled"]["results"].values())}


def numbers(state: State, step: Any, chunks: list[Any]) -> Iterator[int]:
    """Killed after two chunks; then failed for good after three, until it is retried by hand."""
    for number in range(len(chunks), 5):
        if number == 2 and step.attempt == 1:
            die()
        if number == 3 and step.n == 1:
            raise DocumentRefused("putus")
        yield number


def joins(chunks: list[Any], state: State) -> State:
    return {"chunks": chunks}


def counts(state: State, step: Any) -> State:
    note(step)
    return {"passes": state.get("passes", 0) + 1}


def agent_work(state: State, step: Any) -> State:
    note(step, state["item"])
    return {"done": state["item"]}


# ------------------------------------------------------------------------------- cancel, failure, deadline


def undoes(state: State, step: Any) -> None:
    write(step, "undid", ",".join(sorted(state)))


def undoes_with_trouble(state: State, step: Any) -> None:
    """Dies with its process where that is to die; fails until somebody has mended its cause."""
    write(step, "undid", ",".join(sorted(state)))
    if os.environ.get(DIES):
        die()
    if not has_written(step, "mended"):
        raise RuntimeError("the warehouse does not answer")


def cleans(state: State, step: Any) -> None:
    write(step, "cleaned", ",".join(sorted(state)))


def is_late(state: State, step: Any) -> None:
    write(step, "late", ",".join(sorted(state)))


# ----------------------------------------------------------------------------------------------------- workflows

CHAIN = (
    workflow("test_chain")
    .then(begins, name="one")
    .then(fails_twice, name="flaky")
    .then(jumps, name="jump")
    .then(does, name="skipped")
    .then(does, name="last")
    .max_attempts(5)
    .build()
)
KILLED = (
    workflow("test_killed")
    .then(dies_at_first, name="one")
    .parallel({"left": does, "right": dies_at_first}, name="both")
    .for_each("items", doubles, "doubled", reducer=adds, name="each", concurrency=2)
    .stream(numbers, joins)
    .build()
)
FUSED = (
    workflow("test_fused")
    .tasks("fused")
    .then(does, name="one")
    .then(dies_at_first, name="two")
    .then(does, name="three")
    .build()
)
EARLY = (
    workflow("test_early")
    .wait_for_signal("early", result_key="early")
    .delay(seconds=2)
    .delay()
    .then(does, name="last")
    .build()
)
WAITS = (
    workflow("test_waits")
    .wait_for_signal("never", timeout=timedelta(seconds=1), on_timeout={"late": True})
    .wait_for_signal("go", name="first_go", result_key="one")
    .wait_for_signal("go", name="second_go", result_key="two")
    .then(does, name="last")
    .build()
)
TIMED_OUT = workflow("test_timed_out").wait_for_approval(timeout=timedelta(seconds=1)).build()
OVERDUE = (
    workflow("test_overdue")
    .wait_for_signal("go", name="gate")
    .must_complete_within(timedelta(seconds=30))
    .on_deadline(is_late)
    .build()
)
LOOP = (
    workflow("test_loop")
    .parallel({"left": does, "right": does}, name="both")
    .for_each("items", doubles, "doubled", name="each", concurrency=1)
    .wait_for_signal("pass", name="gate", result_key="pass")
    .then(counts, name="count")
    .repeat_until("both", "passes", 2, max_iterations=1)
    .build()
)
LOOPS = (
    workflow("test_loops")
    .then(counts, name="outer")
    .then(does, name="inner")
    .repeat_while("inner", condition=lambda state: state["inner"] % 2 == 1, max_iterations=1, name="inner_again")
    .repeat_until("outer", "passes", 2, max_iterations=1, name="outer_again")
    .build()
)
FIRST_OF = (
    workflow("test_first_of")
    .for_each("items", doubles, name="each", mode="first_success", concurrency=1)
    .max_for_each_items(1)
    .build()
)
QUORUM = workflow("test_quorum").for_each("items", doubles, name="each", mode="quorum", quorum=2, concurrency=1).build()
ITEMS = workflow("test_items").for_each("items", doubles, "doubled", reducer=adds, name="each", concurrency=1).build()
CLEARED = (
    workflow("test_cleared")
    .parallel({"left": does, "right": refuses_at_first}, name="both")
    .then(does, name="last")
    .build()
)
CHILD = workflow("test_child").then(refuses_in_first_run, name="in_child", compensate_with=undoes).build()
PARENT = (
    workflow("test_parent")
    .then(does, name="one", compensate_with=undoes)
    .run_workflow(CHILD, name="nested")
    .then(does, name="last")
    .build()
)
AGENT = workflow("test_agent").then(agent_work).build()
HANDS_OFF = (
    workflow("test_hands_off")
    .start_workflows("items", AGENT, name="start")
    .wait_for_agents(name="join")
    .then(does, name="last")
    .build()
)
HELD = workflow("test_held").wait_for_signal("go", name="gate").build()
WAITER = workflow("test_waiter").wait_for_workflow("other", name="join").then(does, name="last").build()
UNDONE = (
    workflow("test_undone")
    .then(does, name="one", compensate_with=undoes)
    .then(does, name="two", compensate_with=undoes_with_trouble)
    .wait_for_signal("go", name="gate")
    .on_cancel(cleans)
    .build()
)
TIGHT = (
    workflow("test_tight")
    .then(does, name="one")
    .wait_for_signal("go", name="gate", result_key="got")
    .max_transitions(1)
    .build()
)
STRAYS = workflow("test_strays").then(strays).max_attempts(5).build()
DRIVEN = (
    workflow("test_driven")
    .then(does, name="one", compensate_with=undoes)
    .then(refuses_in_first_run, name="two", compensate_with=undoes)
    .wait_for_signal("truck", name="gate", result_key="truck")
    .wait_for_signal("papers", name="desk")
    .build()
)
ASKS = (
    workflow("test_asks")
    .wait_for_input(
        "kurs",
        fields=[
            Field("usd", "number", "Kurs USD"),
            Field("pada", "date", "Berlaku pada"),
            Field("bank", "choice", choices=("BI", "BCA")),
            Field("catatan", is_required=False),
        ],
        name="rate",
        result_key="kurs",
    )
    .then(does, name="last")
    .build()
)
TWO = workflow("test_two").then(does, name="one").then(does, name="last").build()

LISTED: dict[str, Definition] = {
    one.name: one
    for one in (
        CHAIN,
        KILLED,
        FUSED,
        EARLY,
        WAITS,
        TIMED_OUT,
        OVERDUE,
        LOOP,
        LOOPS,
        FIRST_OF,
        QUORUM,
        ITEMS,
        CLEARED,
        CHILD,
        PARENT,
        AGENT,
        HANDS_OFF,
        HELD,
        WAITER,
        UNDONE,
        TIGHT,
        STRAYS,
        DRIVEN,
        ASKS,
        TWO,
    )
}
