"""Steps that wait: a delay, signals and answers of people, other workflows, a nested run.

Entering one either completes the step at once or parks the run (rule 3). Whoever satisfies a wait only *wakes* the
run; the task that comes then enters the step again and finds it satisfied, so there is one place that decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from everest.errors import Conflict, DocumentRefused, StepTimeout
from everest.workflow import definition as d
from everest.workflow import pointer, questions, starts, state
from everest.workflow.checks import MAX_SIGNAL_NAME
from everest.workflow.definition import Definition, Step
from everest.workflow.ports import Run, RunStatus, Signal, Transaction
from everest.workflow.ticket import Forward, Leave, Token

REFUSED = 403
MAX_CORRELATION = 150
"""Characters; its column."""

_SHOWN = ("kind", "names", "remaining", "until")
_SHOWN_OF_A_QUESTION = (*_SHOWN, "reasons", "sequence", "evidence", "not_by")


def enter(tx: Transaction, definition: Definition, run: Run, step: Step, token: Token) -> Forward | Leave:
    """The pointer stands at a waiting step: is what it waits for there? The caller holds the run's lock."""
    match step:
        case d.Delay():
            return _delay(tx, definition, run, step, token)
        case d.WaitForSignals():
            return _signals(tx, definition, run, step, token)
        case d.WaitForWorkflows():
            return _workflows(tx, definition, run, step, token)
        case d.RunWorkflow():
            return _nested(tx, definition, run, step, token)
        case _:
            raise TypeError(f"step {step.name} does not wait")


def _open(run: Run, step: Step) -> dict[str, Any] | None:
    """What the run recorded when it began this very wait."""
    waiting = run.waiting
    return waiting if waiting and (waiting["step"], waiting["visit"]) == (step.name, run.visit) else None


def _begin(tx: Transaction, run: Run, step: Step, kind: str, **about: Any) -> dict[str, Any]:
    run.wait_sequence += 1
    limit = step.timeout
    until = None if limit is None else tx.now + limit
    return {"kind": kind, "step": step.name, "visit": run.visit, "sequence": run.wait_sequence, "until": until, **about}


def _park(
    tx: Transaction,
    run: Run,
    step: Step,
    status: RunStatus,
    waiting: dict[str, Any],
    message: str,
    until: datetime | None,
) -> Leave:
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


def ask(tx: Transaction, run: Run, step: Step, token: Token, question: questions.Question) -> Leave:
    """Parks the run at a plain step whose handler asks a person. The same evidence keeps a question that nobody has
    answered yet, with its number and its time; other evidence, or an answer that the handler saw, makes it a new one.
    """
    waiting = run.waiting if questions.is_asked_here(run) else None
    if waiting is None or waiting["evidence"] != question.evidence or token.decision is not None:
        until = None if question.timeout is None else tx.now + question.timeout
        waiting = _begin(tx, run, step, questions.DECISION, names=[questions.DECISION], matched={})
        waiting |= {"remaining": [questions.DECISION], "until": until, "message": question.message}
        waiting |= {"reasons": question.reasons, "evidence": question.evidence, "not_by": question.not_by}
        waiting |= {"details": question.details, "asked_at": tx.now}
        asked = {name: waiting[name] for name in ("sequence", "evidence", "until", "not_by", "message", "reasons")}
        tx.runs.add_event(run, "asked", step.name, token.attempt, asked)
    tx.runs.unsend(run)  # the timer of an earlier question, or of an earlier DAG run
    return _park(tx, run, step, "waiting_for_signal", waiting, waiting["message"], waiting["until"])


def may_go_on(tx: Transaction, definition: Definition, run: Run) -> bool:
    """Whether entering the wait that the run stands at would not park it again."""
    waiting = run.waiting
    if waiting is None or run.current_step is None:
        return True
    if waiting["kind"] in ("workflows", "child"):
        return is_decided(tx, waiting)
    if waiting["kind"] == "delay":
        return _is_late(tx, waiting)
    step, _ = _open_wait(definition, run)
    return _is_late(tx, waiting) or (step is not None and is_satisfied(step, waiting))


def _is_late(tx: Transaction, waiting: dict[str, Any]) -> bool:
    return bool(waiting["until"] is not None and tx.now >= waiting["until"])


def _late(definition: Definition, step: d.WaitForSignals | d.WaitForWorkflows, what: str) -> dict[str, Any]:
    if step.on_timeout is None:
        raise StepTimeout(f"langkah {step.name}: {what} tidak datang dalam {step.timeout}")
    return dict(step.on_timeout)


# ------------------------------------------------------------------------------------------------------- delay


def _delay(tx: Transaction, definition: Definition, run: Run, step: d.Delay, token: Token) -> Forward | Leave:
    waiting = _open(run, step)
    if waiting is None:
        waiting = _begin(tx, run, step, "delay")
        waiting["until"] = tx.now + step.duration
    if step.duration == timedelta(0) or _is_late(tx, waiting):
        return pointer.advance(tx, definition, run, step, token, {})
    return _park(tx, run, step, "running", waiting, f"menunggu sampai {_wib(waiting['until'])}", waiting["until"])


def _wib(instant: datetime) -> str:
    return f"{instant + timedelta(hours=7):%Y-%m-%d %H:%M:%S} WIB"


# ----------------------------------------------------------------------------------------------------- signals


def _signals(
    tx: Transaction, definition: Definition, run: Run, step: d.WaitForSignals, token: Token
) -> Forward | Leave:
    waiting = _open(run, step)
    if waiting is None:
        waiting = _begin(tx, run, step, step.kind, names=list(step.names), matched={}, remaining=list(step.names))
        if step.correlation_key is not None:
            if step.correlation_key not in run.state:
                raise DocumentRefused(f"step {step.name}: the state has no {step.correlation_key!r} to correlate by")
            waiting["correlation"] = {"key": step.correlation_key, "value": run.state[step.correlation_key]}
        if step.kind == "signal":
            tx.runs.release_signals(run, step.name)
    if step.kind == "signal":
        for signal in tx.runs.open_signals(run, step.names):
            take(tx, run, step, waiting, signal)
    if "rejected" in waiting and step.kind == "approval":
        answer = waiting["rejected"]
        raise DocumentRefused(f"ditolak oleh {answer['by']}: {answer['reason'] or 'tanpa alasan'}", code=REFUSED)
    if is_satisfied(step, waiting):
        return pointer.advance(tx, definition, run, step, token, _result(step, waiting))
    if _is_late(tx, waiting):
        return pointer.advance(tx, definition, run, step, token, _late(definition, step, " dan ".join(step.names)))
    message = f"menunggu {step.kind}: {', '.join(waiting['remaining'])}"
    return _park(tx, run, step, "waiting_for_signal", waiting, message, waiting["until"])


def take(tx: Transaction, run: Run, step: d.WaitForSignals, waiting: dict[str, Any], signal: Signal) -> bool:
    """Consumes a stored signal if this wait is still missing it. Each wait consumes the oldest match of each name."""
    if signal.name not in waiting["remaining"] or is_satisfied(step, waiting) or not _matches(step, waiting, signal):
        return False
    tx.runs.consume_signal(run, signal.id, step.name)
    waiting["matched"][signal.name] = {"payload": signal.payload, "by": signal.sent_by, "at": signal.sent_at}
    waiting["remaining"].remove(signal.name)
    return True


def _matches(step: d.WaitForSignals, waiting: dict[str, Any], signal: Signal) -> bool:
    wanted = step.match_payload or {}
    if any(key not in signal.payload or signal.payload[key] != value for key, value in wanted.items()):
        return False
    if step.correlation_key is None:
        return True
    expected = waiting["correlation"]["value"]
    return signal.correlation == str(expected) or signal.payload.get(step.correlation_key) == expected


def is_satisfied(step: d.WaitForSignals, waiting: dict[str, Any]) -> bool:
    if "rejected" in waiting:
        return True
    return not waiting["remaining"] or (step.mode == "any" and bool(waiting["matched"]))


def _result(step: d.WaitForSignals, waiting: dict[str, Any]) -> dict[str, Any]:
    matched = waiting["matched"]
    if step.kind == "decision" or step.kind == "approval":
        rejected = waiting.get("rejected")
        answer = rejected or matched[step.names[0]]
        result: dict[str, Any] = {
            "outcome": "rejected" if rejected else "approved",
            "signal": step.names[0],
            "by": answer["by"],
            "at": answer["at"],
            "reason": answer.get("reason") or answer.get("payload", {}).get("reason"),
            "data": answer.get("payload", {}),
        }
    elif step.many:
        result = {name: one["payload"] for name, one in matched.items()}
    else:
        result = dict(matched[step.names[0]]["payload"])
    return state.public_part(result) if step.result_key is None else {step.result_key: result}


def deliver(
    tx: Transaction,
    definition: Definition,
    run: Run,
    name: str,
    payload: dict[str, Any],
    correlation: str | None,
    who: str | None,
) -> bool:
    """Stores a plain signal and gives it to the open wait, if that is missing it. Returns whether it woke the run."""
    if run.status in ("completed", "cancelled", "failed"):
        raise Conflict(f"workflow {run.id} is {run.status}; a signal would never be read")
    if not 0 < len(name) <= MAX_SIGNAL_NAME or len(correlation or "") > MAX_CORRELATION:
        raise DocumentRefused(
            f"a signal's name has 1 to {MAX_SIGNAL_NAME} characters, its correlation at most {MAX_CORRELATION}"
        )
    signal_id = tx.runs.add_signal(run, name, payload, correlation, who, None)
    tx.runs.add_event(run, "signal", run.current_step, None, {"name": name, "by": who})
    step, waiting = _open_wait(definition, run)
    if step is None or waiting is None or step.kind != "signal":
        return False
    signal = Signal(signal_id, name, payload, correlation, who, tx.now)
    return take(tx, run, step, waiting, signal) and _wake_if_satisfied(tx, run, step, waiting)


def answer(
    tx: Transaction,
    definition: Definition,
    run: Run,
    kinds: Sequence[str],
    who: str,
    payload: dict[str, Any],
    reason: str | None,
    rejects: bool = False,
    sequence: int | None = None,
) -> None:
    """A person's answer to the wait that is open now. Raises Conflict when there is none, or another one than the
    person saw (`sequence`); Forbidden when this person may not answer it."""
    step, waiting = _open_wait(definition, run)
    if step is None or waiting is None or step.kind not in kinds:
        raise Conflict(f"workflow {run.id} is {run.status} and waits for no {' or '.join(kinds)}")
    if sequence is not None and sequence != waiting["sequence"]:
        raise Conflict(f"workflow {run.id} waits for something else by now (question {waiting['sequence']})")
    if is_satisfied(step, waiting):
        raise Conflict(f"workflow {run.id} has its answer already")
    questions.check_may_answer(waiting, who)
    if questions.is_asked_here(run) and _is_late(tx, waiting):
        raise Conflict(f"workflow {run.id} waited until {_wib(waiting['until'])}; the question is closed")
    name = step.names[0]
    if not _matches(step, waiting, Signal(0, name, payload, None, who, tx.now)):
        wanted = dict(step.match_payload or {})
        if step.correlation_key is not None:
            wanted[step.correlation_key] = waiting["correlation"]["value"]
        told = ", ".join(f"{key} = {value}" for key, value in wanted.items())
        raise Conflict(f"workflow {run.id} waits for an answer whose payload has {told}")
    signal_id = tx.runs.add_signal(run, name, payload, None, who, waiting["sequence"])
    tx.runs.consume_signal(run, signal_id, step.name)
    said = {"payload": payload, "by": who, "at": tx.now, "reason": reason}
    if rejects:
        waiting["rejected"] = said
    else:
        waiting["matched"][name] = said
        waiting["remaining"].remove(name)
    tx.runs.add_event(run, "rejected" if rejects else "answered", step.name, None, {"by": who, "reason": reason})
    _wake_if_satisfied(tx, run, step, waiting)


def _open_wait(definition: Definition, run: Run) -> tuple[d.WaitForSignals | None, dict[str, Any] | None]:
    if run.current_step is None or pointer.status_of_wait(run) != "waiting_for_signal":
        return None, None
    if questions.is_asked_here(run):
        return questions.stand_in(run), run.waiting
    step = definition.step(run.current_step)
    return (step, _open(run, step)) if isinstance(step, d.WaitForSignals) else (None, None)


def _wake_if_satisfied(tx: Transaction, run: Run, step: d.WaitForSignals, waiting: dict[str, Any]) -> bool:
    run.waiting = waiting
    if is_satisfied(step, waiting) and run.status != "paused":
        pointer.wake(tx, run)
        return True
    tx.runs.save(run)
    return False


# ------------------------------------------------------------------------------------------- other workflows


def _workflows(
    tx: Transaction, definition: Definition, run: Run, step: d.WaitForWorkflows, token: Token
) -> Forward | Leave:
    waiting = _open(run, step)
    if waiting is None:
        ids = _sources(tx, run, step)
        # Held until this wait is recorded: none of them can end without seeing this waiter, and of two runs that begin
        # to wait for each other at once one is told (a deadlock, tried again, then a ring).
        tx.runs.hold(ids)
        _refuse_ring(tx, run, ids)
        waiting = _begin(tx, run, step, "workflows", ids=ids, mode=step.mode, quorum=step.quorum)
        tx.runs.add_dependencies(run, step.name, ids)
    verdict = _verdict(tx, waiting)
    _note(waiting, verdict)
    if verdict.is_satisfied:
        return pointer.advance(tx, definition, run, step, token, {step.result_key: _states(step, verdict.completed)})
    if _is_late(tx, waiting):
        return pointer.advance(tx, definition, run, step, token, _late(definition, step, "alur kerja yang ditunggu"))
    message = f"menunggu alur kerja {', '.join(map(str, verdict.remaining))}"
    return _park(tx, run, step, "waiting_for_workflows", waiting, message, waiting["until"])


def _sources(tx: Transaction, run: Run, step: d.WaitForWorkflows) -> list[int]:
    source: Any = step.source
    if step.is_group:
        return tx.runs.group(str(run.state.get(source, source)))
    if isinstance(source, str):
        if source not in run.state:
            raise DocumentRefused(f"step {step.name}: the state has no {source!r} with workflow ids")
        source = run.state[source]
    ids = [source] if isinstance(source, int) else list(source) if isinstance(source, list | tuple) else None
    if ids is None or any(isinstance(one, bool) or not isinstance(one, int) for one in ids):
        raise DocumentRefused(f"step {step.name}: {source!r} is no workflow id and no list of them")
    return sorted(set(ids))


def _refuse_ring(tx: Transaction, run: Run, ids: list[int]) -> None:
    seen: set[int] = set()
    front = set(ids)
    while front:
        if run.id in front:
            raise DocumentRefused(f"workflow {run.id} would wait for itself, directly or in a ring")
        seen |= front
        front = {one for waited in tx.runs.waits_on(front).values() for one in waited} - seen


class _Verdict:
    def __init__(self, completed: list[Run], remaining: list[int], is_satisfied: bool) -> None:
        self.completed, self.remaining, self.is_satisfied = completed, remaining, is_satisfied


def _verdict(tx: Transaction, waiting: dict[str, Any]) -> _Verdict:
    """Raises DocumentRefused when the wait can never be satisfied."""
    where, mode = f"langkah {waiting['step']}", waiting["mode"]
    runs = {one: tx.runs.get(one) for one in waiting["ids"]}
    gone = [one for one, found in runs.items() if found is None]
    if gone:
        raise DocumentRefused(f"{where}: alur kerja {', '.join(map(str, gone))} tidak ada", code=404)
    present = [found for found in runs.values() if found is not None]
    completed = sorted((one for one in present if one.status == "completed"), key=lambda one: (one.finished_at, one.id))
    lost = [one for one in present if one.status in ("failed", "cancelled")]
    needed = {"all": len(present), "any": 1, "quorum": waiting["quorum"] or 1}[mode]
    if len(present) - len(lost) < needed:
        reasons = [f"{one.id} {one.status}" for one in lost] or [f"hanya {len(present)} alur kerja, perlu {needed}"]
        raise DocumentRefused(f"{where} tidak bisa terpenuhi: {', '.join(reasons)}", code=409)
    chosen = completed[:1] if mode == "any" else completed
    remaining = [one.id for one in present if one not in completed and one not in lost]
    return _Verdict(chosen, remaining, len(completed) >= needed)


def _note(waiting: dict[str, Any], verdict: _Verdict) -> None:
    waiting["remaining"] = verdict.remaining
    waiting["matched"] = len(verdict.completed)


def _states(step: d.WaitForWorkflows, completed: list[Run]) -> Any:
    if not step.many:
        return state.public_part(completed[0].state)
    return {str(one.id): state.public_part(one.state) for one in completed}


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
        raise DocumentRefused(f"step {step.name}: nested workflow {child_id} does not exist", code=404)
    if child.status == "completed":
        return pointer.advance(tx, definition, run, step, token, state.public_part(child.state))
    if child.status in ("failed", "cancelled"):
        why = (child.error or {}).get("message", child.status)
        raise DocumentRefused(f"alur kerja {child_id} ({step.workflow.name}) {child.status}: {why}", code=409)
    waiting = _open(run, step) or _begin(tx, run, step, "child", ids=[child_id], remaining=[child_id])
    if _is_late(tx, waiting):
        raise StepTimeout(f"langkah {step.name}: alur kerja {child_id} tidak selesai dalam {step.timeout}")
    return _park(tx, run, step, "waiting_for_workflows", waiting, f"menunggu alur kerja {child_id}", waiting["until"])


def wake_if_decided(tx: Transaction, run: Run) -> bool:
    """A run that waits for workflows, one of which has just ended: wakes it if that decides the wait, else notes how
    far it is. A paused one looks when it is resumed."""
    if run.status != "waiting_for_workflows" or run.waiting is None:
        return False
    if is_decided(tx, run.waiting):
        pointer.wake(tx, run)
        return True
    if run.waiting["kind"] == "workflows":
        _note(run.waiting, _verdict(tx, run.waiting))
        tx.runs.save(run)
    return False


def is_decided(tx: Transaction, waiting: dict[str, Any]) -> bool:
    """Whether entering the wait for other workflows again would not park it again."""
    if waiting["kind"] == "child":
        child = tx.runs.get(waiting["ids"][0])
        return child is None or child.status in ("completed", "failed", "cancelled")
    try:
        return _verdict(tx, waiting).is_satisfied
    except DocumentRefused:
        return True
