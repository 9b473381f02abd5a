"""Undoing what an ended run has done: newest first, each compensation in a transaction of its own with its own record.

A process that dies leaves the record as it was; whoever comes next goes on from there. The record is claimed while its
handler runs, so that two processes never undo the same step. A deadlock or a lost connection costs none of its tries:
its record stays as it was.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Literal

from everest.errors import TransientDatabaseError
from everest.workflow import again, deployment, endings, patience, pointer
from everest.workflow.definition import Definition
from everest.workflow.deployment import Deployed
from everest.workflow.handlers import Handler, dotted_name, resolve
from everest.workflow.ports import Transaction, TransactionFactory
from everest.workflow.records import Compensation, Run
from everest.workflow.ticket import StepContext

log = logging.getLogger(__name__)

DEFAULT_ATTEMPTS = 3
"""Of a compensation whose definition is not deployed any more."""


def compensate_all(
    open_transaction: TransactionFactory, run_id: int, deployed: Deployed, rest: again.Rest = again.rest
) -> bool:
    """Runs what is due, newest first, each in a transaction of its own, and one that fails again after a rest. True
    when nothing is left to do. Raises TransientDatabaseError when the database stays away; the reconciler goes on."""
    with open_transaction() as tx:
        run = tx.runs.get(run_id)
    if run is None:
        return True
    definition = deployment.of_run(deployed, run)
    tries = 0
    while True:
        outcome = again.when_transient(lambda: _compensate(open_transaction, run_id, definition))
        if outcome == "failed":
            tries += 1
            rest(again.rest_s(tries))
        elif outcome == "done":
            tries = 0
        else:
            return outcome == "finished"


def compensate_next(open_transaction: TransactionFactory, run_id: int, definition: Definition | None) -> bool:
    """One compensation. Whether it was done and there may be another one; a failed one is shown, and is due again
    until the definition's attempts are used up. Raises TransientDatabaseError, which costs none of them."""
    return _compensate(open_transaction, run_id, definition) == "done"


def _compensate(
    open_transaction: TransactionFactory, run_id: int, definition: Definition | None
) -> Literal["done", "finished", "failed", "gave_up", "busy"]:
    """busy: another process is at it, or has done it meanwhile; or a run nested in this one comes first."""
    with open_transaction() as tx:
        run = tx.runs.lock(run_id)
        if run.compensation != "pending":
            return "gave_up" if run.compensation == "failed" else "finished"
        if tx.runs.owes_below(run_id):
            return "busy"  # newest first: what a nested run did came after what its parent had done before it
        todo = tx.runs.next_compensation(run_id, lock=False)
        if todo is None:
            run.compensation = "done"
            tx.runs.save(run)
            return "finished"
    try:
        with open_transaction() as tx:
            held = tx.runs.next_compensation(run_id)
            if held is None or not _is_same(held, todo):
                return "busy"
            undo, about = _undo(definition, held), _context(tx, run, held)
            patience.call(f"compensation of {held.step}, workflow {run_id},", partial(undo, held.state, about))
            tx.runs.finish_compensation(held.id, "done", None)
            tx.runs.add_event(run, "compensated", held.step, held.attempts + 1, None)
    except TransientDatabaseError:
        raise
    except Exception as error:
        return _note_failure(open_transaction, run_id, definition, todo, error)
    return "done"


def _note_failure(
    open_transaction: TransactionFactory,
    run_id: int,
    definition: Definition | None,
    todo: Compensation,
    error: Exception,
) -> Literal["failed", "gave_up", "busy"]:
    code, message, _ = endings.describe(error)
    log.warning("compensation of step %s of workflow %s failed: %s", todo.step, run_id, message)
    max_attempts = definition.options.max_attempts if definition else DEFAULT_ATTEMPTS
    with open_transaction() as tx:
        run = tx.runs.lock(run_id)
        held = tx.runs.next_compensation(run_id)
        if held is None or not _is_same(held, todo):
            return "busy"  # whoever took it after our rollback says how it ended
        tx.runs.finish_compensation(held.id, "failed", {"code": code, "message": message, **endings.known_as(error)})
        if held.attempts + 1 < max_attempts:
            return "failed"
        run.compensation = "failed"
        tx.runs.save(run)
        return "gave_up"


def _context(tx: Transaction, run: Run, held: Compensation) -> StepContext:
    """About the step that is undone, in its own visit: so each compensation has its own key, the same at every try."""
    about = pointer.context(tx, run, "on_cancel" if held.sequence == 0 else "compensate")
    if held.sequence > 0:
        about = replace(about, step=held.step, visit=held.visit)
    return replace(about, attempt=held.attempts + 1)


def _is_same(held: Compensation, todo: Compensation) -> bool:
    return (held.id, held.attempts) == (todo.id, todo.attempts)


def _undo(definition: Definition | None, held: Compensation) -> Handler:
    """The deployed definition's own function where it still has the stored name, else whatever has that name."""
    if definition is not None:
        steps = {step.name: step.compensate_with for step in definition.steps}
        known = definition.options.on_cancel if held.sequence == 0 else steps.get(held.step)
        if known is not None and dotted_name(known) == held.handler:
            return known
    return resolve(held.handler)
