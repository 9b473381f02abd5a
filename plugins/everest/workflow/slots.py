"""One slot of a for_each: claims one item after another until none is left, each with its own tries and commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from everest.errors import TransientDatabaseError
from everest.workflow import codec, engine, fanout, state
from everest.workflow import definition as d
from everest.workflow.definition import Definition
from everest.workflow.ports import TransactionFactory
from everest.workflow.ticket import Fenced, Go, ItemFailed, ItemFenced, Leave, Replay, Result

T = TypeVar("T")


class Again(Protocol):
    """Does what is given to it, and again after a transient database error, bounded."""

    def __call__(self, work: Callable[[], T], /) -> T: ...


class _OfTheItem(Exception):
    """An item's own failure, on its way to its record."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Slot:
    """context: what a handler gets, made of a transaction, a token and an item."""

    def __init__(
        self,
        definition: Definition,
        step: d.ForEach,
        start: Go,
        open_transaction: TransactionFactory,
        again: Again,
        context: Callable[..., Any],
    ) -> None:
        self._definition, self._step = definition, step
        self._token, self._state = start.token, start.state
        self._open, self._again, self._context = open_transaction, again, context

    def run(self) -> Result:
        """Claims one item after another until none is left for this slot."""
        try:
            return self._items()
        except Fenced:
            with self._open() as tx:
                if fanout.is_settled(tx, self._token):
                    return Replay()
            raise

    def _items(self) -> Result:
        with self._open() as tx:
            run, waiters = engine.owned(tx, self._definition, self._token)
            result = fanout.expand(tx, self._definition, run, self._step, self._token)
            if result is not None:
                return engine.ended(tx, run, waiters, result)
        tries: dict[int, int] = {}
        while True:
            claimed = self._again(self._claim)
            if claimed is None:
                return Replay()
            if isinstance(claimed, Leave):
                return claimed
            tries[claimed.index] = tries.get(claimed.index, 0) + 1
            settled = self._item(claimed, tries[claimed.index])
            if settled is not None:
                return settled

    def _claim(self) -> fanout.Claimed | Leave | None:
        with self._open() as tx:
            return fanout.claim(tx, self._step, self._token)

    def _item(self, claimed: fanout.Claimed, tries: int) -> Result | None:
        try:
            return self._again(lambda: self._item_once(claimed))
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
            failure = self._again(write)
        except ItemFenced:
            return
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
                output = self._step.handler(state.public_part(self._state), context)
                codec.dumps(output)  # what cannot be stored is its mistake, too
                is_the_items = False
                return engine.settle_item(tx, self._definition, self._step, self._token, claimed, output)
        except TransientDatabaseError:
            raise
        except Exception as error:
            if is_the_items:
                raise _OfTheItem(error) from error
            raise
