"""A plain step that asks a person: it waits where it stands, and is entered again with the answer. In both stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import Conflict, DocumentRefused, Forbidden, Problem, TransientDatabaseError
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.inline import run_inline
from everest.workflow.questions import MAX_REASONS, ask_decision
from everest.workflow.runner import run_step
from everest.workflow.ticket import Decision, Leave
from tests.workflow.world import MemoryWorld, MysqlWorld, World, gives


class Judge:
    """A step that asks about whatever its evidence is now, and goes on when exactly that was approved."""

    def __init__(self, timeout: timedelta | None = None, not_by: tuple[str, ...] = ()) -> None:
        self.timeout, self.not_by = timeout, not_by
        self.evidence: str | None = "E1"
        self.seen: list[Decision | None] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        self.seen.append(step.decision)
        step.tx.write(f"looked {step.attempt}")
        found = self.evidence
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        decision: Decision | None = step.decision
        if found is None:
            return {"approved_by": None}
        if decision is not None and decision.evidence == found:
            if decision.outcome == "approved":
                return {"approved_by": decision.by}
            raise DocumentRefused(f"{decision.outcome} oleh {decision.by}: {decision.reason}", code=403)
        return ask_decision([f"reason {found}", Problem(3, "qty", "far off")], found, self.timeout, self.not_by)

    def flow(self, **options: Any) -> Definition:
        built = workflow("judged").then(gives(a=1), name="a").then(self, name="judge").then(gives(z=1), name="z")
        if options.get("fused"):
            built = built.tasks("fused")
        return built.build()


def test_a_step_that_asks_parks_the_run_where_it_stands_and_keeps_what_it_wrote(world: World) -> None:
    judge = Judge()

    run_id = world.begin(judge.flow())

    run = world.run(run_id)
    assert (run.status, run.current_step, world.job(run_id), world.messages(run_id)) == (
        "waiting_for_signal", "judge", "WAITING", [],
    )  # fmt: skip
    assert world.effects == ["a", "looked 1"]
    assert world.records(run_id)["judge", 1, ""]["status"] == "waiting"
    waiting = world.waiting(run_id)
    assert (waiting["kind"], waiting["sequence"], waiting["evidence"], waiting["until"]) == ("decision", 1, "E1", None)
    assert [reason["pesan"] for reason in waiting["reasons"]] == ["reason E1", "far off"]
    with world.transaction() as tx:
        answer = tx.runs.outcome_of(run).response
    assert (answer["status"], answer["code"]) == ("waiting", 202)
    assert answer["waiting"]["reasons"] == waiting["reasons"]
    assert world.names(run_id, "asked") == [("asked", "judge")]


def test_an_approval_enters_the_step_again_which_sees_who_when_and_why(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())

    world.act(run_id, control.approve, "sari", reason="cocok dengan gudang")

    (none, seen) = judge.seen
    assert none is None and seen is not None
    assert (seen.outcome, seen.by, seen.reason, seen.evidence, seen.sequence) == (
        "approved", "sari", "cocok dengan gudang", "E1", 1,
    )  # fmt: skip
    assert seen.at.tzinfo is not None
    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "approved_by": "sari", "z": 1})
    assert world.effects == ["a", "looked 1", "looked 2", "z"]
    assert world.run(run_id).visit == 1, "the same visit, another try"


def test_a_rejection_is_the_steps_to_judge_and_a_retry_asks_anew(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())

    world.act(run_id, control.reject, "sari", "kurang bukti")

    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 403)
    assert world.error(run_id) == "rejected oleh sari: kurang bukti"
    with pytest.raises(Conflict, match="waits for no approval or decision"):
        world.do(run_id, control.approve, "sari")

    world.act(run_id, control.retry)

    assert (world.status(run_id), world.waiting(run_id)["sequence"], judge.seen[-1]) == ("waiting_for_signal", 2, None)
    world.act(run_id, control.approve, "sari")
    assert world.status(run_id) == "completed"


def test_clearing_the_failed_task_after_a_rejection_asks_anew_too(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())
    world.do(run_id, control.reject, "sari", "tidak")
    ticket = world.deliver()
    with pytest.raises(DocumentRefused):
        world.step(ticket, "judge")
    assert world.status(run_id) == "failed"

    left = world.step(replace(ticket, clears=1), "judge")

    assert isinstance(left, Leave)
    assert (world.status(run_id), world.waiting(run_id)["sequence"]) == ("waiting_for_signal", 2)


def test_the_same_evidence_keeps_the_open_question_with_its_number_and_its_time(world: World) -> None:
    judge = Judge(timeout=timedelta(days=14))
    run_id = world.begin(judge.flow())
    asked = world.waiting(run_id)

    world.pass_time(timedelta(hours=5))
    _again(world, run_id)

    assert world.waiting(run_id) == asked
    assert (len(judge.seen), world.names(run_id, "asked")) == (2, [("asked", "judge")])
    (timer,) = world.messages(run_id)
    assert (timer.due_at, timer.n) == (asked["until"], world.run(run_id).n)


def test_other_evidence_is_a_new_question_and_an_answer_to_the_old_one_is_a_conflict(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())
    judge.evidence = "E2"

    _again(world, run_id)

    assert (world.waiting(run_id)["sequence"], world.waiting(run_id)["evidence"]) == (2, "E2")
    with pytest.raises(Conflict, match="waits for something else"):
        world.do(run_id, control.approve, "sari", sequence=1)
    world.act(run_id, control.approve, "sari", sequence=2)
    assert world.status(run_id) == "completed"


def test_an_approval_of_older_evidence_is_void_and_the_step_asks_about_the_new(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())
    judge.evidence = "E2"

    world.act(run_id, control.approve, "sari")

    assert judge.seen[-1] is not None and judge.seen[-1].evidence == "E1"
    assert (world.status(run_id), world.waiting(run_id)["sequence"]) == ("waiting_for_signal", 2)
    assert "approved_by" not in world.state(run_id)


def test_evidence_that_disappeared_lets_the_step_go_on(world: World) -> None:
    judge = Judge()
    run_id = world.begin(judge.flow())
    judge.evidence = None

    _again(world, run_id)

    assert (world.status(run_id), world.run(run_id).waiting) == ("completed", None)


def test_nobody_answers_in_time_and_the_step_sees_a_timeout(world: World) -> None:
    judge = Judge(timeout=timedelta(days=2))
    run_id = world.begin(judge.flow())

    world.pass_time(timedelta(days=2) - timedelta(seconds=1))
    assert world.status(run_id) == "waiting_for_signal"
    world.pass_time(timedelta(seconds=1))

    assert judge.seen[-1] is not None and (judge.seen[-1].outcome, judge.seen[-1].by) == ("timeout", None)
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 403)


def test_an_answer_after_the_time_is_a_conflict_even_before_anybody_noticed(world: World) -> None:
    run_id = world.begin(Judge(timeout=timedelta(days=2)).flow())
    world.database.move_clock(timedelta(days=2))

    with pytest.raises(Conflict, match="the question is closed"):
        world.do(run_id, control.approve, "sari")


def test_who_is_barred_can_neither_approve_nor_reject(world: World) -> None:
    run_id = world.begin(Judge(not_by=("Budi",)).flow())

    for name in ("budi", " BUDI ", "Budi"):
        with pytest.raises(Forbidden, match="orang lain"):
            world.do(run_id, control.approve, name)
    with pytest.raises(Forbidden):
        world.do(run_id, control.reject, "budi", "sendiri")
    world.act(run_id, control.approve, "sari")

    assert world.status(run_id) == "completed"


def test_of_two_answers_the_second_is_a_conflict(world: World) -> None:
    run_id = world.begin(Judge().flow())
    world.do(run_id, control.approve, "sari")

    with pytest.raises(Conflict, match="has its answer already"):
        world.do(run_id, control.reject, "tono", "tidak")
    world.walk()
    assert world.state(run_id)["approved_by"] == "sari"


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


def test_the_same_question_in_a_loop_is_asked_at_each_pass(world: World) -> None:
    judge = Judge()
    built = (
        workflow("loop").then(judge, name="judge").repeat_until("judge", condition=lambda state: len(judge.seen) > 3)
    )
    run_id = world.begin(built.build())
    world.act(run_id, control.approve, "sari")

    assert (world.status(run_id), world.waiting(run_id)["sequence"], world.run(run_id).visit) == (
        "waiting_for_signal", 2, 2,
    )  # fmt: skip
    world.act(run_id, control.approve, "sari")
    assert world.status(run_id) == "completed"


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


def test_run_inline_asks_and_goes_on() -> None:
    run = run_inline(Judge().flow())
    assert run.status == "waiting_for_signal"

    run.approve("sari", reason="cocok")

    assert (run.status, run.state["approved_by"]) == ("completed", "sari")


def test_a_command_takes_over_what_was_answered_and_not_what_is_open(world: World) -> None:
    judge = Judge()
    definition = judge.flow()
    run_id = world.begin(definition)
    shadow_id = world.run(run_id).carrier_shadow_id
    with pytest.raises(Conflict, match="waits for a person"), world.transaction() as tx:
        engine.take_over(tx, definition, shadow_id)

    world.do(run_id, control.approve, "sari")
    with world.transaction() as tx:
        ticket = engine.take_over(tx, definition, shadow_id)
    for name in ("a", "judge", "z"):
        world.step(ticket, name)

    assert (world.status(run_id), world.state(run_id)["approved_by"]) == ("completed", "sari")
    world.walk()
    assert world.effects == ["a", "looked 1", "looked 2", "z"], "the message of the answer starts nothing"


def _again(world: World, run_id: int) -> None:
    """What the reconciler does after a DAG run that died: one more, at the pointer."""
    with world.transaction() as tx:
        engine.announce_next(tx, tx.runs.lock(run_id))
    world.walk()


def _raise_transient() -> None:
    raise TransientDatabaseError("deadlock", 1213)
