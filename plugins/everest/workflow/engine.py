"""The pointer machine: what happens to a run's rows around one step. Everything here runs inside a transaction
that the caller opens and commits; nothing here retries, waits or knows Airflow.

A task passes three doors: `begin` (may this task run its step?), its handler, and `settle` or `fail` (one commit
with the handler's writes, or a recorded failure). Ownership is the equality of `dag_run_id`; the right to commit
belongs to the newest attempt (state protocol, "Task").
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from everest.errors import (
    Conflict,
    DefinitionError,
    DocumentMissing,
    DocumentRefused,
    EverestError,
    GaveUp,
    problems_json,
)
from everest.workflow import codec
from everest.workflow.definition import NEXT_STEP, RESPONSE, Definition
from everest.workflow.ports import FINAL, Outcome, Run, Transaction

log = logging.getLogger(__name__)

SUCCESS_MESSAGE = "selesai"
MESSAGE_MAX = 2_000
"""Characters of an error's own sentence; a bug may quote anything."""
SUMMARY_MAX = 15_000
"""Characters of the column `error`, a TEXT of 65,535 bytes."""


@dataclass(frozen=True)
class Ticket:
    """Who a task says it is: its DAG run and the ids of the message that started it."""

    dag_run_id: str
    shadow_id: int
    n: int
    workflow_id: int | None = None
    transaksi_id: int | None = None

    @classmethod
    def from_conf(cls, dag_run_id: str, conf: dict[str, Any]) -> Ticket:
        """Raises DocumentRefused when the DAG run was started without the ids of a message."""
        try:
            ids = {name: int(conf[name]) for name in ("workflow_id", "transaksi_id") if conf.get(name) is not None}
            return cls(dag_run_id=dag_run_id, shadow_id=int(conf["shadow_id"]), n=int(conf.get("n", 1)), **ids)
        except (KeyError, TypeError, ValueError):
            raise DocumentRefused(
                f"DAG run {dag_run_id} carries no shadow_id; documents start through the queue, not by hand", code=404
            ) from None


@dataclass(frozen=True)
class Token:
    """The right to commit one try of a step: valid while no newer try and no newer DAG run has begun."""

    run_id: int
    dag_run_id: str
    step: str
    visit: int
    attempt: int
    branch: str = ""


@dataclass(frozen=True)
class Go:
    """Run the handler on this state, then settle with this token."""

    token: Token
    state: dict[str, Any]


@dataclass(frozen=True)
class Replay:
    """The step lies before the pointer: it is recorded or was skipped by a branch; the DAG run goes on."""


@dataclass(frozen=True)
class Leave:
    """This DAG run has nothing (more) to do: the rest of it is skipped, green."""

    reason: str


@dataclass(frozen=True)
class Forward:
    """The step is recorded; the next task of this DAG run goes on."""

    next_step: str


class Fenced(EverestError):
    """A newer try, a newer DAG run or a final status owns this step; nothing of this try was written."""

    code = 409


@dataclass(frozen=True)
class StepContext:
    """What a handler gets beside the state. `tx` is the open transaction: what is written there commits with the
    step, exactly once. `key` is the same at every try, for effects outside the database."""

    tx: Any
    now: datetime
    workflow_id: int
    step: str
    attempt: int
    shadow_id: int
    dag_run_id: str
    n: int

    @property
    def key(self) -> str:
        return f"{self.workflow_id}:{self.step}"


# ---------------------------------------------------------------------------------------------------- dispatch


@dataclass(frozen=True)
class Dispatched:
    """A workflow that will run: its row, its job and the DAG run that is announced for it."""

    workflow_id: int
    shadow_id: int
    dag_run_id: str


def new_run(definition: Definition, payload: dict[str, Any], key: str | None) -> Run:
    return Run(
        id=0,
        workflow=definition.name,
        version=definition.version,
        definition_hash=definition.definition_hash,
        idempotency_key=key,
        payload=payload,
        state=dict(payload),
        status="running",
        current_step=definition.steps[0].name,
        visit=1,
        n=1,
        dag_id=definition.name,
        dag_run_id="",
        carrier_shadow_id=None,
    )


def dispatch(
    tx: Transaction,
    definition: Definition,
    payload: dict[str, Any],
    key: str | None = None,
    transaksi_id: int | None = None,
    nomer_nota: str | None = None,
) -> Dispatched:
    """Writes the run, its shadow row and the outbox row that announces DAG run 1. Raises Conflict when the key is
    taken: the caller knows whether that is an "already submitted" or a mistake."""
    key = key if key is not None else definition.key(payload)
    if key is not None and tx.runs.find(definition.name, key) is not None:
        raise Conflict(f"workflow {definition.name} with key {key} exists already")
    run = new_run(definition, payload, key)
    run.id = tx.runs.insert(run)
    run.carrier_shadow_id = tx.runs.insert_shadow(run, transaksi_id, nomer_nota, codec.dumps(payload))
    run.dag_run_id = tx.runs.dag_run_id(run)
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PENDING"))
    tx.runs.enqueue(run)
    tx.runs.add_event(run, "dispatched", None, None, None)
    return Dispatched(run.id, run.carrier_shadow_id, run.dag_run_id)


# ------------------------------------------------------------------------------------------------------- begin


def begin(tx: Transaction, definition: Definition, ticket: Ticket, step: str) -> Go | Replay | Leave:
    """Rule 1 of a task: look at the rows before anything runs. Raises DocumentMissing when no such job exists."""
    shadow = tx.runs.shadow(ticket.shadow_id)
    if shadow is not None and shadow.workflow_id is None and shadow.dag_run_id != ticket.dag_run_id:
        # Started by hand in Airflow: no message stands for this DAG run, so nobody would look after it.
        return Leave(f"DAG run {ticket.dag_run_id} was not announced for job {shadow.id}; jobs start through the queue")
    run, stranger = find_run(tx, definition, ticket)
    if stranger:
        return second_row(tx, run, ticket)
    if run.dag_run_id != ticket.dag_run_id:
        return Leave(f"DAG run {run.dag_run_id} owns this workflow now")
    if run.status in FINAL or run.current_step is None:
        return Leave(f"the workflow is {run.status}")
    position, pointer = definition.index(step), definition.index(run.current_step)
    if position < pointer:
        return Replay()
    if position > pointer:
        return Leave(f"the workflow stands at {run.current_step}")
    if run.status == "failed":
        if run.compensation:
            return Leave("the workflow failed and was compensated")
        _reopen(tx, run)
    elif run.status != "running":
        return Leave(f"the workflow is {run.status}")
    attempt = tx.runs.begin_attempt(run, step, "")
    tx.runs.set_shadow(ticket.shadow_id, Outcome("PROCESSING"), step)
    tx.runs.add_event(run, "started", step, attempt, None)
    return Go(Token(run.id, run.dag_run_id, step, run.visit, attempt), dict(run.state))


def find_run(tx: Transaction, definition: Definition, ticket: Ticket) -> tuple[Run, bool]:
    """The locked run of this ticket, and whether its shadow row is a second one for a run that others carry.
    A foreign row gets its run here, made or found. Raises DocumentMissing when no such job exists."""
    shadow = tx.runs.shadow(ticket.shadow_id)
    if shadow is None:
        raise DocumentMissing(f"shadow row {ticket.shadow_id} does not exist")
    run_id = shadow.workflow_id
    if run_id is None:
        # A foreign message: its run is made by its first task (or the reconciler), or found if another row made it.
        if shadow.transaksi_id is None:
            raise DocumentMissing(f"shadow row {shadow.id} names neither a workflow nor a transaksi_id")
        payload = {"transaksi_id": shadow.transaksi_id}
        run = new_run(definition, payload, definition.key(payload))
        run.carrier_shadow_id = shadow.id
        run.dag_run_id, run.n = ticket.dag_run_id, ticket.n
        run_id = tx.runs.insert(run)
    run = tx.runs.lock(run_id)
    if run.workflow != definition.name:
        raise DefinitionError(f"shadow row {shadow.id} belongs to workflow {run.workflow}, not {definition.name}")
    tx.runs.shadow(ticket.shadow_id, lock=True)
    stranger = shadow.workflow_id is None and run.carrier_shadow_id != shadow.id
    if shadow.workflow_id is None and not stranger:
        tx.runs.link_shadow(shadow.id, run.id)
    return run, stranger


def second_row(tx: Transaction, run: Run, ticket: Ticket) -> Leave:
    """A second job for a document does no work of its own: it waits with it, shares its end, or runs it again.

    One that names another nota than the one that ended is no job of that document: to share its end would call a
    nota posted that never was. It fails on its own, not linked to the run.
    """
    if run.status in FINAL:
        outcome = tx.runs.outcome_of(run)
        conflict = _other_nota(tx, run, ticket, outcome)
        if conflict is not None:
            detail = {"status": "error", "code": 409, "message": conflict, "errors": []}
            tx.runs.set_shadow(ticket.shadow_id, Outcome("FAILED", detail, 409, conflict), None)
            return Leave(conflict)
        tx.runs.link_shadow(ticket.shadow_id, run.id)
        tx.runs.set_shadow(ticket.shadow_id, outcome, run.current_step)
        return Leave(f"the document is {run.status} already; its outcome was copied")
    tx.runs.link_shadow(ticket.shadow_id, run.id)
    if run.status == "failed":
        # The rerun primitive is a change from FAILED; this row shares the document's failure for one statement.
        tx.runs.set_shadow(ticket.shadow_id, tx.runs.outcome_of(run), run.current_step)
        announced = tx.runs.rerun(ticket.shadow_id, "second-message", None)
        return Leave(f"the document had failed; DAG run {announced} tries again")
    message = f"dokumen sedang dikerjakan oleh pekerjaan {run.carrier_shadow_id}"
    waiting = Outcome("WAITING", {"status": "waiting", "code": 202, "message": message})
    tx.runs.set_shadow(ticket.shadow_id, waiting, run.current_step)
    return Leave(f"shadow row {run.carrier_shadow_id} carries this document; this row waits for its end")


def _other_nota(tx: Transaction, run: Run, ticket: Ticket, outcome: Outcome) -> str | None:
    """Why this job is not one of the document that the run ended; None when it is."""
    this, carrier = tx.runs.shadow(ticket.shadow_id), tx.runs.shadow(_carrier(run))
    ended = (outcome.response or {}).get("nomer_nota") or (carrier and carrier.nomer_nota)
    if this is None or this.nomer_nota is None or ended is None or this.nomer_nota == ended:
        return None
    return (
        f"transaksi {this.transaksi_id} sudah selesai ({outcome.worker_status}) dengan nota {ended};"
        f" nota {this.nomer_nota} tidak bisa memakainya lagi"
    )


def _reopen(tx: Transaction, run: Run) -> None:
    """A person cleared the failed task in Airflow: the same DAG run goes on."""
    run.status = "running"
    run.error_code, run.error, run.failed_n, run.failed_attempt = None, None, None, None
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PROCESSING"))
    tx.runs.add_event(run, "reopened", run.current_step, None, None)


# ------------------------------------------------------------------------------------------------------ settle


def settle(tx: Transaction, definition: Definition, token: Token, output: dict[str, Any] | None) -> Forward | Leave:
    """Records the step and moves the pointer, in the transaction that holds the handler's writes.

    Raises Fenced (the caller rolls back) when this try lost its right to commit, DocumentRefused when the handler
    names a step that does not exist.
    """
    run = _owned(tx, token)
    output = output or {}
    target = output.get(NEXT_STEP)
    response = output.get(RESPONSE)
    public = {key: value for key, value in output.items() if not key.startswith("_")}
    run.state.update(public)
    run.transitions += 1
    tx.runs.finish_step(run, token.step, token.branch, "completed", public, None)
    tx.runs.add_event(run, "completed", token.step, token.attempt, None)
    position = definition.index(token.step)
    if target is not None:
        following = _target(definition, token.step, target)
    elif position + 1 < len(definition.steps):
        following = position + 1
    else:
        return _complete(tx, run, response)
    run.current_step = definition.steps[following].name
    if following <= position:
        # A DAG run only walks forward: a jump back is a new visit in a new DAG run.
        run.visit += 1
        announce_next(tx, run)
        return Leave(f"goes back to {run.current_step} in DAG run {run.dag_run_id}")
    tx.runs.save(run)
    if run.status == "paused":
        tx.runs.set_shadows(run, Outcome("WAITING", {"status": "waiting", "code": 202, "message": "dijeda"}))
        return Leave("the workflow is paused")
    tx.runs.set_shadow(_carrier(run), Outcome("PROCESSING"), run.current_step)
    return Forward(run.current_step)


def announce_next(tx: Transaction, run: Run) -> None:
    """DAG run n+1 at the pointer: written into run and shadow rows together with its outbox row."""
    run.n += 1
    run.dag_run_id = tx.runs.dag_run_id(run)
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PENDING"))
    tx.runs.enqueue(run)
    tx.runs.add_event(run, "announced", run.current_step, None, {"n": run.n})


def _target(definition: Definition, step: str, target: Any) -> int:
    try:
        return definition.index(target)
    except DefinitionError:
        raise DocumentRefused(f"step {step} asks for _next_step {target!r}, which does not exist", code=500) from None


def _complete(tx: Transaction, run: Run, response: dict[str, Any] | None) -> Leave:
    run.status = "completed"
    run.current_step = None
    run.finished_at = tx.now
    tx.runs.save(run)
    answer = {"status": "success", "code": 200, "message": SUCCESS_MESSAGE, **(response or {})}
    tx.runs.set_shadows(run, Outcome("COMPLETED", answer))
    tx.runs.add_event(run, "workflow_completed", None, None, None)
    return Leave("the workflow is completed")


def _owned(tx: Transaction, token: Token) -> Run:
    """The locked run, if this try may still commit."""
    run = tx.runs.lock(token.run_id)
    if run.dag_run_id != token.dag_run_id:
        raise Fenced(f"DAG run {run.dag_run_id} owns this workflow now")
    if run.status not in ("running", "paused"):
        raise Fenced(f"the workflow is {run.status}")
    if run.current_step != token.step or run.visit != token.visit:
        raise Fenced(f"the workflow stands at {run.current_step}, visit {run.visit}")
    record = tx.runs.step(run.id, token.step, token.visit, token.branch)
    if record is None or record.attempt != token.attempt or record.status == "completed":
        raise Fenced("a newer try of this step has begun or ended")
    return run


# -------------------------------------------------------------------------------------------------------- fail


def fail(tx: Transaction, definition: Definition, token: Token, error: Exception) -> None:
    """Records that the step failed for good. Raises Fenced when that is not this try's to say."""
    run = _owned(tx, token)
    fail_run(tx, definition, run, error, token)


def fail_run(tx: Transaction, definition: Definition | None, run: Run, error: Exception, token: Token | None) -> None:
    """Run, step and shadow rows say FAILED with the reasons. The caller holds the run's lock."""
    code, message, problems = describe(error)
    detail = {"status": "error", "code": code, "message": message, "errors": problems}
    if token is not None:
        tx.runs.finish_step(run, token.step, token.branch, "failed", None, detail)
    run.status = "failed"
    run.error_code, run.error = code, detail
    run.failed_n, run.failed_attempt = run.n, token.attempt if token else None
    tx.runs.save(run)
    tx.runs.set_shadows(run, Outcome("FAILED", detail, code, _summary(message, problems)))
    tx.runs.add_event(run, "failed", run.current_step, run.failed_attempt, detail)
    if definition is not None and definition.on_failure is not None:
        step = run.current_step or ""
        context = StepContext(tx, tx.now, run.id, step, run.failed_attempt or 0, _carrier(run), run.dag_run_id, run.n)
        try:
            with tx.savepoint():
                definition.on_failure(dict(run.state), context, error)
        except Exception as trouble:
            if isinstance(trouble, EverestError) and trouble.retryable:
                raise
            # A failure that its handler could prevent from being recorded would be a job that never ends.
            log.exception("the failure handler of workflow %s failed; the failure is recorded without it", run.id)
            handler = {"error": describe(trouble)[1]}
            tx.runs.add_event(run, "failure_handler_failed", run.current_step, run.failed_attempt, handler)


def recover(tx: Transaction, definition: Definition | None, run: Run, limit: int, reason: str) -> bool:
    """After a DAG run that ended or vanished without a record: DAG run n+1 at the pointer, at most `limit` times in
    all, then FAILED 503. Returns whether the workflow goes on. `reason` is a sentence for the run's history.

    The caller holds the run's lock and has seen under it that nothing was committed since it looked at Airflow.
    """
    if run.recovered >= limit:
        text = f"menyerah setelah {run.recovered} kali dimulai ulang otomatis; terakhir: {reason}"
        fail_run(tx, definition, run, GaveUp(text), None)
        return False
    run.recovered += 1
    tx.runs.add_event(run, "recovered", run.current_step, None, {"reason": reason, "times": run.recovered})
    announce_next(tx, run)
    return True


def describe(error: Exception) -> tuple[int, str, list[dict[str, Any]]]:
    """The code, the sentence and the problems by line that an error leaves in the rows. A bug shows its type and
    text, never its trace: that stands in the task log."""
    if isinstance(error, DocumentRefused):
        return error.code, _writable(error.message), problems_json(error.problems)
    if isinstance(error, EverestError):
        return error.code, _writable(error.message), []
    return 500, _writable(f"kesalahan program: {type(error).__name__}: {error}"), []


def _writable(text: str) -> str:
    """As a column takes it: bounded, and without the halves of characters that UTF-8 cannot hold."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - 1] + "…"


def _summary(message: str, problems: list[dict[str, Any]]) -> str:
    shown = [f"baris {p['baris']} {p['kolom']}: {p['pesan']}" if p["baris"] else p["pesan"] for p in problems[:10]]
    more = [f"dan {len(problems) - 10} lagi"] if len(problems) > 10 else []
    return "; ".join([message, *shown, *more])[:SUMMARY_MAX]


def _carrier(run: Run) -> int:
    if run.carrier_shadow_id is None:
        raise DefinitionError(f"workflow run {run.id} has no shadow row")
    return run.carrier_shadow_id


# --------------------------------------------------------------------------------------------------- take over


def take_over(tx: Transaction, definition: Definition, shadow_id: int, take_running: bool = False) -> Ticket:
    """Makes the caller the owner of the workflow, as DAG run n+1 that Airflow never sees, for
    `python -m everest post`. A message of an older n is stale from then on, and a task of it is fenced.

    Raises Conflict when the document is at work and `take_running` is not set, or when it waits for a person.
    """
    shadow = tx.runs.shadow(shadow_id)
    if shadow is None:
        raise DocumentMissing(f"shadow row {shadow_id} does not exist")
    ticket = Ticket(dag_run_id=shadow.dag_run_id or "", shadow_id=shadow_id, n=shadow.n or 1)
    run, stranger = find_run(tx, definition, ticket)
    if stranger:
        tx.runs.link_shadow(shadow_id, run.id)
    if run.status in FINAL:
        raise Conflict(f"the document is {run.status}")
    if run.status not in ("running", "failed"):
        raise Conflict(f"the document is {run.status}; it waits for a person")
    if run.compensation:
        raise Conflict("the workflow was compensated and cannot run again")
    current = tx.runs.shadow(_carrier(run), lock=True)
    if current is not None and current.worker_status == "PROCESSING" and not take_running:
        raise Conflict(f"DAG run {run.dag_run_id} is at work on the document")
    run.status = "running"
    run.n = max(run.n, ticket.n) + 1
    run.carrier_shadow_id = shadow_id
    run.dag_run_id = tx.runs.dag_run_id(run)
    run.error_code, run.error, run.failed_n, run.failed_attempt, run.recovered = None, None, None, None, 0
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PROCESSING"))
    tx.runs.add_event(run, "taken_over", run.current_step, None, {"n": run.n})
    return Ticket(run.dag_run_id, shadow_id, run.n, run.id, shadow.transaksi_id)
