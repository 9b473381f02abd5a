"""Rule 1 of a task: who may run a step. It looks at the rows before anything runs, and says Go, Replay or Leave.

Ownership is the equality of `dag_run_id`; the right to commit belongs to the newest attempt, which begins here.
"""

from __future__ import annotations

from dataclasses import replace

from everest.errors import Conflict
from everest.words import say
from everest.workflow import clears, codec, deployment, fanout, pointer, questions
from everest.workflow import definition as d
from everest.workflow.definition import Definition
from everest.workflow.deployment import Deployed
from everest.workflow.endings import fail_run
from everest.workflow.ownership import find, second_row
from everest.workflow.pointer import announce_next
from everest.workflow.ports import Transaction
from everest.workflow.records import FINAL, WAITING, Outcome, Run
from everest.workflow.ticket import Go, Leave, Replay, Ticket, Token


def begin(
    tx: Transaction,
    definition: Definition,
    ticket: Ticket,
    step_name: str,
    branch: str = "",
    deployed: Deployed = deployment.nothing,
) -> Go | Replay | Leave:
    """Raises DocumentMissing when no such job exists. A failed run is reopened by a person's clear alone (`clears`)."""
    shadow = tx.runs.shadow(ticket.shadow_id)
    if shadow is not None and shadow.workflow_id is None and shadow.dag_run_id != ticket.dag_run_id:
        # Started by hand in Airflow: no message stands for this DAG run, so nobody would look after it.
        return Leave(f"DAG run {ticket.dag_run_id} was not announced for job {shadow.id}; jobs start through the queue")
    run, newest, stranger = find(tx, definition, ticket, shadow, step_name, branch)
    if stranger:
        return second_row(tx, run, ticket)
    if run.dag_run_id != ticket.dag_run_id:
        return Leave(f"DAG run {run.dag_run_id} owns this workflow now")
    if run.status in FINAL or run.current_step is None:
        return Leave(f"the workflow is {run.status}")
    is_cleared = clears.is_new(run, ticket.clears)
    if run.status == "failed" and run.compensation:
        return Leave("the workflow failed and was compensated")
    if run.status == "failed" and not is_cleared:
        return Leave("the workflow has failed")
    if run.definition_hash != definition.definition_hash:
        return _other_definition(tx, run, ticket, definition, deployment.of_run(deployed, run))
    step = definition.step(step_name)
    position, at = definition.index(step_name), definition.index(run.current_step)
    if position < at:
        return Replay()
    if position > at:
        return Leave(f"the workflow stands at {run.current_step}")
    if run.status == "paused":
        return fanout.leave_paused(tx, run, step, branch)
    if run.status in WAITING and not (step.waits or questions.is_asked_here(run)):
        return Leave(f"the workflow is {run.status}")
    if run.status == "failed":
        pointer.reopen(tx, run, ticket.clears)
        if isinstance(step, d.ForEach):
            tx.runs.reopen_items(run, step_name)
    elif is_cleared:
        clears.note(run, ticket.clears)
        tx.runs.save(run)
    if branch and isinstance(step, d.Parallel) and newest is not None and newest.status == "completed":
        return Replay()
    attempt = 1 + (newest.attempt if newest else 0)
    with tx.runs.at_once():
        tx.runs.begin_attempt(run, step_name, branch, attempt)
        tx.runs.set_shadow(ticket.shadow_id, Outcome("PROCESSING"), step_name)
        tx.runs.add_event(run, "started", step_name, attempt, {"branch": branch} if branch else None)
    decision = questions.decision_of(run, tx.now) if run.waiting else None
    token = Token(run.id, run.dag_run_id, run.n, step_name, run.visit, attempt, branch, decision)
    return Go(token, dict(run.state), _known(definition, run) if isinstance(step, d.Then) else None)


def _known(definition: Definition, run: Run) -> Run | None:
    """What a fused task may take for granted of the run it has begun a step of, until its own writes find out. A copy:
    handlers may do with their state what they like."""
    if definition.options.tasks != "fused" or run.status != "running" or run.waiting is not None:
        return None
    return replace(run, state=codec.loads(codec.dumps(run.state)))


def _other_definition(
    tx: Transaction, run: Run, ticket: Ticket, definition: Definition, older: Definition | None
) -> Leave:
    """The run began under another definition: it goes on in that one's DAG if that is still deployed, else it stops, as
    it stands: its steps are undone by nobody, so that it can go on once that definition is deployed beside this one."""
    if older is not None and older.definition_hash == run.definition_hash and older.dag_id != run.dag_id:
        if run.status == "failed":
            pointer.reopen(tx, run, ticket.clears)
        run.dag_id = older.dag_id
        announce_next(tx, run)
        return Leave(f"version {run.version} goes on in DAG {run.dag_id}")
    versions = {"began": run.version, "deployed": definition.version}
    text = say("en", "engine.other_definition", run=run.id, workflow=run.workflow, **versions)
    clears.note(run, ticket.clears)
    fail_run(tx, definition, run, Conflict(text), None, undoes=False)
    return Leave(text)
