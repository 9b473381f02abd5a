"""Where a run stands and where it goes next: record a step, move forward, jump back, park, wake, complete, fail.

Every function runs under the run's lock, inside the caller's transaction.
"""

from __future__ import annotations

import heapq
import logging
import re
import traceback
from datetime import datetime
from pathlib import PurePath
from typing import Any

from everest.errors import DefinitionError, DocumentRefused, EverestError, problems_json
from everest.workflow import definition as d
from everest.workflow import questions, state
from everest.workflow.definition import NEXT_STEP, RESPONSE, Definition, Step, dotted_name
from everest.workflow.ports import Transaction
from everest.workflow.records import FINAL, WAITING, Outcome, Run, RunStatus
from everest.workflow.ticket import Forward, Leave, StepContext, Token

log = logging.getLogger(__name__)

SUCCESS_MESSAGE = "selesai"
PAUSED_MESSAGE = "dijeda"
MESSAGE_MAX = 2_000
"""Characters of an error's own sentence; a bug may quote anything."""
SUMMARY_MAX = 15_000
"""Characters of the column `error`, a TEXT of 65,535 bytes."""
TRACE_FRAMES = 12
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")


# ----------------------------------------------------------------------------------------------------- forward


def advance(
    tx: Transaction,
    definition: Definition,
    run: Run,
    step: Step,
    token: Token,
    output: dict[str, Any] | None,
    begins: str | None = None,
    is_locked: bool = True,
) -> Forward | Leave:
    """Records the step as completed and moves the pointer. begins: a step of the same task, which is begun in the same
    commit if the pointer moves to it. is_locked: the caller holds the run's lock and has seen that the token may
    commit; else the write itself finds out (`RunStore.step_on`), for a plain step of a running run that goes on to
    the next one and has nothing to undo.

    Raises BudgetExceeded, and DocumentRefused when the output names a step that does not exist; the caller rolls
    back and records the failure.
    """
    output = output or {}
    questions.refuse(step.name, output, f"a {step.type}")
    public = state.public_part(output)
    state.merge(run, definition, public)
    state.prune(run, definition)
    run.transitions += 1
    state.check_budgets(run, definition)
    if token.branch and tx.runs.step(run.id, step.name, run.visit, "") is None:
        tx.runs.begin_attempt(run, step.name, "")  # the step as a whole: its branches and slots have their own records
    if step.compensate_with is not None:
        tx.runs.add_compensation(run, step.name, dotted_name(step.compensate_with), state.public_part(run.state))
    run.waiting, run.wakes_at = None, None
    if run.status in WAITING:
        run.status = "running"
    if run.paused_status in WAITING:
        run.paused_status = "running"  # paused on its way out of the wait: a resume must not find it waiting
    position = definition.index(step.name)
    following = _following(definition, step.name, position, output.get(NEXT_STEP))
    state.forget_left_loops(run, definition, following)
    if following == len(definition.steps):
        run.status, run.current_step = "completed", None
        if is_locked:
            run.finished_at = tx.now
        with tx.runs.at_once():
            _move(tx, run, step, token, public, is_locked)
            tx.runs.add_event(run, "completed", step.name, token.attempt, None)
            return _tell_completed(tx, run, output.get(RESPONSE))
    run.current_step = definition.steps[following].name
    if following > position and run.status != "paused":
        with tx.runs.at_once():
            _move(tx, run, step, token, public, is_locked)
            tx.runs.set_shadow(carrier(run), Outcome("PROCESSING"), run.current_step)
            if begins == run.current_step:
                tx.runs.begin_attempt(run, begins, "")
                tx.runs.add_handover(run, step.name, token.attempt, begins)
            else:
                tx.runs.add_event(run, "completed", step.name, token.attempt, None)
        return Forward(run.current_step)
    tx.runs.finish_step(run, step.name, "", "completed", public, None)
    tx.runs.add_event(run, "completed", step.name, token.attempt, None)
    if following <= position:
        # A DAG run only walks forward: a jump back is a new visit in a new DAG run.
        run.visit += 1
    if run.status == "paused":
        return park(tx, run, PAUSED_MESSAGE)
    announce_next(tx, run)
    return Leave(f"goes back to {run.current_step} in DAG run {run.dag_run_id}")


def _move(tx: Transaction, run: Run, step: Step, token: Token, public: dict[str, Any], is_locked: bool) -> None:
    """The run first: where nobody has locked it yet, this write does."""
    if is_locked:
        tx.runs.save(run)
        tx.runs.finish_step(run, step.name, "", "completed", public, None)
    else:
        tx.runs.step_on(run, token, public)


def _following(definition: Definition, step: str, position: int, target: Any) -> int:
    if target is None:
        return position + 1
    try:
        return definition.index(target)
    except DefinitionError:
        raise DocumentRefused(f"step {step} asks for _next_step {target!r}, which does not exist", code=500) from None


def _tell_completed(tx: Transaction, run: Run, response: dict[str, Any] | None) -> Leave:
    answer = {"status": "success", "code": 200, "message": SUCCESS_MESSAGE, **(response or {})}
    tx.runs.set_shadows(run, Outcome("COMPLETED", answer))
    tx.runs.add_event(run, "workflow_completed", None, None, None)
    return Leave("the workflow is completed")


# --------------------------------------------------------------------------------------------- announce, park


def announce_next(tx: Transaction, run: Run) -> None:
    """DAG run n+1 at the pointer: written into run and shadow rows together with its outbox row."""
    _next_run(tx, run, Outcome("PENDING"))
    tx.runs.enqueue(run)
    tx.runs.add_event(run, "announced", run.current_step, None, {"n": run.n})


def park(
    tx: Transaction,
    run: Run,
    message: str,
    detail: dict[str, Any] | None = None,
    wakes_at: datetime | None = None,
) -> Leave:
    """Ends this DAG run: DAG run n+1 is announced but sent only by a wake-up, or when `wakes_at` has come."""
    run.wakes_at = wakes_at
    answer = {"status": "waiting", "code": 202, "message": message, **(detail or {})}
    _next_run(tx, run, Outcome("WAITING", answer))
    if wakes_at is not None and run.status != "paused":
        tx.runs.enqueue(run, wakes_at)
    tx.runs.add_event(run, "parked", run.current_step, None, {"n": run.n, "message": message})
    return Leave(message)


def wake(tx: Transaction, run: Run) -> None:
    """Sends the announced DAG run of a parked run now. Waking twice sends one message more, which starts nothing. A
    task that is on its way into the wait already decides there, under this same lock."""
    tx.runs.unsend(run)
    tx.runs.save(run)
    job = tx.runs.shadow(carrier(run), lock=True)
    if job is not None and job.worker_status == "PROCESSING":
        return
    tx.runs.announce(run, Outcome("PENDING"))
    tx.runs.enqueue(run)
    tx.runs.add_event(run, "woken", run.current_step, None, {"n": run.n})


def _next_run(tx: Transaction, run: Run, outcome: Outcome) -> None:
    run.n += 1
    run.dag_run_id = tx.runs.dag_run_id(run)
    tx.runs.save(run)
    tx.runs.announce(run, outcome)


def reopen(tx: Transaction, run: Run) -> None:
    """A person cleared the failed task in Airflow: the same DAG run goes on. A wait begins anew."""
    tx.runs.audit("airflow", "clear", run, "task dibersihkan di Airflow; siapa: event log Airflow", None)
    run.status = "running"
    run.waiting, run.paused_status, run.recovered = None, None, 0
    clear_error(run)
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PROCESSING"))
    tx.runs.add_event(run, "reopened", run.current_step, None, None)


def clear_error(run: Run) -> None:
    run.error_code, run.error, run.failed_n, run.failed_attempt = None, None, None, None


# -------------------------------------------------------------------------------------------------------- fail


def fail_run(tx: Transaction, definition: Definition | None, run: Run, error: Exception, token: Token | None) -> None:
    """Run, step and shadow rows say FAILED with the reasons. The caller holds the run's lock."""
    code, message, problems = describe(error)
    detail = {"status": "error", "code": code, "message": message, "errors": problems}
    if token is not None:
        tx.runs.finish_step(run, token.step, token.branch, "failed", None, {**detail, "type": type(error).__name__})
    run.status = "failed"
    run.error_code, run.error = code, detail
    run.failed_n, run.failed_attempt = run.n, token.attempt if token else None
    run.wakes_at = None
    tx.runs.unsend(run)
    if definition is not None and definition.options.compensate_on_failure:
        _owe_compensations(tx, run)
    tx.runs.save(run)
    tx.runs.set_shadows(run, Outcome("FAILED", detail, code, _summary(message, problems)))
    tx.runs.add_event(run, "failed", run.current_step, run.failed_attempt, {**detail, **diagnosis(error)})
    if definition is not None and definition.options.on_failure is not None:
        try:
            with tx.savepoint():
                definition.options.on_failure(state.public_part(run.state), context(tx, run), error)
        except Exception as trouble:
            if isinstance(trouble, EverestError) and trouble.retryable:
                raise
            # A failure that its handler could prevent from being recorded would be a job that never ends.
            log.exception("the failure handler of workflow %s failed; the failure is recorded without it", run.id)
            handler = {"error": describe(trouble)[1]}
            tx.runs.add_event(run, "failure_handler_failed", run.current_step, run.failed_attempt, handler)


def cancel_run(tx: Transaction, definition: Definition | None, run: Run, who: str, reason: str | None) -> None:
    """CANCELLED 499 in run and shadow rows; compensations are due from here on. The caller holds the run's lock."""
    message = f"dibatalkan oleh {who}" + (f": {reason}" if reason else "")
    detail = {"status": "error", "code": 499, "message": message, "errors": []}
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


def context(tx: Transaction, run: Run) -> StepContext:
    """The context of a handler that runs about a run, not as a try of a step."""
    return StepContext(
        tx=tx,
        workflow_id=run.id,
        step=run.current_step or "",
        visit=run.visit,
        attempt=run.failed_attempt or 0,
        shadow_id=carrier(run),
        dag_run_id=run.dag_run_id,
        n=run.n,
    )


def describe(error: Exception) -> tuple[int, str, list[dict[str, Any]]]:
    """The code, the sentence and the problems by line that an error leaves in the rows. A bug shows its type and
    text, never its trace: that stands in the task log."""
    if isinstance(error, DocumentRefused):
        return error.code, _writable(error.message), problems_json(error.problems)
    if isinstance(error, EverestError):
        return error.code, _writable(error.message), []
    return 500, _writable(f"kesalahan program: {type(error).__name__}: {error}"), []


def diagnosis(error: Exception) -> dict[str, Any]:
    """What a run's history keeps of an error: class, sentence and where it was raised. Names of files and functions
    only: lines of code and values may hold secrets."""
    code, message, _ = describe(error)
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    where = [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-TRACE_FRAMES:]]
    return {"code": code, "message": message, "type": type(error).__name__, "trace": where}


def _writable(text: str) -> str:
    """As a row may hold it: without passwords (errors of clients like to quote the URL they called), bounded, and
    without the halves of characters that UTF-8 cannot hold."""
    text = _CREDENTIALS.sub("***@", text).encode(errors="backslashreplace").decode()
    return text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - 1] + "…"


def _summary(message: str, problems: list[dict[str, Any]]) -> str:
    shown = [f"baris {p['baris']} {p['kolom']}: {p['pesan']}" if p["baris"] else p["pesan"] for p in problems[:10]]
    more = [f"dan {len(problems) - 10} lagi"] if len(problems) > 10 else []
    return "; ".join([message, *shown, *more])[:SUMMARY_MAX]


def carrier(run: Run) -> int:
    if run.carrier_shadow_id is None:
        raise DefinitionError(f"workflow run {run.id} has no shadow row")
    return run.carrier_shadow_id


# ------------------------------------------------------------------------------------------------- who waits


def lock_with_waiters(tx: Transaction, run_id: int) -> tuple[Run, list[Run]]:
    """The run and those that wait for it, locked by ascending id. A waiter that came in between is not among them;
    the reconciler finds its satisfied wait."""
    ids = sorted({run_id, *tx.runs.waiters(run_id)})
    locked = {one: tx.runs.lock(one) for one in ids}
    run = locked.pop(run_id)
    return run, list(locked.values())


def lock_family(tx: Transaction, run_id: int) -> tuple[Run, list[Run], list[Run]]:
    """The run, its nested runs at any depth, and those that wait for any of them; locked by ascending id.

    A nested run is made under its parent's lock and has a higher id, so none can be missed. Waiters of a nested run
    whose id is lower than what is locked already are left to the reconciler.
    """
    todo = sorted({run_id, *tx.runs.waiters(run_id)})
    locked: dict[int, Run] = {}
    family = {run_id}
    while todo:
        one = heapq.heappop(todo)
        if one in locked:
            continue
        locked[one] = tx.runs.lock(one)
        if one in family:
            family |= (children := set(tx.runs.nested_children(one)))
            waiters = {waiter for child in children for waiter in tx.runs.waiters(child) if waiter > one}
            for more in (children | waiters) - locked.keys():
                heapq.heappush(todo, more)
    nested = [run for one, run in locked.items() if one in family and one != run_id]
    return locked[run_id], nested, [run for one, run in locked.items() if one not in family]


def status_of_wait(run: Run) -> RunStatus:
    """What a run is doing apart from being paused."""
    return run.paused_status or "running" if run.status == "paused" else run.status


def is_final(run: Run) -> bool:
    return run.status in FINAL


def is_wait(step: Step) -> bool:
    return isinstance(step, d.Delay | d.WaitForSignals | d.WaitForWorkflows | d.RunWorkflow)
