"""A step that asks a person: it parks the run, and is entered again with the answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from everest.errors import Conflict, DocumentRefused, Forbidden
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.inline import run_inline
from everest.workflow.ticket import Leave
from tests.workflow.judging import Judge
from tests.workflow.world import World


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
    with pytest.raises(Conflict, match="waits for no approval, decision"):
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
