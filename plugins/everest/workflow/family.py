"""Runs that belong together: who waits for a run, and what is nested in it. Locked together, by ascending id; woken
when one of them ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from everest.workflow import waits
from everest.workflow.ports import Transaction
from everest.workflow.records import Run


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
    return _locked(tx, run_id, {run_id, *tx.runs.waiters(run_id)})


def lock_nested(tx: Transaction, run_id: int) -> tuple[list[Run], list[Run]]:
    """The same without the run itself and those that wait for it: the caller holds its lock."""
    _, nested, waiters = _locked(tx, run_id, {run_id})
    return nested, waiters


def _locked(tx: Transaction, run_id: int, first: set[int]) -> tuple[Run, list[Run], list[Run]]:
    todo = sorted(first)
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


def wake(tx: Transaction, waiters: Iterable[Run]) -> None:
    """A run has ended: those that waited for it go on where that decides their wait."""
    for waiter in waiters:
        waits.wake_if_decided(tx, waiter)
