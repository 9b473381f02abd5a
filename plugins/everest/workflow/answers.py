"""Messages from outside: plain signals, and the answers of people to the question that is open.

Whoever sends one only stores it and wakes the run. A waiting step looks for it when a task enters it (`enter`); a plain
step that asks a person (`ask`) is entered again with the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from everest.errors import Conflict, DocumentRefused
from everest.words import say, told
from everest.workflow import codec, parking, pointer, questions, state
from everest.workflow import definition as d
from everest.workflow.checks import MAX_SIGNAL_NAME
from everest.workflow.definition import Definition, Step
from everest.workflow.ports import Transaction
from everest.workflow.records import Run, Signal
from everest.workflow.ticket import Forward, Leave, Token

REFUSED = 403
MAX_CORRELATION = 150
"""Characters; its column."""
MAX_UNREAD = 1_000
"""Plain signals of one name that a run keeps until a wait reads them. A wait reads all of them at once."""


def enter(tx: Transaction, definition: Definition, run: Run, step: d.WaitForSignals, token: Token) -> Forward | Leave:
    """The pointer stands at a step that waits for signals or an answer: are they there?"""
    waiting = parking.open_wait(run, step)
    if waiting is None:
        waiting = parking.begin(
            tx, run, step, step.kind, names=list(step.names), matched={}, remaining=list(step.names)
        )
        if step.correlation_key is not None:
            if run.state.get(step.correlation_key) is None:
                flaw = say("en", "engine.no_correlation", step=step.name, name=repr(step.correlation_key))
                raise DocumentRefused(flaw)
            waiting["correlation"] = {"key": step.correlation_key, "value": run.state[step.correlation_key]}
        if step.kind == "signal":
            tx.runs.release_signals(run, step.name)
    if step.kind == "signal":
        for signal in tx.runs.open_signals(run, step.names):
            take(tx, run, step, waiting, signal)
    if "rejected" in waiting and step.kind == "approval":
        answer = waiting["rejected"]
        key, why = ("rejected", {"reason": answer["reason"]}) if answer["reason"] else ("rejected_silently", {})
        raise DocumentRefused(say("id", f"engine.{key}", who=answer["by"], **why), code=REFUSED)
    if is_satisfied(step, waiting):
        return pointer.advance(tx, definition, run, step, token, _result(step, waiting))
    if parking.is_late(tx, waiting):
        return pointer.advance(
            tx, definition, run, step, token, parking.late(step, "engine.wait_late", what=list(step.names))
        )
    message = say("id", "engine.waits_for", kinds=step.kind, names=list(waiting["remaining"]))
    return parking.park(tx, run, step, "waiting_for_signal", waiting, message, waiting["until"])


def take(tx: Transaction, run: Run, step: d.WaitForSignals, waiting: dict[str, Any], signal: Signal) -> bool:
    """Consumes a stored signal if this wait is still missing it. Each wait consumes the oldest match of each name."""
    if not _is_missing(step, waiting, signal):
        return False
    tx.runs.consume_signal(run, signal.id, step.name)
    waiting["matched"][signal.name] = {"payload": signal.payload, "by": signal.sent_by, "at": signal.sent_at}
    waiting["remaining"].remove(signal.name)
    return True


def _is_missing(step: d.WaitForSignals, waiting: dict[str, Any], signal: Signal) -> bool:
    """Whether a plain signal is what the wait needs; it answers no question."""
    if step.kind != "signal":
        return False
    return signal.name in waiting["remaining"] and not is_satisfied(step, waiting) and _matches(step, waiting, signal)


def _matches(step: d.WaitForSignals, waiting: dict[str, Any], signal: Signal) -> bool:
    wanted = codec.as_stored(step.match_payload or {})
    if not all(_stands(signal.payload, key, value) for key, value in wanted.items()):
        return False
    if step.correlation_key is None:
        return True
    expected, given = waiting["correlation"]["value"], signal.payload
    return signal.correlation == str(expected) or _stands(given, step.correlation_key, expected)


def _stands(payload: dict[str, Any], key: str, value: Any) -> bool:
    """Equal, and 1 is not True, as loops compare."""
    return key in payload and payload[key] == value and isinstance(payload[key], bool) == isinstance(value, bool)


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
    """Stores a plain signal and gives it to the open wait, if that is missing it. Returns whether it woke the run. A
    failed run keeps it for its retry. Raises Conflict when the run has ended, or has too many that nobody has read."""
    if run.status in ("completed", "cancelled"):
        raise Conflict(say("en", "engine.signal_unread", run=run.id, status=run.status))
    if not 0 < len(name) <= MAX_SIGNAL_NAME or len(correlation or "") > MAX_CORRELATION:
        raise DocumentRefused(say("en", "engine.signal_length", name=MAX_SIGNAL_NAME, correlation=MAX_CORRELATION))
    step, waiting = awaited(definition, run)
    signal = Signal(0, name, payload, correlation, who, tx.now)
    is_missing = step is not None and waiting is not None and _is_missing(step, waiting, signal)
    if not is_missing:
        _refuse_flood(tx, definition, run, name)
    signal = replace(signal, id=tx.runs.add_signal(run, name, payload, correlation, who, None))
    tx.runs.add_event(run, "signal", run.current_step, None, {"name": name, "by": who})
    if step is None or waiting is None or not is_missing:
        return False
    return take(tx, run, step, waiting, signal) and _wake_if_satisfied(tx, run, step, waiting)


def _refuse_flood(tx: Transaction, definition: Definition, run: Run, name: str) -> None:
    """Others of its own name alone crowd out a signal that some step waits for. Those of names that no step waits for
    share one room. Raises Conflict."""
    read = {one for step in definition.steps if isinstance(step, d.WaitForSignals) for one in step.names}
    if tx.runs.unread_signals(run, name if name in read else None, MAX_UNREAD) >= MAX_UNREAD:
        key = "engine.signals_unread" if name in read else "engine.signals_unawaited"
        raise Conflict(say("en", key, run=run.id, name=name, most=MAX_UNREAD))


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
    step, waiting = awaited(definition, run)
    if step is None or waiting is None or step.kind not in kinds:
        raise Conflict(say("en", "engine.waits_for_none", run=run.id, status=run.status, kinds=list(kinds)))
    if sequence is not None and sequence != waiting["sequence"]:
        raise Conflict(say("en", "engine.other_question", run=run.id, n=waiting["sequence"]))
    if is_satisfied(step, waiting):
        raise Conflict(say("en", "engine.answered", run=run.id))
    questions.check_may_answer(waiting, who)
    if questions.is_asked_here(run) and parking.is_late(tx, waiting):
        raise Conflict(say("en", "engine.closed", run=run.id, until=parking.wib(waiting["until"])))
    name = step.names[0]
    if not _matches(step, waiting, Signal(0, name, payload, None, who, tx.now)):
        wanted = dict(step.match_payload or {})
        if step.correlation_key is not None:
            wanted[step.correlation_key] = waiting["correlation"]["value"]
        told = [f"{key} = {value}" for key, value in wanted.items()]
        raise Conflict(say("en", "engine.payload_differs", run=run.id, told=told))
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


def awaited(definition: Definition, run: Run) -> tuple[d.WaitForSignals | None, dict[str, Any] | None]:
    """The wait for a signal or an answer that is open now, a plain step's own question too: (None, None) if none is."""
    if run.current_step is None or pointer.status_of_wait(run) != "waiting_for_signal":
        return None, None
    if questions.is_asked_here(run):
        return questions.stand_in(run), run.waiting
    step = definition.step(run.current_step)
    return (step, parking.open_wait(run, step)) if isinstance(step, d.WaitForSignals) else (None, None)


def _wake_if_satisfied(tx: Transaction, run: Run, step: d.WaitForSignals, waiting: dict[str, Any]) -> bool:
    run.waiting = waiting
    if is_satisfied(step, waiting) and run.status != "paused":
        pointer.wake(tx, run)
        return True
    tx.runs.save(run)
    return False


def ask(tx: Transaction, run: Run, step: Step, token: Token, question: questions.Question) -> Leave:
    """Parks the run at a plain step whose handler asks a person. The same evidence keeps a question that nobody has
    answered yet, with its number and its time; other evidence, or an answer that the handler saw, makes it a new one.
    """
    waiting = run.waiting if questions.is_asked_here(run) else None
    if waiting is None or waiting["evidence"] != question.evidence or token.decision is not None:
        until = None if question.timeout is None else tx.now + question.timeout
        waiting = parking.begin(tx, run, step, questions.DECISION, names=[questions.DECISION], matched={})
        waiting |= {"remaining": [questions.DECISION], "until": until, **told(question.message)}
        waiting |= {"reasons": question.reasons, "evidence": question.evidence, "not_by": question.not_by}
        waiting |= {"details": question.details, "asked_at": tx.now}
        asked = {name: waiting[name] for name in ("sequence", "evidence", "until", "not_by", "message", "reasons")}
        tx.runs.add_event(run, "asked", step.name, token.attempt, asked)
    tx.runs.unsend(run)  # the timer of an earlier question, or of an earlier DAG run
    return parking.park(tx, run, step, "waiting_for_signal", waiting, questions.message_of(waiting), waiting["until"])
