"""What people and programs do to a run: dispatch, pause, resume, retry, cancel, signal, approve, reject, answer.

Functions over an open transaction; the caller commits. Each writes one line to the audit log. Commands and pages call
these and add nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from everest.errors import Conflict, EverestError
from everest.words import say, told
from everest.workflow import answers, codec, endings, family, parking, pointer, questions, starts, state, waits
from everest.workflow.compensations import compensate_all, compensate_next
from everest.workflow.definition import Definition
from everest.workflow.ports import Transaction
from everest.workflow.records import FINAL, WAITING, Outcome
from everest.workflow.starts import Dispatched

__all__ = [
    "approve",
    "cancel",
    "compensate",
    "compensate_all",
    "compensate_next",
    "dispatch",
    "expire",
    "pause",
    "reject",
    "resume",
    "retry",
    "signal",
    "submit_input",
]

SYSTEM = "system"


def dispatch(
    tx: Transaction,
    definition: Definition,
    payload: dict[str, Any],
    key: str | None = None,
    actor: str = SYSTEM,
    transaksi_id: int | None = None,
    nomer_nota: str | None = None,
) -> Dispatched:
    """Starts a workflow. The same key with the same payload is the same run; with another one it is a Conflict."""
    key = key if key is not None else definition.key(payload)
    try:
        sent = starts.dispatch(tx, definition, payload, key, transaksi_id, nomer_nota)
    except Conflict:
        held = None if key is None else tx.runs.find(definition.name, key)
        if held is None:
            raise
        run = tx.runs.lock(held)
        if codec.canonical(run.payload) != codec.canonical(payload):
            taken = say("en", "engine.other_payload", name=key, workflow=definition.name, run=held)
            raise Conflict(taken) from None
        return Dispatched(run.id, pointer.carrier(run), run.dag_run_id)
    tx.runs.audit(actor, "dispatch", tx.runs.lock(sent.workflow_id), None, None)
    return sent


def pause(
    tx: Transaction, definition: Definition | None, run_id: int, actor: str = SYSTEM, reason: str | None = None
) -> None:
    """The step at work finishes and commits; nothing further starts. Raises Conflict that names another status."""
    run = tx.runs.lock(run_id)
    if run.status not in ("running", *WAITING):
        raise Conflict(say("en", "engine.not_pausable", run=run_id, status=run.status))
    run.paused_status, run.paused_at = run.status, tx.now
    run.status = "paused"
    tx.runs.unsend(run)  # before the shadow row: the relay takes its locks in this order
    shadow = tx.runs.shadow(pointer.carrier(run), lock=True)
    if shadow is not None and shadow.worker_status == "PROCESSING":
        tx.runs.save(run)
    else:
        wakes_at = run.wakes_at
        pointer.park(tx, run, pointer.paused())
        run.wakes_at = wakes_at
        tx.runs.save(run)
    tx.runs.add_event(run, "paused", run.current_step, None, {"actor": actor, "reason": reason})
    tx.runs.audit(actor, "pause", run, reason, None)


def resume(tx: Transaction, definition: Definition, run_id: int, actor: str = SYSTEM) -> None:
    """Goes on at the pointer; a step that is still at work goes on by itself, and is not started twice."""
    run = tx.runs.lock(run_id)
    if run.status != "paused":
        raise Conflict(say("en", "engine.not_paused", run=run_id, status=run.status))
    tx.runs.unsend(run)
    shadow = tx.runs.shadow(pointer.carrier(run), lock=True)
    run.status, run.paused_status = run.paused_status or "running", None
    if run.deadline_at is not None and run.paused_at is not None:
        run.deadline_at += max(timedelta(), tx.now - run.paused_at)  # a clock that went back takes nothing away
    run.paused_at = None
    tx.runs.add_event(run, "resumed", run.current_step, None, {"actor": actor})
    tx.runs.audit(actor, "resume", run, None, None)
    if shadow is not None and shadow.worker_status == "PROCESSING":
        tx.runs.save(run)
    elif run.waiting is not None and not waits.may_go_on(tx, definition, run):
        answer = {"status": "waiting", "code": 202, **told(questions.message_of(run.waiting))}
        run.wakes_at = run.waiting["until"]  # a DAG run that ended under the pause did not keep it
        tx.runs.save(run)
        tx.runs.announce(run, Outcome("WAITING", {**answer, **parking.shown(run.waiting)}))
        if run.wakes_at is not None:
            tx.runs.enqueue(run, run.wakes_at)
    else:
        pointer.wake(tx, run)


def retry(
    tx: Transaction, definition: Definition | None, run_id: int, actor: str = SYSTEM, reason: str | None = None
) -> str:
    """Failed -> running at the failed step, the state intact. Raises Conflict for another status, or once
    compensated."""
    run = tx.runs.lock(run_id)
    if run.status != "failed":
        raise Conflict(say("en", "engine.not_failed", run=run_id, status=run.status))
    if run.compensation is not None:
        raise Conflict(say("en", "engine.compensated", run=run_id))
    return tx.runs.rerun(pointer.carrier(run), actor, reason)


def cancel(
    tx: Transaction, definition: Definition | None, run_id: int, actor: str = SYSTEM, reason: str | None = None
) -> None:
    """Ends a run that is not final, and its nested ones. A step in flight can't commit any more; compensations follow
    (`compensate_all`, or the reconciler). Without a definition (it is not deployed any more) there is no on_cancel."""
    run, nested, waiters = family.lock_family(tx, run_id)
    if run.status in FINAL:
        raise Conflict(say("en", "engine.final", run=run_id, status=run.status))
    known = {one.name: one for one in ((definition, *definition.children()) if definition else ())}
    for one in [run, *nested]:
        if one.status not in FINAL:
            endings.cancel_run(tx, known.get(one.workflow), one, actor, reason)
            tx.runs.audit(actor, "cancel", one, reason, None)
    family.wake(tx, waiters)


def signal(
    tx: Transaction,
    definition: Definition,
    run_id: int,
    name: str,
    payload: dict[str, Any] | None = None,
    correlation: str | None = None,
    actor: str | None = None,
) -> None:
    """Stored and delivered in one transaction. Raises Conflict for a run that has ended, DocumentMissing for none."""
    run = tx.runs.lock(run_id)
    answers.deliver(tx, definition, run, name, payload or {}, correlation, actor)
    tx.runs.audit(actor or SYSTEM, "signal", run, name, None)


def approve(
    tx: Transaction,
    definition: Definition,
    run_id: int,
    actor: str,
    reason: str | None = None,
    payload: dict[str, Any] | None = None,
    sequence: int | None = None,
) -> None:
    """Yes to the approval or decision that is open now. `sequence`: the question the person saw."""
    _answer(tx, definition, run_id, ("approval", "decision"), actor, payload, reason, False, sequence, "approve")


def reject(
    tx: Transaction,
    definition: Definition,
    run_id: int,
    actor: str,
    reason: str,
    payload: dict[str, Any] | None = None,
    sequence: int | None = None,
) -> None:
    """No: a decision goes on with the outcome `rejected`, an approval fails the run with 403."""
    _answer(tx, definition, run_id, ("approval", "decision"), actor, payload, reason, True, sequence, "reject")


def submit_input(
    tx: Transaction,
    definition: Definition,
    run_id: int,
    actor: str,
    payload: dict[str, Any],
    sequence: int | None = None,
) -> None:
    """The values that the open wait_for_input asks for."""
    _answer(tx, definition, run_id, ("input",), actor, payload, None, False, sequence, "input")


def _answer(
    tx: Transaction,
    definition: Definition,
    run_id: int,
    kinds: tuple[str, ...],
    actor: str,
    payload: dict[str, Any] | None,
    reason: str | None,
    rejects: bool,
    sequence: int | None,
    action: str,
) -> None:
    run = tx.runs.lock(run_id)
    asked = run.waiting or {}
    about: dict[str, Any] = {name: asked[name] for name in ("step", "sequence", "evidence", "reasons") if name in asked}
    tx.runs.audit(actor, action, run, reason, about)  # as it stood before the answer; a refused one takes it along
    answers.answer(tx, definition, run, kinds, actor, payload or {}, reason, rejects, sequence)


def compensate(tx: Transaction, definition: Definition | None, run_id: int, actor: str = SYSTEM) -> None:
    """By hand: a failed compensation is due again."""
    run = tx.runs.lock(run_id)
    if run.compensation is None:
        raise Conflict(say("en", "engine.nothing_to_compensate", run=run_id, status=run.status))
    if run.compensation == "done":
        raise Conflict(say("en", "engine.compensated_already", run=run_id))
    run.compensation = "pending"
    tx.runs.save(run)
    tx.runs.audit(actor, "compensate", run, None, None)


def expire(tx: Transaction, definition: Definition | None, run_id: int) -> bool:
    """Fails a run whose deadline has passed; its on_deadline handler commits with that. False when it had not.
    Without a definition (it is not deployed any more) there is no handler."""
    run, waiters = family.lock_with_waiters(tx, run_id)
    if run.deadline_at is None or tx.now < run.deadline_at or run.status not in ("running", *WAITING):
        return False
    late = EverestError(say("id", "engine.deadline", at=f"{run.deadline_at:%Y-%m-%d %H:%M:%S}"))
    late.code = 504
    endings.fail_run(tx, definition, run, late, None)
    if definition is not None and definition.options.on_deadline is not None:
        handle, told = definition.options.on_deadline, state.public_part(run.state)
        about = pointer.context(tx, run, pointer.occasion_of(run, "on_deadline"))
        endings.guarded(tx, run, "deadline", lambda: handle(told, about))
    family.wake(tx, waiters)
    return True
