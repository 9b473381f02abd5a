"""The doors a task passes around one step: `begin` (may this task run it?), its handler, and `settle` or `fail` (one
commit with the handler's writes, or a recorded failure). Everything here runs inside a transaction that the caller
opens and commits; nothing here retries, waits or knows Airflow.

Ownership is the equality of `dag_run_id`; the right to commit belongs to the newest attempt (state protocol, "Task").
"""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import replace
from typing import Any

from everest.errors import Conflict, DocumentMissing, GaveUp
from everest.words import say
from everest.workflow import answers, codec, endings, family, fanout, pointer, questions, starts, state, waits
from everest.workflow import definition as d
from everest.workflow.definition import Definition, Step
from everest.workflow.deployment import Deployed
from everest.workflow.endings import cancel_run, describe, fail_run
from everest.workflow.entry import begin
from everest.workflow.handlers import NEXT_STEP
from everest.workflow.ownership import find_run, second_row, take_over
from everest.workflow.pointer import announce_next
from everest.workflow.ports import Transaction
from everest.workflow.records import WAITING, Run, Standing, Try
from everest.workflow.starts import Dispatched, dispatch
from everest.workflow.ticket import (
    NEWER_TRY,
    Fenced,
    Forward,
    Go,
    ItemFailed,
    Leave,
    Overtaken,
    Replay,
    Result,
    Stale,
    StepContext,
    Ticket,
    Token,
)

__all__ = [
    "Conflict",
    "Deployed",
    "Dispatched",
    "Fenced",
    "Forward",
    "Go",
    "Leave",
    "Replay",
    "StepContext",
    "Ticket",
    "Token",
    "announce_next",
    "begin",
    "cancel_run",
    "describe",
    "dispatch",
    "fail",
    "fail_run",
    "find_run",
    "recover",
    "second_row",
    "settle",
    "take_over",
]

# ------------------------------------------------------------------------------------------------------ settle


def settle(
    tx: Transaction, definition: Definition, token: Token, output: dict[str, Any] | None, known: Run | None = None
) -> Result:
    """Records a step's (or branch's) output and moves the pointer, or parks the run at a step that asks a person, in
    the transaction that holds the handler's writes. known: the run as its process committed it last (`Go.run`). Raises
    Fenced (the caller rolls back) when this try lost its right to commit, Overtaken when a person answered while it
    was at work."""
    return _settled(tx, definition, token, output, known, None)[1]


def settle_and_begin(
    tx: Transaction,
    definition: Definition,
    token: Token,
    output: dict[str, Any] | None,
    following: str,
    known: Run | None = None,
) -> Result | Go:
    """Settles a plain step as `settle` does, and begins the next one of the same task in the same commit. A run that
    was paused, that waits or that goes elsewhere begins nothing."""
    run, result = _settled(tx, definition, token, output, known, following)
    if result != Forward(following):
        return result
    # Its state as every other step finds it: from the row.
    begun = replace(token, step=following, attempt=1, decision=None)
    return Go(begun, codec.loads(codec.dumps(run.state)), run)


def _settled(
    tx: Transaction,
    definition: Definition,
    token: Token,
    output: dict[str, Any] | None,
    known: Run | None,
    begins: str | None,
) -> tuple[Run, Result]:
    step = definition.step(token.step)
    if known is not None and _only_steps_on(tx, definition, token, step, output):
        with suppress(Stale):  # paused or changed meanwhile: its lock and its row will tell
            return known, pointer.advance(tx, definition, known, step, token, output, begins, is_locked=False)
    run, waiters = owned(tx, definition, token)
    _refuse_overtaken(run, token)
    question = questions.Question.of(step.name, output) if isinstance(step, d.Then) else None
    if question is not None:
        return run, answers.ask(tx, run, step, token, question)
    if isinstance(step, d.Parallel):
        return run, ended(tx, run, waiters, fanout.settle_branch(tx, definition, run, step, token, output))
    return run, ended(tx, run, waiters, pointer.advance(tx, definition, run, step, token, output, begins))


def _only_steps_on(
    tx: Transaction, definition: Definition, token: Token, step: Step, output: dict[str, Any] | None
) -> bool:
    """Whether a step does no more than go on to the next one, so that it need not read the run to do it."""
    returned = output or {}
    if not isinstance(step, d.Then) or step.compensate_with is not None:
        return False
    if NEXT_STEP in returned or questions.Question.of(step.name, output) is not None:
        return False
    return definition.steps[-1] is not step or not tx.runs.waiters(token.run_id)


def _refuse_overtaken(run: Run, token: Token) -> None:
    if questions.is_overtaken(run, token):
        raise Overtaken(f"step {token.step} was answered while it was at work")


def enter(tx: Transaction, definition: Definition, token: Token) -> Result:
    """Steps without a handler: waits, loops and hand-offs decide on the rows, under the run's lock."""
    run, waiters = owned(tx, definition, token)
    step = definition.step(token.step)
    match step:
        case d.Repeat():
            output = _repeat(run, definition, step)
            result: Result = pointer.advance(tx, definition, run, step, token, output)
        case d.StartWorkflows():
            output = starts.hand_off(tx, definition, run, step)
            result = pointer.advance(tx, definition, run, step, token, output)
        case _:
            result = waits.enter(tx, definition, run, step, token)
    return ended(tx, run, waiters, result)


def _repeat(run: Run, definition: Definition, step: d.Repeat) -> dict[str, Any]:
    loops = run.counters.setdefault("loops", {})
    # A copy: a condition only looks, and what it did to the run's own state would be kept.
    if not step.goes_back(copy.deepcopy(state.public_part(run.state))):
        loops.pop(step.name, None)
        return {}
    used = loops.get(step.name, 0) + 1
    if step.max_iterations is not None and used > step.max_iterations:
        raise Conflict(say("id", "engine.loop", step=step.name, n=step.max_iterations))
    loops[step.name] = used
    return {NEXT_STEP: step.target}


def owned(tx: Transaction, definition: Definition, token: Token) -> tuple[Run, list[Run]]:
    """The locked run, if this try may still commit, and, where its end may be near, those that wait for it."""
    waiters = _hold_waiters(tx, definition, token)
    run, newest = tx.runs.lock_try(token.run_id, token.step, token.branch)
    _check_owner(definition, run, newest, token, questions.is_asked_here(run))
    return run, [tx.runs.lock(one) for one in waiters]


def _hold_waiters(tx: Transaction, definition: Definition, token: Token) -> list[int]:
    """At the last step the run may end, which those that wait for it have to learn: all are locked by ascending id."""
    is_last = definition.index(token.step) == len(definition.steps) - 1
    waiters = tx.runs.waiters(token.run_id) if is_last else []
    if waiters:
        tx.runs.hold([token.run_id, *waiters])
    return waiters


def _check_owner(
    definition: Definition, run: Run | Standing, newest: Try | None, token: Token, asked: bool = False
) -> None:
    """Raises Fenced."""
    if run.dag_run_id != token.dag_run_id:
        raise Fenced(f"DAG run {run.dag_run_id} owns this workflow now")
    at_wait = run.status in WAITING and (asked or definition.step(token.step).waits)
    if run.status not in ("running", "paused") and not at_wait:
        raise Fenced(f"the workflow is {run.status}")
    if run.current_step != token.step or run.visit != token.visit:
        raise Fenced(f"the workflow stands at {run.current_step}, visit {run.visit}")
    if newest is None or newest.attempt != token.attempt or newest.status == "completed":
        raise Fenced(NEWER_TRY)


def settle_item(
    tx: Transaction,
    definition: Definition,
    step: d.ForEach,
    token: Token,
    claimed: fanout.Claimed,
    output: dict[str, Any] | None,
) -> Result | None:
    """Records an item in the transaction that holds its handler's writes; returns a result when that settles the step.
    The run's state is read only then. Raises Fenced."""
    _hold_waiters(tx, definition, token)
    standing, newest = tx.runs.standing(token.run_id, token.step, token.branch, lock=True)
    if standing is None:
        raise DocumentMissing(f"workflow run {token.run_id} does not exist")
    _check_owner(definition, standing, newest, token)
    if not fanout.finish_item(tx, standing, step, claimed, output):
        return None
    run, waiters = owned(tx, definition, token)
    return ended(tx, run, waiters, fanout.settle(tx, definition, run, step, token))


def ended(tx: Transaction, run: Run, waiters: list[Run], result: Result) -> Result:
    """After a commit that may have been the run's last: wakes those that waited for it."""
    if run.status == "completed":
        family.wake(tx, waiters)
    return result


# -------------------------------------------------------------------------------------------------------- fail


def failed_try(tx: Transaction, definition: Definition, token: Token, error: Exception) -> None:
    """Only history: this try failed, and another one follows. Raises Fenced when that is not this try's to say."""
    run, _ = owned(tx, definition, token)
    branch = {"branch": token.branch} if token.branch else {}
    told = endings.diagnosis(error)
    tx.runs.add_event(run, "failed", token.step, token.attempt, {**told, **branch})
    again = {"type": told["type"], "message": told["message"], **branch}
    tx.runs.add_event(run, "retried", token.step, token.attempt, again)


def fail(tx: Transaction, definition: Definition, token: Token, error: Exception) -> None:
    """Records that the step failed for good. Raises Fenced when that is not this try's to say, Overtaken when a person
    answered while it was at work."""
    _, waiters = family.lock_with_waiters(tx, token.run_id)
    run, _ = owned(tx, definition, token)
    _refuse_overtaken(run, token)
    fail_run(tx, definition, run, error, token)
    family.wake(tx, waiters)


def fail_item(
    tx: Transaction,
    definition: Definition,
    step: d.ForEach,
    token: Token,
    claimed: fanout.Claimed,
    error: Exception,
    tries: int,
) -> ItemFailed | None:
    """Records an item's failure and, where that decides the step, the run's, in one commit. Returns the step's error.
    Raises Fenced."""
    _, waiters = family.lock_with_waiters(tx, token.run_id)
    run, _ = owned(tx, definition, token)
    failure = fanout.fail_item(tx, definition, run, step, claimed, error, tries)
    if failure is not None:
        fail_run(tx, definition, run, failure, token)
        family.wake(tx, waiters)
    return failure


def recover(tx: Transaction, definition: Definition | None, run: Run, limit: int, reason: str) -> bool:
    """After a DAG run that ended or vanished without a record: DAG run n+1 at the pointer, at most `limit` times in
    all, then FAILED 503. Returns whether the workflow goes on. `reason` is a sentence for the run's history.

    The caller holds the run's lock and has seen under it that nothing was committed since it looked at Airflow.
    """
    if run.recovered >= limit:
        text = say("id", "engine.gave_up", n=run.recovered, why=reason)
        fail_run(tx, definition, run, GaveUp(text), None)
        return False
    run.recovered += 1
    tx.runs.add_event(run, "recovered", run.current_step, None, {"reason": reason, "times": run.recovered})
    announce_next(tx, run)
    return True


def handler_of(step: Step, branch: str) -> Any:
    """The function that a task of this step (or branch) runs; None for steps that only decide."""
    if isinstance(step, d.Parallel):
        return step.branch(branch).handler
    return getattr(step, "handler", None)
