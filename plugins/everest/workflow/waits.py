"""Steps that wait: a delay, other workflows, a nested run; signals and answers of people are in `answers`.

Entering one either completes the step at once or parks the run (rule 3). Whoever satisfies a wait only *wakes* the
run; the task that comes then enters the step again and finds it satisfied, so there is one place that decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from everest.errors import DocumentRefused, WaitTimeout
from everest.words import Said, say, some, span
from everest.workflow import answers, parking, pointer, starts, state
from everest.workflow import definition as d
from everest.workflow.definition import Definition, Step
from everest.workflow.ports import Transaction
from everest.workflow.records import Run
from everest.workflow.ticket import Forward, Leave, Token

MAX_NAMED = 5
"""Of other workflows, in one sentence; there may be thousands."""


def enter(tx: Transaction, definition: Definition, run: Run, step: Step, token: Token) -> Forward | Leave:
    """The pointer stands at a waiting step: is what it waits for there? The caller holds the run's lock."""
    match step:
        case d.Delay():
            return _delay(tx, definition, run, step, token)
        case d.WaitForSignals():
            return answers.enter(tx, definition, run, step, token)
        case d.WaitForWorkflows():
            return _workflows(tx, definition, run, step, token)
        case d.RunWorkflow():
            return _nested(tx, definition, run, step, token)
        case _:
            raise TypeError(f"step {step.name} does not wait")


def may_go_on(tx: Transaction, definition: Definition, run: Run) -> bool:
    """Whether entering the wait that the run stands at would not park it again."""
    waiting = run.waiting
    if waiting is None or run.current_step is None:
        return True
    if waiting["kind"] in ("workflows", "child"):
        return is_decided(tx, waiting)
    if waiting["kind"] == "delay":
        return parking.is_late(tx, waiting)
    step, _ = answers.awaited(definition, run)
    return parking.is_late(tx, waiting) or (step is not None and answers.is_satisfied(step, waiting))


# ------------------------------------------------------------------------------------------------------- delay


def _delay(tx: Transaction, definition: Definition, run: Run, step: d.Delay, token: Token) -> Forward | Leave:
    waiting = parking.open_wait(run, step)
    if waiting is None:
        waiting = parking.begin(tx, run, step, "delay")
        waiting["until"] = tx.now + step.duration
    if step.duration == timedelta(0) or parking.is_late(tx, waiting):
        return pointer.advance(tx, definition, run, step, token, {})
    return parking.park(tx, run, step, "running", waiting, parking.delay_message(waiting), waiting["until"])


# ------------------------------------------------------------------------------------------- other workflows


def _workflows(
    tx: Transaction, definition: Definition, run: Run, step: d.WaitForWorkflows, token: Token
) -> Forward | Leave:
    waiting = parking.open_wait(run, step)
    if waiting is None:
        ids = _sources(tx, run, step)
        # Held until this wait is recorded: none of them can end without seeing this waiter, and of two runs that begin
        # to wait for each other at once one is told (a deadlock, tried again, then a ring).
        tx.runs.hold(ids)
        _refuse_ring(tx, run, ids)
        waiting = parking.begin(tx, run, step, "workflows", ids=ids, mode=step.mode, quorum=step.quorum)
        tx.runs.add_dependencies(run, step.name, ids)
    verdict = _verdict(tx, waiting)
    _note(waiting, verdict)
    if verdict.is_satisfied:
        found = _states(tx, step, verdict.completed)
        return pointer.advance(tx, definition, run, step, token, {step.result_key: found})
    if parking.is_late(tx, waiting):
        return pointer.advance(tx, definition, run, step, token, parking.late(step, "engine.workflows_late"))
    return parking.park(tx, run, step, "waiting_for_workflows", waiting, _message(verdict.remaining), waiting["until"])


def _message(remaining: Sequence[int]) -> Said:
    return say("id", "engine.waits_for_workflows", ids=some(remaining, MAX_NAMED))


def _sources(tx: Transaction, run: Run, step: d.WaitForWorkflows) -> list[int]:
    source: Any = step.source
    if step.is_group:
        return tx.runs.group(str(run.state.get(source, source)))
    if isinstance(source, str):
        if source not in run.state:
            raise DocumentRefused(say("en", "engine.no_ids", step=step.name, name=repr(source)))
        source = run.state[source]
    ids = [source] if isinstance(source, int) else list(source) if isinstance(source, list | tuple) else None
    if ids is None or any(isinstance(one, bool) or not isinstance(one, int) for one in ids):
        raise DocumentRefused(say("en", "engine.not_ids", step=step.name, name=repr(source)))
    if not step.many and len(set(ids)) != 1:
        raise DocumentRefused(say("en", "engine.not_one", step=step.name, name=repr(source), n=len(set(ids))))
    return sorted(set(ids))


def _refuse_ring(tx: Transaction, run: Run, ids: list[int]) -> None:
    seen: set[int] = set()
    front = set(ids)
    while front:
        if run.id in front:
            raise DocumentRefused(say("en", "engine.ring", run=run.id))
        seen |= front
        front = {one for waited in tx.runs.waits_on(front).values() for one in waited} - seen


@dataclass(frozen=True)
class _Verdict:
    """completed: ids, the first to end first, and only that one where one is enough."""

    completed: list[int]
    remaining: list[int]
    is_satisfied: bool


def _verdict(tx: Transaction, waiting: dict[str, Any]) -> _Verdict:
    """Raises DocumentRefused when the wait can never be satisfied. One look at all of them, without their states: it is
    asked again whenever one of them ends."""
    step, mode = waiting["step"], waiting["mode"]
    present = tx.runs.ends(waiting["ids"])
    gone = sorted(set(waiting["ids"]) - {one.id for one in present})
    if gone:
        raise DocumentRefused(say("id", "engine.awaited_gone", step=step, ids=some(gone, MAX_NAMED)), code=404)
    completed = sorted((one for one in present if one.status == "completed"), key=lambda one: (one.finished_at, one.id))
    lost = [one for one in present if one.status in ("failed", "cancelled")]
    needed = {"all": len(present), "any": 1, "quorum": waiting["quorum"] or 1}[mode]
    if len(present) - len(lost) < needed:
        ended = [say("id", "engine.awaited_ended", run=one.id, status=one.status) for one in lost]
        reasons = some(ended, MAX_NAMED) or [say("id", "engine.awaited_few", n=len(present), needed=needed)]
        raise DocumentRefused(say("id", "engine.not_satisfiable", step=step, reasons=reasons), code=409)
    chosen = completed[:1] if mode == "any" else completed
    remaining = [one.id for one in present if one.status not in ("completed", "failed", "cancelled")]
    return _Verdict([one.id for one in chosen], remaining, len(completed) >= needed)


def _note(waiting: dict[str, Any], verdict: _Verdict) -> None:
    waiting["remaining"] = verdict.remaining
    waiting["matched"] = len(verdict.completed)


def _states(tx: Transaction, step: d.WaitForWorkflows, completed: list[int]) -> Any:
    states = tx.runs.states(completed)
    if not step.many:
        return state.public_part(states[completed[0]])
    return {str(one): state.public_part(states[one]) for one in completed}


# ----------------------------------------------------------------------------------------------------- nested


def _nested(tx: Transaction, definition: Definition, run: Run, step: d.RunWorkflow, token: Token) -> Forward | Leave:
    child_id = tx.runs.child_of(run.id, step.name, run.visit)
    if child_id is None:
        child_id = starts.start_child(
            tx,
            step.workflow,
            state.public_part(run.state),
            run,
            step.name,
            None,
            key=f"{run.id}:{step.name}:{run.visit}",
        )
        tx.runs.add_dependencies(run, step.name, [child_id])
    child = tx.runs.get(child_id)
    if child is None:
        raise DocumentRefused(say("en", "engine.nested_gone", step=step.name, run=child_id), code=404)
    if child.status == "completed":
        return pointer.advance(tx, definition, run, step, token, state.public_part(child.state))
    if child.status in ("failed", "cancelled"):
        why = {"message": child.status, **(child.error or {})}
        raise DocumentRefused(
            say("id", "engine.nested_ended", run=child_id, workflow=step.workflow.name, status=child.status, why=why),
            code=409,
        )
    waiting = parking.open_wait(run, step) or parking.begin(
        tx, run, step, "child", ids=[child_id], remaining=[child_id]
    )
    if parking.is_late(tx, waiting):
        limit = span(step.timeout or timedelta())
        raise WaitTimeout(say("id", "engine.nested_late", step=step.name, run=child_id, limit=limit))
    return parking.park(tx, run, step, "waiting_for_workflows", waiting, _message([child_id]), waiting["until"])


def wake_if_decided(tx: Transaction, run: Run) -> bool:
    """A run that waits for workflows, one of which has just ended: wakes it if that decides the wait, else notes how
    far it is. A paused one looks when it is resumed."""
    if run.status != "waiting_for_workflows" or run.waiting is None:
        return False
    verdict = _open_verdict(tx, run.waiting)
    if verdict is None:
        pointer.wake(tx, run)
        return True
    if run.waiting["kind"] == "workflows":
        _note(run.waiting, verdict)
        tx.runs.save(run)
    return False


def is_decided(tx: Transaction, waiting: dict[str, Any]) -> bool:
    """Whether entering the wait for other workflows again would not park it again."""
    return _open_verdict(tx, waiting) is None


def _open_verdict(tx: Transaction, waiting: dict[str, Any]) -> _Verdict | None:
    """How far the wait is; None when it is decided, one way or the other."""
    if waiting["kind"] == "child":
        waiting = {**waiting, "mode": "all", "quorum": None}
    try:
        verdict = _verdict(tx, waiting)
    except DocumentRefused:
        return None
    return None if verdict.is_satisfied else verdict
