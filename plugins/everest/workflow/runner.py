"""One try of one step against a real store: begin, work, settle; transient database errors are tried again here,
bounded, and a failure that is final is recorded in a transaction of its own.

Airflow's operator, `python -m everest post` and `run_inline` all call `run_step`; none adds rules of its own.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from everest.errors import Conflict, EverestError, StepTimeout
from everest.words import say, span
from everest.workflow import again, deployment, engine, state
from everest.workflow import definition as d
from everest.workflow.definition import Definition, Step
from everest.workflow.ports import Transaction, TransactionFactory
from everest.workflow.slots import Slot
from everest.workflow.ticket import (
    BetweenTransactions,
    Fenced,
    Go,
    ItemFailed,
    Leave,
    Overtaken,
    Replay,
    Result,
    StepContext,
    Ticket,
    Token,
)

log = logging.getLogger(__name__)

MAX_PASSES = 20
"""DAG runs that `run_to_end` walks itself before it gives up: a document that keeps changing is not posted."""


def run_step(
    definition: Definition,
    ticket: Ticket,
    step: str,
    open_transaction: TransactionFactory,
    is_last_try: bool,
    timeout_error: type[BaseException] = TimeoutError,
    branch: str = "",
    deployed: engine.Deployed = deployment.nothing,
    rest: again.Rest = again.rest,
) -> Result:
    """Runs the step (or one branch, or one slot of a for_each) if it is this ticket's to run.

    Raises what the handler raised after recording it when it is permanent or this is the last try (the caller must
    not try again: `is_recorded` tells), else re-raises it for another try. Raises Fenced when a newer try owns it.
    """
    return run_task(definition, ticket, [step], open_transaction, is_last_try, timeout_error, branch, deployed, rest)


def run_task(
    definition: Definition,
    ticket: Ticket,
    steps: Sequence[str],
    open_transaction: TransactionFactory,
    is_last_try: bool,
    timeout_error: type[BaseException] = TimeoutError,
    branch: str = "",
    deployed: engine.Deployed = deployment.nothing,
    rest: again.Rest = again.rest,
) -> Result:
    """`run_step` for each step of a task, one after another. Where they are several (a fused task), they are plain
    ones, and a step that settles begins the next one in its own commit: one commit per step instead of two. rest: what
    is done between two tries of an item."""
    result: Result | Go = Replay()
    for step, following in zip_longest(steps, steps[1:]):
        begun = result if isinstance(result, Go) else None
        one = _Try(definition, ticket, step, branch, open_transaction, deployed, rest, begun, following)
        result = _tried(one, is_last_try, timeout_error)
        if isinstance(result, Leave):
            return result
    assert not isinstance(result, Go), "the last step of a task begins no other"
    return result


def _tried(one: _Try, is_last_try: bool, timeout_error: type[BaseException]) -> Result | Go:
    step = one.step
    try:
        return one.run()
    except Fenced as fenced:
        log.warning("step %s: %s", step.name, fenced.message)
        raise
    except timeout_error as error:
        limit = span(step.timeout) if step.timeout else "–"
        late = StepTimeout(say("id", "engine.timeout", step=step.name, limit=limit))
        one.record(late, is_last_try)
        raise late from error
    except Exception as error:
        permanent = isinstance(error, ItemFailed) or (isinstance(error, EverestError) and not error.retryable)
        one.record(error, permanent or is_last_try)
        raise


def is_recorded(error: BaseException) -> bool:
    """Whether `run_step` wrote this failure into the rows, or found it not its to write: trying again is nobody's
    business but a person's."""
    return bool(getattr(error, "everest_recorded", False))


class _Try:
    """One try: what it is about, and the newest token it was given.

    begun: the start that the step before it in the same task has committed already. following: the step that this one
    is to begin when it settles.
    """

    def __init__(
        self,
        definition: Definition,
        ticket: Ticket,
        step: str,
        branch: str,
        open_transaction: TransactionFactory,
        deployed: engine.Deployed,
        rest: again.Rest,
        begun: Go | None = None,
        following: str | None = None,
    ) -> None:
        self._definition, self._ticket, self._branch = definition, ticket, branch
        self.step: Step = definition.step(step)
        self._begun, self._following = begun, following
        self._open = open_transaction
        self._deployed, self._rest = deployed, rest
        self._token: Token | None = None if begun is None else begun.token

    def run(self) -> Result | Go:
        while True:
            try:
                if isinstance(self.step, d.ForEach):
                    return self._slot(self.step)
                return again.when_transient(self._once)
            except Overtaken as overtaken:  # each question has one answer, so this ends
                log.info("step %s: %s", self.step.name, overtaken.message)

    def _slot(self, step: d.ForEach) -> Result:
        """Each item is tried again for itself, so the slot is not."""
        start = again.when_transient(self._begin)
        if not isinstance(start, Go):
            return start
        self._token = start.token
        return Slot(self._definition, step, start, self._open, self._context, self._rest).run()

    def _once(self) -> Result | Go:
        # A lost COMMIT is answered here: the next pass finds the record of the one that committed and replays it.
        start, self._begun = self._begun or self._begin(), None
        if not isinstance(start, Go):
            return start
        self._token = start.token
        match self.step:
            case d.Stream():
                return self._stream(self.step, start)
            case d.Then() | d.Parallel():
                return self._handler(start)
            case _:
                with self._open() as tx:
                    return engine.enter(tx, self._definition, start.token)

    def _begin(self) -> Go | Replay | Leave:
        with self._open() as tx:
            return engine.begin(tx, self._definition, self._ticket, self.step.name, self._branch, self._deployed)

    def _handler(self, start: Go) -> Result | Go:
        handler = engine.handler_of(self.step, self._branch)
        with self._open() as tx:
            output = handler(state.public_part(start.state), self._context(tx, start.token))
            if self._following is not None:
                return engine.settle_and_begin(tx, self._definition, start.token, output, self._following, start.run)
            return engine.settle(tx, self._definition, start.token, output, start.run)

    def _context(self, tx: Transaction, token: Token, **item: Any) -> StepContext:
        return StepContext(
            tx=tx,
            workflow_id=token.run_id,
            step=token.step,
            visit=token.visit,
            attempt=token.attempt,
            shadow_id=self._ticket.shadow_id,
            dag_run_id=token.dag_run_id,
            n=token.n,
            branch=token.branch,
            decision=token.decision,
            **item,
        )

    # -------------------------------------------------------------------------------------------------- stream

    def _stream(self, step: d.Stream, start: Go) -> Result:
        """Each chunk is committed as it is yielded; a retry hands the stored ones to the generator."""
        token = start.token
        with self._open() as tx:
            chunks = tx.runs.chunks(token.run_id, step.name, token.visit)
            context = replace(self._context(tx, token), tx=BetweenTransactions(tx.now))
        given = copy.deepcopy(state.public_part(start.state))  # on_complete is not to see what the generator does to it
        for chunk in step.handler(given, context, list(chunks)):
            with self._open() as tx:
                run, _ = engine.owned(tx, self._definition, token)
                tx.runs.add_chunk(run, step.name, chunk)
            chunks.append(chunk)
        with self._open() as tx:
            output = step.on_complete(chunks, state.public_part(start.state))
            run, _ = engine.owned(tx, self._definition, token)
            tx.runs.drop_chunks(run, step.name)
            return engine.settle(tx, self._definition, token, output)

    # ------------------------------------------------------------------------------------------------- failure

    def record(self, error: Exception, is_final: bool) -> None:
        """Writes a final failure. A store that is away leaves it to the reconciler, which finds a dead DAG run."""
        token = self._token
        if token is None or is_recorded(error):
            return
        if not is_final:
            self._note(error, token)
            return

        def write() -> None:
            with self._open() as tx:
                engine.fail(tx, self._definition, token, error)

        try:
            again.when_transient(write)
        except Fenced as fenced:
            # Recorded already (the answer was lost), or a newer try or DAG run decides: nobody is to try again for us.
            log.warning("the failure is not this try's to record: %s", fenced.message)
        except Overtaken as overtaken:
            log.warning("the failure is not recorded: %s", overtaken.message)
            return
        error.everest_recorded = True  # type: ignore[attr-defined]

    def _note(self, error: Exception, token: Token) -> None:
        """A try that another one follows leaves a line in the run's history, if that can be had at once."""
        try:
            with self._open() as tx:
                engine.failed_try(tx, self._definition, token, error)
        except EverestError as problem:
            log.warning("the failed try is not in the run's history: %s", problem.message)


def run_to_end(definition: Definition, ticket: Ticket, open_transaction: TransactionFactory) -> str:
    """Walks a workflow that the caller took over to its end, jumps back included, and returns why it stopped.

    Raises what a step raised, recorded. Raises Conflict when the workflow keeps jumping back.
    """
    for _ in range(MAX_PASSES):
        result: Result = Replay()
        for steps, branch in tasks_of(definition):
            result = run_task(definition, ticket, steps, open_transaction, is_last_try=True, branch=branch)
            if isinstance(result, Leave):
                break
        following = again.when_transient(lambda: _next_pass(definition, ticket, open_transaction))  # noqa: B023
        if following is None:
            return result.reason if isinstance(result, Leave) else "done"
        ticket = following
    raise Conflict(say("en", "engine.passes", workflow=definition.name, n=MAX_PASSES))


def _next_pass(definition: Definition, ticket: Ticket, open_transaction: TransactionFactory) -> Ticket | None:
    """None when nothing was announced."""
    with open_transaction() as tx:
        shadow = tx.runs.shadow(ticket.shadow_id)
        if shadow is None or shadow.worker_status != "PENDING":
            return None
        return engine.take_over(tx, definition, ticket.shadow_id)


def tasks_of(definition: Definition) -> list[tuple[list[str], str]]:
    """The tasks of one DAG run, in an order that works one after another: the names of their steps, and the branch.
    Each branch of a parallel group is a task; a for_each has one slot here."""
    tasks: list[tuple[list[str], str]] = []
    for steps in definition.grouped():
        names = [step.name for step in steps]
        match steps[0]:
            case d.Parallel(branches=branches):
                tasks += [(names, branch.name) for branch in branches]
            case d.ForEach():
                tasks.append((names, "0"))
            case _:
                tasks.append((names, ""))
    return tasks
