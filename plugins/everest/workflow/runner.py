"""One try of one step against a real store: begin, work, settle; transient database errors are tried again here,
bounded, and a failure that is final is recorded in a transaction of its own.

Airflow's operator and `python -m everest post` both call `run_step`; neither adds rules of its own.
"""

from __future__ import annotations

import logging
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from everest.errors import Conflict, EverestError, StepTimeout, TransientDatabaseError
from everest.workflow import engine
from everest.workflow.definition import Definition
from everest.workflow.engine import Fenced, Forward, Go, Leave, Replay, StepContext, Ticket, Token
from everest.workflow.ports import TransactionFactory

log = logging.getLogger(__name__)

TRANSIENT_TRIES = 6
"""Inside one try of a step; waits 0.1 s to 3 s between them, so a deadlock is not felt and a restart of the
database is mostly outlived."""

MAX_PASSES = 20
"""DAG runs that `run_to_end` walks itself before it gives up: a document that keeps changing is not posted."""


def run_step(
    definition: Definition,
    ticket: Ticket,
    step: str,
    open_transaction: TransactionFactory,
    is_last_try: bool,
    timeout_error: type[BaseException] = TimeoutError,
) -> Forward | Replay | Leave:
    """Runs the step if it is this ticket's to run.

    Raises what the handler raised after recording it when it is permanent or this is the last try (the caller must
    not try again: `is_recorded` tells), else re-raises it for another try. Raises Fenced when a newer try owns it.
    """
    tokens: list[Token] = []
    try:
        for attempt in _transient_retries():
            with attempt:
                return _once(definition, ticket, step, open_transaction, tokens)
    except Fenced as fenced:
        log.warning("step %s: %s", step, fenced.message)
        raise
    except timeout_error as error:
        late = StepTimeout(f"langkah {step} melewati batas waktu {definition.step(step).timeout or ''}".rstrip())
        _record(definition, tokens, open_transaction, late, is_last_try)
        raise late from error
    except Exception as error:
        permanent = isinstance(error, EverestError) and not error.retryable
        _record(definition, tokens, open_transaction, error, permanent or is_last_try)
        raise
    raise AssertionError("unreachable: the retry loop returns or raises")


def is_recorded(error: BaseException) -> bool:
    """Whether `run_step` wrote this failure into the rows, so that trying again is nobody's business but a person's."""
    return bool(getattr(error, "everest_recorded", False))


def _transient_retries() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(TransientDatabaseError),
        wait=wait_random_exponential(multiplier=0.1, max=3),
        stop=stop_after_attempt(TRANSIENT_TRIES),
        before_sleep=lambda state: log.warning("transient database error, trying again: %s", _error_of(state)),
        reraise=True,
    )


def _error_of(state: Any) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _once(
    definition: Definition, ticket: Ticket, step: str, open_transaction: TransactionFactory, tokens: list[Token]
) -> Forward | Replay | Leave:
    # A lost COMMIT is answered here: the next pass finds the record of the one that committed and replays it.
    with open_transaction() as tx:
        start = engine.begin(tx, definition, ticket, step)
    if not isinstance(start, Go):
        return start
    tokens.append(start.token)
    with open_transaction() as tx:
        context = StepContext(
            tx, tx.now, start.token.run_id, step, start.token.attempt, ticket.shadow_id, ticket.dag_run_id, ticket.n
        )
        output = definition.step(step).handler(start.state, context)
        return engine.settle(tx, definition, start.token, output)


def _record(
    definition: Definition,
    tokens: list[Token],
    open_transaction: TransactionFactory,
    error: Exception,
    is_final: bool,
) -> None:
    """Writes a final failure. A store that is away leaves it to the reconciler, which finds a dead DAG run."""
    if not is_final or not tokens:
        return
    for attempt in _transient_retries():
        with attempt, open_transaction() as tx:
            try:
                engine.fail(tx, definition, tokens[-1], error)
            except Fenced as fenced:
                log.warning("the failure is not this try's to record: %s", fenced.message)
                return
    error.everest_recorded = True  # type: ignore[attr-defined]


def run_to_end(definition: Definition, ticket: Ticket, open_transaction: TransactionFactory) -> str:
    """Walks a workflow that the caller took over to its end, jumps back included, and returns why it stopped.

    Raises what a step raised, recorded. Raises Conflict when the workflow keeps jumping back.
    """
    for _ in range(MAX_PASSES):
        for step in definition.steps:
            result = run_step(definition, ticket, step.name, open_transaction, is_last_try=True)
            if isinstance(result, Leave):
                break
        with open_transaction() as tx:
            shadow = tx.runs.shadow(ticket.shadow_id)
            if shadow is None or shadow.worker_status != "PENDING":
                return result.reason if isinstance(result, Leave) else "done"
            ticket = engine.take_over(tx, definition, ticket.shadow_id)
    raise Conflict(f"{definition.name} went back {MAX_PASSES} times; the document is being changed while it is posted")
