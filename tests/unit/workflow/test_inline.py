"""Every step type once, in memory: what a developer of another module may rely on."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.errors import Conflict, DocumentRefused
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.inline import run_inline


def add(**output: Any) -> Any:
    def handler(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write((step.step, step.visit))
        return output

    return handler


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write(("undo", sorted(state)))


def test_steps_pass_their_state_on() -> None:
    def second(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"b": state["a"] + 1, "_private": 1}

    run = run_inline(workflow("two").then(add(a=Decimal("1.50")), name="first").then(second).build(), {"p": 1})

    assert (run.status, run.state) == ("completed", {"p": 1, "a": Decimal("1.50"), "b": Decimal("2.50")})


def test_a_parallel_group_merges_and_goes_on_once() -> None:
    group = workflow("group").parallel({"left": add(a=1), "right": add(b=2)}).then(add(c=3), name="after").build()

    run = run_inline(group)

    assert run.state == {"a": 1, "b": 2, "c": 3}
    assert run.effects.count(("after", 1)) == 1


def test_two_branches_that_return_one_key_are_an_error_that_names_both() -> None:
    clash = workflow("clash").parallel({"left": add(a=1), "right": add(a=2)})

    run = run_inline(clash.build())
    assert run.status == "failed"
    assert "left and right" in str(run.row.error)
    last = workflow("last").parallel({"left": add(a=1), "right": add(a=2)}, on_conflict="last").build()
    assert run_inline(last).state == {"a": 2}


def test_for_each_aggregates_by_index_and_reduces() -> None:
    def double(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"twice": step.item * 2}

    def total(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"sum": sum(one["twice"] for one in state["doubled"]["results"].values())}

    built = workflow("each").for_each("items", double, result_key="doubled", reducer=total).build()
    run = run_inline(built, {"items": [1, 2, 3]})

    assert run.status == "completed"
    assert run.state["sum"] == 12
    assert run.state["doubled"] | {"total": 3, "succeeded": 3, "failed": 0} == run.state["doubled"]


@pytest.mark.parametrize(
    ("mode", "quorum", "items", "status"),
    [
        ("all", None, [], "completed"),
        ("first_success", None, [], "failed"),
        ("quorum", 3, [1, 2], "failed"),
        ("quorum", 2, [1, -1, 2], "completed"),
        ("first_success", None, [-1, 2, 3], "completed"),
        ("all", None, [1, -1], "failed"),
        ("quorum", 2, [-1, -1, 1], "failed"),
    ],
)
def test_modes_of_for_each(mode: Any, quorum: int | None, items: list[int], status: str) -> None:
    def positive(state: dict[str, Any], step: Any) -> dict[str, Any]:
        if step.item < 0:
            raise DocumentRefused("negatif")
        return {}

    run = run_inline(workflow("modes").for_each("items", positive, mode=mode, quorum=quorum).build(), {"items": items})

    assert run.status == status


def test_a_loop_runs_its_steps_as_fresh_visits() -> None:
    def count(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"n": state.get("n", 0) + 1}

    built = workflow("loop").then(count).then(add(), name="body").repeat_until("count", "n", 3).build()

    run = run_inline(built)

    assert run.state["n"] == 3
    assert run.effects == [("body", 1), ("body", 2), ("body", 3)]


def test_a_loop_without_end_fails_after_max_iterations() -> None:
    run = run_inline(workflow("ever").then(add(), name="a").repeat_while("a", condition=_yes, max_iterations=2).build())

    assert run.status == "failed"
    assert len(run.effects) == 3


def _yes(state: dict[str, Any]) -> bool:
    return True


def test_a_nested_run_merges_and_its_failure_is_the_parents() -> None:
    child = workflow("child").then(add(c=1), name="c").build()
    parent = workflow("parent").then(add(a=1), name="a").run_workflow(child).then(add(z=1), name="z").build()

    run = run_inline(parent, {"p": 1})

    assert (run.status, run.state) == ("completed", {"p": 1, "a": 1, "c": 1, "z": 1})


def test_a_delay_is_over_when_its_time_has_come() -> None:
    run = run_inline(workflow("late").delay(days=1, hours=1, minutes=2, seconds=30).then(add(a=1), name="a").build())

    assert (run.status, run.row.wakes_at is not None) == ("running", True)
    run.pass_time(timedelta(seconds=90149))
    assert run.state == {}
    run.pass_time(timedelta(seconds=1))
    assert (run.status, run.state) == ("completed", {"a": 1})


def test_signals_early_late_and_again() -> None:
    built = (
        workflow("gates").wait_for_signal("go").then(add(), name="between").wait_for_signal("go", name="second").build()
    )
    run = run_inline(built)

    run.signal("other", {"x": 1})
    assert run.status == "waiting_for_signal"
    run.signal("go", {"a": 1})
    assert run.row.current_step == "second", "one signal serves one wait"
    run.signal("go", {"b": 2})
    assert (run.status, run.state) == ("completed", {"a": 1, "b": 2})
    with pytest.raises(Conflict):
        run.signal("go")


def test_an_approval_takes_only_the_answer_to_the_open_question() -> None:
    built = workflow("asks").then(add(), name="a").wait_for_approval().then(add(done=1), name="b").build()
    run = run_inline(built)

    run.approve("budi", reason="cocok")
    assert run.status == "completed"
    assert run.state["approval"]["by"] == "budi"
    assert run.state["approval"]["outcome"] == "approved"

    other = run_inline(built)
    other.reject("sari", "salah hitung")
    assert (other.status, other.row.error_code) == ("failed", 403)
    with pytest.raises(Conflict):
        other.approve("budi")


def test_a_decision_goes_on_either_way_and_a_timeout_may_too() -> None:
    built = workflow("decides").wait_for_decision(timeout=timedelta(days=1), on_timeout={"late": True}).build()
    rejected = run_inline(built)
    rejected.reject("sari", "tidak")
    assert rejected.state["decision"]["outcome"] == "rejected"

    late = run_inline(built)
    late.pass_time(timedelta(days=2))
    assert (late.status, late.state) == ("completed", {"late": True})


def test_pause_keeps_a_wait_and_resume_shows_it() -> None:
    run = run_inline(workflow("pauses").wait_for_signal("go").then(add(a=1), name="a").build())

    run.do(control.pause)
    assert run.status == "paused"
    run.signal("go", {"x": 1})
    assert run.status == "paused"
    run.do(control.resume)
    assert (run.status, run.state) == ("completed", {"x": 1, "a": 1})


def test_cancel_undoes_newest_first_then_calls_on_cancel() -> None:
    built = (
        workflow("undoes")
        .then(add(a=1), name="a", compensate_with=undo)
        .then(add(b=1), name="b", compensate_with=undo)
        .wait_for_signal("never")
        .on_cancel(undo)
        .build()
    )
    run = run_inline(built, {"p": 1})

    run.do(control.cancel, "budi", "batal")

    assert run.status == "cancelled"
    assert run.effects[-3:] == [("undo", ["a", "b", "p"]), ("undo", ["a", "p"]), ("undo", ["a", "b", "p"])]
    assert run.row.compensation == "done"
    with pytest.raises(Conflict, match="cancelled"):
        run.do(control.cancel)


def test_a_stream_keeps_its_chunks_over_a_failure() -> None:
    failures = [1]

    def talk(state: dict[str, Any], step: Any, chunks: list[Any]) -> Any:
        for n in range(len(chunks), 5):
            if n == 2 and failures:
                failures.pop()
                raise DocumentRefused("putus")
            yield n

    def join(chunks: list[Any], state: dict[str, Any]) -> dict[str, Any]:
        return {"all": chunks}

    run = run_inline(workflow("talks").stream(talk, join).build())
    assert run.status == "failed"
    run.do(control.retry)
    assert (run.status, run.state) == ("completed", {"all": [0, 1, 2, 3, 4]})
    assert run.world.database.tables.chunks == {}


def test_hand_offs_start_one_run_per_item_and_can_be_waited_for() -> None:
    child = workflow("agent").then(add(done=True), name="work").build()
    built = workflow("starts").start_workflows("items", child, group_key="batch").wait_for_agents().build()

    run = run_inline(built, {"items": ["x", "y"]})

    assert run.status == "completed"
    assert set(run.state["agent_results"]) == {str(one) for one in run.state["started_workflow_ids"]}
    results = run.state["agent_results"].values()
    assert [one["start_item_index"] for one in results] == [0, 1]
    assert all(one["done"] for one in results)


def test_budgets_fail_the_run_at_once() -> None:
    assert (
        run_inline(workflow("t").then(add(), name="a").then(add(), name="b").max_transitions(1).build()).status
        == "failed"
    )
    big = workflow("s").then(add(text="x" * 100), name="a").max_state_bytes(64).build()
    run = run_inline(big)
    assert (run.status, run.effects) == ("failed", []), "the step is rolled back"


def test_a_key_belongs_to_one_payload() -> None:
    built = workflow("keyed").then(add(), name="a").idempotency_key("{k}").build()
    run = run_inline(built, {"k": 1})

    assert run.world.dispatch(built, {"k": 1}) == run.id
    with pytest.raises(Conflict, match="another payload"):
        run.world.dispatch(built, {"k": 1, "x": 2}, key="1")


def test_pruning_drops_what_nobody_wrote_for_long() -> None:
    built = workflow("prunes").prune_state_after(2)
    for name in "abcd":
        built = built.then(add(**{name: 1}), name=name)

    assert run_inline(built.build(), {"p": 1}).state == {"p": 1, "c": 1, "d": 1}
