"""A question between pauses, deaths, lost commits and deadlines; and what cannot ask at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from everest.errors import Conflict, DocumentRefused, TransientDatabaseError
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.questions import MAX_REASONS, ask_decision
from everest.workflow.runner import run_step
from everest.workflow.ticket import Leave
from tests.workflow.judging import Judge
from tests.workflow.world import MemoryWorld, MysqlWorld, World, gives


def test_an_answer_while_the_step_looks_again_is_not_lost(mysql_world: MysqlWorld) -> None:
    """It looked without knowing the answer; what it concluded is rolled back, and it looks again with it."""
    world = mysql_world
    judge = Judge()
    run_id = world.begin(judge.flow())

    def reject() -> None:
        world.meanwhile(run_id, control.reject, "sari", "tidak")
        judge.evidence = "E1"

    judge.meanwhile = reject
    judge.evidence = None  # as it found the books, it would go on, past the refusal
    with world.transaction() as tx:
        engine.announce_next(tx, tx.runs.lock(run_id))
    ticket = world.deliver()
    with pytest.raises(DocumentRefused, match="rejected oleh sari"):
        world.step(ticket, "judge")

    assert world.status(run_id) == "failed"


def test_a_step_that_fails_without_knowing_the_answer_is_tried_again_with_it(mysql_world: MysqlWorld) -> None:
    world, judge = mysql_world, Judge()
    run_id = world.begin(judge.flow())

    def answer_and_break() -> None:
        world.meanwhile(run_id, control.approve, "sari")
        raise DocumentRefused("something else is wrong")

    judge.meanwhile = answer_and_break
    with world.transaction() as tx:
        engine.announce_next(tx, tx.runs.lock(run_id))
    ticket = world.deliver()
    with pytest.raises(DocumentRefused):
        world.step(ticket, "judge")
    assert world.status(run_id) == "waiting_for_signal", "not failed over the head of an answer"

    world.step(ticket, "judge")

    assert world.state(run_id)["approved_by"] == "sari"


def test_pause_answer_and_resume(world: World) -> None:
    judge = Judge(timeout=timedelta(days=2))
    run_id = world.begin(judge.flow())
    world.act(run_id, control.pause)
    assert world.job(run_id) == "WAITING"

    world.act(run_id, control.resume)
    assert (world.status(run_id), world.job(run_id), len(world.messages(run_id))) == (
        "waiting_for_signal",
        "WAITING",
        1,
    )
    with world.transaction() as tx:
        assert tx.runs.outcome_of(world.run(run_id)).response["waiting"]["reasons"], "the reasons are back"

    world.act(run_id, control.pause)
    world.act(run_id, control.approve, "sari")
    assert world.status(run_id) == "paused"
    world.act(run_id, control.resume)
    assert world.status(run_id) == "completed"


def test_a_dag_run_that_ends_under_a_pause_does_not_lose_the_time_of_the_question(world: World) -> None:
    judge = Judge(timeout=timedelta(days=2))
    run_id = world.begin(judge.flow())
    with world.transaction() as tx:
        engine.announce_next(tx, tx.runs.lock(run_id))
    ticket = world.deliver()
    world.do(run_id, control.pause)
    assert isinstance(world.step(ticket, "judge"), Leave)

    world.act(run_id, control.resume)

    assert (world.status(run_id), len(world.messages(run_id)), len(judge.seen)) == ("waiting_for_signal", 1, 1)
    world.pass_time(timedelta(days=2))
    assert judge.seen[-1] is not None and judge.seen[-1].outcome == "timeout"


def test_a_question_asked_while_paused_is_there_after_the_resume(world: World) -> None:
    judge = Judge()
    run_id = world.start(judge.flow())
    judge.meanwhile = lambda: world.meanwhile(run_id, control.pause)
    world.walk()
    assert (world.status(run_id), world.waiting(run_id)["sequence"]) == ("paused", 1)

    world.act(run_id, control.resume)
    assert world.status(run_id) == "waiting_for_signal"
    world.act(run_id, control.approve, "sari")
    assert world.status(run_id) == "completed"


def test_a_pause_on_the_way_out_of_the_question_does_not_leave_it_waiting(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())
    judge.meanwhile = lambda: world.meanwhile(run_id, control.pause)
    world.act(run_id, control.approve, "sari")
    assert (world.status(run_id), world.run(run_id).current_step) == ("paused", "z")

    world.act(run_id, control.resume)

    assert world.status(run_id) == "completed"


def test_a_cancel_ends_the_question(world: World) -> None:
    run_id = world.begin(Judge().flow())

    world.act(run_id, control.cancel, "sari")

    assert (world.status(run_id), world.job(run_id)) == ("cancelled", "CANCELLED")
    with pytest.raises(Conflict, match="cancelled"):
        world.do(run_id, control.approve, "tono")


def test_a_deadline_covers_the_question(world: World) -> None:
    built = workflow("late").then(Judge(), name="judge").must_complete_within(timedelta(hours=1)).build()
    run_id = world.begin(built)
    world.database.move_clock(timedelta(hours=1))

    with world.transaction() as tx:
        assert control.expire(tx, built, run_id)

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 504)


def test_a_lost_commit_of_the_question_asks_once(world: World) -> None:
    judge = Judge()
    run_id = world.start(judge.flow())
    judge.meanwhile = _raise_transient

    world.walk()

    assert (world.waiting(run_id)["sequence"], world.effects) == (1, ["a", "looked 2"])


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_whichever_commit_or_answer_of_one_is_lost_it_is_asked_once_and_goes_on_once(moment: str) -> None:
    lost = 0
    while _asked_and_approved(moment, lost):
        lost += 1

    assert lost > 8, "each commit of the steps was lost once"


def _asked_and_approved(moment: str, lost: int) -> bool:
    """A run through question and approval in which commit number `lost` of its steps is lost, or its answer is.
    Returns whether there is a commit of that number."""
    world, definition = MemoryWorld(), Judge().flow()
    run_id = world.start(definition)
    count = iter(range(1_000))

    def lose_one() -> None:
        if next(count) == lost:
            raise TransientDatabaseError("lost connection", 2013)

    def dag_run() -> None:
        ticket = world.deliver()
        setattr(world.database, moment, lose_one)
        for name in ("a", "judge", "z"):
            if isinstance(run_step(definition, ticket, name, world.transaction, is_last_try=True), Leave):
                break
        setattr(world.database, moment, lambda: None)

    dag_run()
    assert (world.waiting(run_id)["sequence"], world.effects.count("a")) == (1, 1)
    world.do(run_id, control.approve, "sari")
    dag_run()

    assert (world.status(run_id), world.state(run_id)["approved_by"]) == ("completed", "sari")
    assert [effect.split()[0] for effect in world.effects] == ["a", "looked", "looked", "z"]
    assert (world.names(run_id, "asked"), world.messages(run_id)) == ([("asked", "judge")], [])
    return next(count) > lost


def test_a_task_that_holds_several_steps_ends_at_the_question(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow(fused=True))
    assert (world.status(run_id), world.effects) == ("waiting_for_signal", ["a", "looked 1"])

    world.act(run_id, control.approve, "sari")

    assert (world.status(run_id), world.effects) == ("completed", ["a", "looked 1", "looked 2", "z"])


def test_the_definition_is_the_same_whether_its_step_asks_or_not() -> None:
    assert (
        Judge().flow().definition_hash
        == workflow("judged")
        .then(gives(), name="a")
        .then(gives(), name="judge")
        .then(gives(), name="z")
        .build()
        .definition_hash
    )


def test_a_branch_an_item_a_reducer_and_a_stream_cannot_ask_and_the_error_names_the_step(world: World) -> None:
    def asks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return ask_decision(["why"], "E")

    def chunks(state: dict[str, Any], step: Any, stored: list[Any]) -> Any:
        yield 1

    built = [
        workflow("one").parallel({"left": asks, "right": gives()}, name="group"),
        workflow("two").for_each("items", asks, name="each"),
        workflow("three").for_each("items", gives(), name="each", reducer=asks),
        workflow("four").stream(chunks, on_complete=lambda got, state: ask_decision(["why"], "E"), name="stream"),
    ]
    for one in built:
        definition = one.build()
        run_id = world.begin(definition, {"items": [1]})
        assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 500)
        assert f"step {definition.steps[0].name}" in world.error(run_id)
        assert "cannot ask for a decision" in world.error(run_id)


def test_a_question_with_values_beside_it_or_not_made_by_the_helper_is_a_mistake(world: World) -> None:
    beside = world.begin(workflow("b").then(lambda state, step: {**ask_decision([], "E"), "x": 1}, name="ask").build())
    raw = world.begin(workflow("r").then(lambda state, step: {"_wait_for_decision": {}}, name="ask").build())

    assert "returns x as well" in world.error(beside)
    assert "ask_decision" in world.error(raw)


def test_the_reasons_of_a_question_are_bounded_and_say_how_many_more() -> None:
    (question,) = ask_decision([f"reason {number}" for number in range(MAX_REASONS + 7)], "E").values()

    assert len(question["reasons"]) == MAX_REASONS + 1
    assert question["reasons"][-1]["pesan"] == "dan 7 alasan lagi"


def _raise_transient() -> None:
    raise TransientDatabaseError("deadlock", 1213)
