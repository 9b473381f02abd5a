"""What all waits have in common: a record of the open wait in the run, and the run parked at its step.

The record (`Run.waiting`) says what is waited for, since which visit, until when; `pointer` ends the DAG run.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from everest.errors import WaitTimeout
from everest.words import say, span, told
from everest.workflow import clock, pointer
from everest.workflow import definition as d
from everest.workflow.definition import Step
from everest.workflow.ports import Transaction
from everest.workflow.records import Outcome, Run, RunStatus
from everest.workflow.ticket import Leave

_SHOWN = ("kind", "names", "remaining", "until")
_SHOWN_OF_A_QUESTION = (*_SHOWN, "reasons", "sequence", "evidence", "not_by")


def open_wait(run: Run, step: Step) -> dict[str, Any] | None:
    """What the run recorded when it began this very wait."""
    waiting = run.waiting
    return waiting if waiting and (waiting["step"], waiting["visit"]) == (step.name, run.visit) else None


def begin(tx: Transaction, run: Run, step: Step, kind: str, **about: Any) -> dict[str, Any]:
    """A new wait, numbered; recorded when the run is parked. about: what its kind needs to know."""
    run.wait_sequence += 1
    limit = step.timeout
    until = None if limit is None else tx.now + limit
    place = {"kind": kind, "step": step.name, "visit": run.visit, "sequence": run.wait_sequence}
    return {**place, "since": tx.now, "until": until, **about}


def park(
    tx: Transaction,
    run: Run,
    step: Step,
    status: RunStatus,
    waiting: dict[str, Any],
    message: str,
    until: datetime | None,
) -> Leave:
    """Ends the DAG run at this step. status: what the run is doing, apart from a pause; until: when it wakes itself."""
    if run.status == "paused":
        run.paused_status = status
    else:
        run.status = status
    run.waiting = waiting
    if tx.runs.step(run.id, step.name, run.visit, "") is None:
        tx.runs.begin_attempt(run, step.name, "")
    tx.runs.finish_step(run, step.name, "", "waiting", None, None)
    return pointer.park(tx, run, message, shown(waiting), until)


def shown(waiting: dict[str, Any]) -> dict[str, Any]:
    """What the job's row tells its sender about an open wait."""
    keys = _SHOWN_OF_A_QUESTION if "evidence" in waiting else _SHOWN
    return {"waiting": {key: value for key, value in waiting.items() if key in keys}}


def set_right(tx: Transaction, run: Run) -> None:
    """A run that a clock which was ahead has changed last: its times count from now, and it is woken by them. The
    caller holds its lock."""
    woken_at = run.wakes_at
    clock.set_right(run, tx.now)
    tx.runs.save(run)
    job = tx.runs.shadow(pointer.carrier(run))
    if run.waiting is None or run.wakes_at == woken_at or job is None or job.worker_status != "WAITING":
        return
    answer = {**(tx.runs.outcome_of(run).response or {}), **shown(run.waiting)}
    if run.waiting["kind"] == "delay":
        answer |= told(delay_message(run.waiting))
    tx.runs.unsend(run)
    tx.runs.announce(run, Outcome("WAITING", answer))
    if run.status != "paused":
        tx.runs.enqueue(run, run.wakes_at)


def delay_message(waiting: dict[str, Any]) -> str:
    return say("id", "engine.waits_until", at=wib(waiting["until"]))


def is_late(tx: Transaction, waiting: dict[str, Any]) -> bool:
    """Whether its time is over."""
    return bool(waiting["until"] is not None and tx.now >= waiting["until"])


def late(step: d.WaitForSignals | d.WaitForWorkflows, key: str, **about: Any) -> dict[str, Any]:
    """What the step gives when its time is over. Raises WaitTimeout where it says nothing: the sentence of that key,
    about these holes beside step and limit."""
    if step.on_timeout is None:
        raise WaitTimeout(say("id", key, step=step.name, limit=span(step.timeout or timedelta()), **about))
    return dict(step.on_timeout)


def wib(instant: datetime) -> str:
    """A UTC instant in the words of a message."""
    return f"{instant + timedelta(hours=7):%Y-%m-%d %H:%M:%S} WIB"
