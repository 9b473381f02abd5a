"""Where a run stands and where it goes next: record a step, move forward, jump back, park, wake, complete.

Every function runs under the run's lock, inside the caller's transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from everest.errors import DefinitionError, DocumentRefused
from everest.words import Said, say, told
from everest.workflow import clears, clock, questions, state
from everest.workflow.definition import Definition, Step
from everest.workflow.handlers import NEXT_STEP, RESPONSE, dotted_name
from everest.workflow.ports import Transaction
from everest.workflow.records import WAITING, Outcome, Run, RunStatus
from everest.workflow.ticket import Forward, Leave, StepContext, Token

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
    questions.refuse(step.name, output, "engine.a_step", type=step.type)
    public = state.public_part(output)
    state.merge(run, definition, public)
    state.prune(run, definition)
    state.count_transition(run)
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
        return park(tx, run, paused())
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
        text = say("en", "engine.no_such_step", step=step, name=repr(target))
        raise DocumentRefused(text, code=500) from None


def _tell_completed(tx: Transaction, run: Run, response: dict[str, Any] | None) -> Leave:
    response = response or {}
    message = response["message"] if "message" in response else say("id", "engine.done")
    answer = {"status": "success", "code": 200, "message": message, **response}
    if isinstance(message, str):
        answer |= told(message)
    if run.payload.get("transaksi_id") is not None:
        tx.runs.part_strangers(run, answer.get("nomer_nota"))  # no job says COMPLETED of a nota that nobody posted
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
    answer = {"status": "waiting", "code": 202, **told(message), **(detail or {})}
    _next_run(tx, run, Outcome("WAITING", answer))
    if wakes_at is not None and run.status != "paused":
        tx.runs.enqueue(run, wakes_at)
    tx.runs.add_event(run, "parked", run.current_step, None, {"n": run.n, **told(message)})
    return Leave(message)


def paused() -> Said:
    """The message of a run that is parked because somebody paused it."""
    return say("id", "engine.paused")


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


def reopen(tx: Transaction, run: Run, count: int) -> None:
    """A person cleared the failed task in Airflow: the same DAG run goes on. A wait begins anew. count: the clear."""
    tx.runs.audit("airflow", "clear", run, "task dibersihkan di Airflow; siapa: event log Airflow", None)
    run.status = "running"
    run.waiting, run.paused_status, run.recovered = None, None, 0
    clear_error(run)
    clears.note(run, count)
    clock.start_anew(run, tx.now)
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PROCESSING"))
    tx.runs.add_event(run, "reopened", run.current_step, None, None)


def clear_error(run: Run) -> None:
    run.error_code, run.error, run.failed_n, run.failed_attempt = None, None, None, None


def context(tx: Transaction, run: Run, occasion: str = "") -> StepContext:
    """The context of a handler that is about a run where it stands: a reducer, or what an end of the run occasions."""
    return StepContext(
        tx=tx,
        workflow_id=run.id,
        step=run.current_step or "",
        visit=run.visit,
        attempt=run.failed_attempt or 0,
        shadow_id=carrier(run),
        dag_run_id=run.dag_run_id,
        n=run.n,
        occasion=occasion,
    )


def occasion_of(run: Run, what: str) -> str:
    """Tells one failure or deadline of a run from the next, and is the same each time that one is recorded."""
    return f"{what}-{run.n}-{clears.known(run)}-{run.failed_attempt or 0}"


def carrier(run: Run) -> int:
    if run.carrier_shadow_id is None:
        raise DefinitionError(f"workflow run {run.id} has no shadow row")
    return run.carrier_shadow_id


def status_of_wait(run: Run) -> RunStatus:
    """What a run is doing apart from being paused."""
    return run.paused_status or "running" if run.status == "paused" else run.status
