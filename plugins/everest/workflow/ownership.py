"""Whose run it is: the run that a job's row stands for, second rows of a document, and taking a run over.

A run has one carrier, the row that speaks for it, and one DAG run that may commit; every task asks here first.
"""

from __future__ import annotations

from everest.errors import Conflict, DefinitionError, DocumentMissing
from everest.words import say, told
from everest.workflow import clock, pointer, starts, waits
from everest.workflow.definition import Definition
from everest.workflow.ports import Transaction
from everest.workflow.records import FINAL, WAITING, Outcome, Run, ShadowRow, Try, is_other_nota, nota_refused
from everest.workflow.ticket import Leave, Ticket


def find_run(tx: Transaction, definition: Definition, ticket: Ticket) -> tuple[Run, bool]:
    """The locked run of this ticket, and whether its shadow row is a second one for a run that others carry.
    A foreign row gets its run here, made or found. Raises DocumentMissing when no such job exists."""
    run, _, stranger = find(tx, definition, ticket, tx.runs.shadow(ticket.shadow_id), "", "")
    return run, stranger


def find(
    tx: Transaction, definition: Definition, ticket: Ticket, shadow: ShadowRow | None, step: str, branch: str
) -> tuple[Run, Try | None, bool]:
    """As `find_run`, with the newest attempt of a step."""
    if shadow is None:
        raise DocumentMissing(f"shadow row {ticket.shadow_id} does not exist")
    run_id = shadow.workflow_id
    if run_id is None:
        # A foreign message: its run is made by its first task (or the reconciler), or found if another row made it.
        if shadow.transaksi_id is None:
            raise DocumentMissing(f"shadow row {shadow.id} names neither a workflow nor a transaksi_id")
        payload = {"transaksi_id": shadow.transaksi_id}
        run = starts.new_run(definition, payload, definition.key(payload))
        run.carrier_shadow_id = shadow.id
        run.dag_run_id, run.n = ticket.dag_run_id, ticket.n
        run_id = tx.runs.insert(run)
    run, newest = tx.runs.lock_try(run_id, step, branch)
    if run.workflow != definition.name:
        raise DefinitionError(f"shadow row {shadow.id} belongs to workflow {run.workflow}, not {definition.name}")
    if shadow.workflow_id is not None:
        return run, newest, False
    tx.runs.shadow(ticket.shadow_id, lock=True)
    if run.carrier_shadow_id != shadow.id:
        return run, newest, True
    tx.runs.link_shadow(shadow.id, run.id)
    return run, newest, False


def second_row(tx: Transaction, run: Run, ticket: Ticket) -> Leave:
    """A second job for a document does no work of its own: it waits with it, shares its end, or runs it again.

    One that names another nota is no job of that document: to share its end would call a nota posted that never was. It
    fails on its own, not linked to the run. Where it may be the first that names the right one (the run has not
    completed a step, so nothing has looked at the document yet) it runs it again, and the first step judges it. While
    the run is at work it waits with it, and is parted when the run completes (`RunStore.part_strangers`).
    """
    if run.status in FINAL or (run.status == "failed" and run.transitions > 0):
        refused = _other_nota(tx, run, ticket)
        if refused is not None:
            tx.runs.set_shadow(ticket.shadow_id, refused, None)
            return Leave(refused.error or "")
    if run.status in FINAL:
        tx.runs.link_shadow(ticket.shadow_id, run.id)
        tx.runs.set_shadow(ticket.shadow_id, tx.runs.outcome_of(run), run.current_step)
        return Leave(f"the document is {run.status} already; its outcome was copied")
    tx.runs.link_shadow(ticket.shadow_id, run.id)
    if run.status == "failed":
        # The rerun primitive is a change from FAILED; this row shares the document's failure for one statement.
        tx.runs.set_shadow(ticket.shadow_id, tx.runs.outcome_of(run), run.current_step)
        announced = tx.runs.rerun(ticket.shadow_id, "second-message", None)
        return Leave(f"the document had failed; DAG run {announced} tries again")
    message = say("id", "engine.other_job", job=run.carrier_shadow_id)
    waiting = Outcome("WAITING", {"status": "waiting", "code": 202, **told(message)})
    tx.runs.set_shadow(ticket.shadow_id, waiting, run.current_step)
    return Leave(f"shadow row {run.carrier_shadow_id} carries this document; this row waits for its end")


def _other_nota(tx: Transaction, run: Run, ticket: Ticket) -> Outcome | None:
    """How this job ends when it is not one of the document's; None when it is."""
    outcome = tx.runs.outcome_of(run)
    this, carrier = tx.runs.shadow(ticket.shadow_id), tx.runs.shadow(pointer.carrier(run))
    documents = (outcome.response or {}).get("nomer_nota") or (carrier.nomer_nota if carrier else None)
    if this is None or not is_other_nota(this.nomer_nota, documents):
        return None
    return nota_refused(this.transaksi_id, outcome.worker_status, documents, this.nomer_nota)


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
    if run.status not in ("running", "failed") and not (run.status in WAITING and waits.may_go_on(tx, definition, run)):
        raise Conflict(f"the document is {run.status}; it waits for a person")
    if run.compensation:
        raise Conflict("the workflow was compensated and cannot run again")
    current = tx.runs.shadow(pointer.carrier(run), lock=True)
    if current is not None and current.worker_status == "PROCESSING" and not take_running:
        who = f"DAG run {ticket.dag_run_id}" if ticket.dag_run_id else "another program"
        raise Conflict(f"{who} is at work on the document")
    if run.status == "failed":  # as a rerun: an answer that ended it is void, and its question is asked anew
        run.status = "running"
        clock.start_anew(run, tx.now)
        run.waiting, run.wakes_at, run.paused_status = None, None, None
    run.n = max(run.n, ticket.n) + 1
    run.carrier_shadow_id = shadow_id
    run.dag_run_id = tx.runs.dag_run_id(run)
    pointer.clear_error(run)
    run.recovered = 0
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PROCESSING"))
    tx.runs.add_event(run, "taken_over", run.current_step, None, {"n": run.n})
    return Ticket(run.dag_run_id, shadow_id, run.n, run.id, shadow.transaksi_id)
