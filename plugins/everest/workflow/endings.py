"""How a run ends badly: failed or cancelled, with its reasons in run, step and shadow rows, and what is to be undone.

Every function runs under the run's lock, inside the caller's transaction. What an error leaves in the rows is decided
here, too: its code, a sentence, the problems by line; never a trace with values, never a password.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from everest.errors import (
    DatabaseError,
    DocumentRefused,
    EverestError,
    HandlerHangs,
    TransientDatabaseError,
    problems_json,
)
from everest.words import said_of, say, told
from everest.workflow import family, patience, pointer, state
from everest.workflow.definition import Definition
from everest.workflow.handlers import dotted_name
from everest.workflow.ports import Transaction
from everest.workflow.records import FINAL, Outcome, Run
from everest.workflow.ticket import Token

log = logging.getLogger(__name__)

MESSAGE_MAX = 2_000
"""Characters of an error's own sentence; a bug may quote anything."""
SUMMARY_MAX = 15_000
"""Characters of the column `error`, a TEXT of 65,535 bytes."""
SAID_MAX = 8_000
"""Characters of what a sentence of ours keeps of itself, as JSON."""
WHY_MAX = 500
"""Of the words of whoever raised an error, inside such a sentence."""
TRACE_FRAMES = 12
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")


def fail_run(
    tx: Transaction,
    definition: Definition | None,
    run: Run,
    error: Exception,
    token: Token | None,
    undoes: bool = True,
) -> None:
    """Run, step and shadow rows say FAILED with the reasons. The caller holds the run's lock. undoes: whether a
    definition that says so has the run's steps undone by this failure."""
    code, message, problems = describe(error)
    detail = {"status": "error", "code": code, "message": message, "errors": problems, **known_as(error)}
    if undoes and definition is not None and definition.options.compensate_on_failure:
        _owe_compensations(tx, run)
        if run.compensation == "pending":
            _stop_nested(tx, definition, run)
    if token is not None:
        tx.runs.finish_step(run, token.step, token.branch, "failed", None, {**detail, "type": type(error).__name__})
    run.status = "failed"
    run.error_code, run.error = code, detail
    run.note_failure()
    state.count_anew_from_here(run)
    run.failed_attempt = token.attempt if token else None
    run.wakes_at = None
    tx.runs.unsend(run)
    tx.runs.save(run)
    tx.runs.set_shadows(run, Outcome("FAILED", detail, code, _summary(message, problems)))
    tx.runs.add_event(run, "failed", run.current_step, run.failed_attempt, {**detail, **diagnosis(error)})
    if definition is not None and definition.options.on_failure is not None:
        handle, told = definition.options.on_failure, state.public_part(run.state)
        about = pointer.context(tx, run, pointer.occasion_of(run, "on_failure"))
        guarded(tx, run, "failure", lambda: handle(told, about, error))


def guarded(tx: Transaction, run: Run, kind: str, handler: Callable[[], Any]) -> None:
    """A handler about a run that has ended badly. What it writes is undone when it raises, and the end stands: one that
    its handler could prevent from being recorded would be a job that never ends. Raises TransientDatabaseError and
    HandlerHangs: the transaction is lost; all of it is done again, after the second without handlers."""
    what = f"the {kind} handler of workflow {run.id}"
    try:
        if patience.is_left_out():
            raise HandlerHangs(say("id", "engine.handler_left_out"))
        with tx.savepoint():
            patience.call(what, handler)
    except TransientDatabaseError:
        raise
    except Exception as trouble:
        if isinstance(trouble, HandlerHangs) and not patience.is_left_out():
            raise
        log.exception("%s failed; the end is recorded without it", what)
        told = {"error": describe(trouble)[1], **known_as(trouble)}
        tx.runs.add_event(run, f"{kind}_handler_failed", run.current_step, run.failed_attempt, told)


def cancel_run(tx: Transaction, definition: Definition | None, run: Run, who: str, reason: str | None) -> None:
    """CANCELLED 499 in run and shadow rows; compensations are due from here on. The caller holds the run's lock."""
    about = {"who": who, "reason": reason} if reason else {"who": who}
    message = say("id", "engine.cancelled_because" if reason else "engine.cancelled_by", **about)
    detail = {"status": "error", "code": 499, **told(message), "errors": []}
    run.status = "cancelled"
    run.error_code, run.error = 499, detail
    run.finished_at = tx.now
    run.waiting, run.wakes_at = None, None
    tx.runs.unsend(run)
    if definition is not None and definition.options.on_cancel is not None:
        handler = dotted_name(definition.options.on_cancel)
        tx.runs.add_compensation(run, "on_cancel", handler, state.public_part(run.state), first=True)
    _owe_compensations(tx, run)
    tx.runs.save(run)
    tx.runs.set_shadows(run, Outcome("CANCELLED", detail, 499, message))
    tx.runs.add_event(run, "cancelled", run.current_step, None, {"actor": who, "reason": reason})


def _owe_compensations(tx: Transaction, run: Run) -> None:
    """Due from here on, if there is anything to undo. One that failed for good stays shown as failed."""
    if run.compensation in (None, "done") and tx.runs.next_compensation(run.id, lock=False) is not None:
        run.compensation = "pending"


def _stop_nested(tx: Transaction, definition: Definition, run: Run) -> None:
    """A run that is undone has nothing at work inside it any more: what a nested run went on to do would be undone by
    nobody. One that failed stays failed."""
    known = {one.name: one for one in definition.children()}
    nested, waiters = family.lock_nested(tx, run.id)
    for one in nested:
        if one.status not in FINAL and one.status != "failed":
            cancel_run(tx, known.get(one.workflow), one, "system", say("id", "engine.parent_undone", run=run.id))
            tx.runs.audit("system", "cancel", one, f"workflow {run.id} failed and is undone", None)
    family.wake(tx, waiters)


def describe(error: Exception) -> tuple[int, str, list[dict[str, Any]]]:
    """The code, the sentence and the problems by line that an error leaves in the rows. A bug shows its type and
    text, never its trace: that stands in the task log."""
    if isinstance(error, DocumentRefused):
        return error.code, _writable(error.message), problems_json(error.problems)
    if isinstance(error, EverestError):
        return error.code, _writable(error.message), []
    return 500, _writable(f"kesalahan program: {type(error).__name__}: {error}"), []


def known_as(error: Exception) -> dict[str, Any]:
    """{"said": ...}, by which pages tell the error in their reader's language; empty where a handler spoke in words of
    its own. Bugs and the database's refusals have their class's sentence, with the words of whoever raised them."""
    if isinstance(error, DatabaseError):
        message: Any = say("id", "engine.database", number=error.number, why=_theirs(error.message))
    elif isinstance(error, EverestError):
        message = error.args[0]
    else:
        message = say("id", "engine.bug", type=type(error).__name__, why=_theirs(str(error)))
    said = said_of(message)
    kept = {"said": _clean({name: said[name] for name in ("key", "values")})} if said else {}
    return kept if len(json.dumps(kept)) <= SAID_MAX else {}


def _theirs(text: str) -> dict[str, Any]:
    return {"message": _writable(text)[:WHY_MAX], "lang": "en"}


def _clean(value: Any) -> Any:
    """As a row may hold it, whatever an error was given to say."""
    if isinstance(value, dict):
        return {str(name): _clean(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    return value if value is None or isinstance(value, bool | int) else _writable(str(value))


def diagnosis(error: Exception) -> dict[str, Any]:
    """What a run's history keeps of an error: class, sentence and where it was raised. Names of files and functions
    only: lines of code and values may hold secrets."""
    code, message, _ = describe(error)
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    where = [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-TRACE_FRAMES:]]
    return {"code": code, "message": message, "type": type(error).__name__, "trace": where, **known_as(error)}


def _writable(text: str) -> str:
    """As a row may hold it: without passwords (errors of clients like to quote the URL they called), bounded, and
    without the halves of characters that UTF-8 cannot hold."""
    text = _CREDENTIALS.sub("***@", text).encode(errors="backslashreplace").decode()
    return text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - 1] + "…"


def _summary(message: str, problems: list[dict[str, Any]]) -> str:
    shown = [f"baris {p['baris']} {p['kolom']}: {p['pesan']}" if p["baris"] else p["pesan"] for p in problems[:10]]
    more = [f"dan {len(problems) - 10} lagi"] if len(problems) > 10 else []
    return "; ".join([message, *shown, *more])[:SUMMARY_MAX]
