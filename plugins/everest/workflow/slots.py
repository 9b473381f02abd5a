"""One slot of a for_each: claims one item after another until none is left, each with its own tries and commit.

An item that failed is tried again after a pause, as a step is, and others come before it; what no try can help, the
trouble of a moment with the database, is outlived in place and costs none.
"""

from __future__ import annotations

import pickle  # nosec B403
import time
from collections.abc import Callable
from typing import Any

from everest.errors import TransientDatabaseError
from everest.workflow import again, codec, engine, fanout, state
from everest.workflow import definition as d
from everest.workflow.definition import Definition
from everest.workflow.ports import TransactionFactory
from everest.workflow.ticket import Fenced, Go, ItemFailed, ItemFenced, Leave, Replay, Result


class _OfTheItem(Exception):
    """An item's own failure, on its way to its record."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Slot:
    """context: what a handler gets, made of a transaction, a token and an item. rest: between two tries of an item."""

    def __init__(
        self,
        definition: Definition,
        step: d.ForEach,
        start: Go,
        open_transaction: TransactionFactory,
        context: Callable[..., Any],
        rest: again.Rest,
    ) -> None:
        self._definition, self._step = definition, step
        self._token = start.token
        # Each item is given a state of its own; a state may be large, and bytes of our own are its fastest copy.
        self._state = pickle.dumps(state.public_part(start.state))
        self._open, self._context, self._rest = open_transaction, context, rest
        self._tries: dict[int, int] = {}
        self._due: dict[int, float] = {}  # when what failed here may be tried again, on the monotonic clock

    def run(self) -> Result:
        """Claims one item after another until none is left for this slot."""
        try:
            return self._items()
        except Fenced:
            if again.when_transient(self._is_settled):
                return Replay()
            raise

    def _is_settled(self) -> bool:
        with self._open() as tx:
            return fanout.is_settled(tx, self._token)

    def _items(self) -> Result:
        nothing_to_run = again.when_transient(self._expand)
        if nothing_to_run is not None:
            return nothing_to_run
        while True:
            claimed = self._next()
            if claimed is None:
                return Replay()
            if isinstance(claimed, Leave):
                return claimed
            self._due.pop(claimed.index, None)
            self._tries[claimed.index] = self._tries.get(claimed.index, 0) + 1
            settled = self._item(claimed, self._tries[claimed.index])
            if settled is not None:
                return settled

    def _expand(self) -> Result | None:
        with self._open() as tx:
            run, waiters = engine.owned(tx, self._definition, self._token)
            result = fanout.expand(tx, self._definition, run, self._step, self._token)
            return None if result is None else engine.ended(tx, run, waiters, result)

    def _next(self) -> fanout.Claimed | Leave | None:
        """What nobody has tried yet comes before what failed here, which has to wait for its time. Nothing is claimed
        meanwhile: a pause of the run need not wait for it."""
        if self._due:
            claimed = again.when_transient(lambda: self._claim(is_fresh=True))
            if claimed is not None:
                return claimed
            first = min(self._due)  # the one that the claim will give
            self._rest(max(0.0, self._due[first] - time.monotonic()))
        return again.when_transient(lambda: self._claim(is_fresh=False))

    def _claim(self, is_fresh: bool) -> fanout.Claimed | Leave | None:
        with self._open() as tx:
            return fanout.claim(tx, self._step, self._token, is_fresh)

    def _item(self, claimed: fanout.Claimed, tries: int) -> Result | None:
        try:
            return again.when_transient(lambda: self._item_once(claimed))
        except ItemFenced:
            return None
        except (_OfTheItem, TransientDatabaseError) as problem:
            error = problem.error if isinstance(problem, _OfTheItem) else problem
            self._record(claimed, error, tries)
            return None

    def _record(self, claimed: fanout.Claimed, error: Exception, tries: int) -> None:
        """Raises ItemFailed, recorded, when this failure is the step's."""

        def write() -> ItemFailed | None:
            with self._open() as tx:
                return engine.fail_item(tx, self._definition, self._step, self._token, claimed, error, tries)

        try:
            failure = again.when_transient(write)
        except ItemFenced:
            return
        self._due[claimed.index] = time.monotonic() + again.rest_s(tries)
        if failure is not None:
            failure.everest_recorded = True  # type: ignore[attr-defined]
            raise failure from error

    def _item_once(self, claimed: fanout.Claimed) -> Result | None:
        """Raises _OfTheItem for what its handler raised. What the step raises, such as a broken budget, a reducer's
        error or an unknown `_next_step`, is no item's failure and would come back with the next item."""
        is_the_items = True
        try:
            with self._open() as tx:
                context = self._context(tx, self._token, item=claimed.item, index=claimed.index)
                output = self._step.handler(pickle.loads(self._state), context)  # nosec B301
                codec.dumps(output)  # what cannot be stored is its mistake, too
                is_the_items = False
                return engine.settle_item(tx, self._definition, self._step, self._token, claimed, output)
        except TransientDatabaseError:
            raise
        except Exception as error:
            if is_the_items:
                raise _OfTheItem(error) from error
            raise
