"""Steps that run several functions: the branches of a parallel group, and the items of a for_each.

Each branch and each item has its own record, attempts and commit; the last commit that the group waits for moves the
pointer, under the run's lock.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from everest.errors import DocumentRefused, EverestError
from everest.words import say
from everest.workflow import definition as d
from everest.workflow import endings, pointer, questions, state
from everest.workflow.definition import Definition
from everest.workflow.handlers import NEXT_STEP, RESPONSE
from everest.workflow.ports import Transaction
from everest.workflow.records import ItemCounts, Run, Standing
from everest.workflow.ticket import Fenced, Forward, ItemFailed, ItemFenced, Leave, Replay, Token

_LEFT = "left"
"""Among the run's counters: the newest DAG run that a branch or a slot has left."""


def leave_paused(tx: Transaction, run: Run, step: d.Step, branch: str) -> Leave:
    """Nothing further starts in a paused run. What is at work beside this branch or slot may still finish and commit,
    so the run is parked by whoever leaves the step last, and what has left is remembered: in this DAG run it does not
    come again, nor does what stands behind it. The caller holds the run's lock."""
    if tx.runs.others_at_work(run, step.name, branch):
        if isinstance(step, d.ForEach):
            tx.runs.release_items(run, step.name, branch)
        run.counters[_LEFT] = run.n
        tx.runs.save(run)
        return Leave(pointer.paused())
    return pointer.park(tx, run, pointer.paused())


def has_left(run: Run) -> bool:
    """Whether a branch or a slot has left the run's present DAG run under a pause that may be over by now."""
    return bool(run.counters.get(_LEFT) == run.n)


# ---------------------------------------------------------------------------------------------------- parallel


def settle_branch(
    tx: Transaction, definition: Definition, run: Run, step: d.Parallel, token: Token, output: dict[str, Any] | None
) -> Forward | Leave | Replay:
    """Merges one branch; the last one moves the pointer. Raises DocumentRefused when two branches return one key."""
    questions.refuse(step.name, output, "engine.a_branch", name=token.branch)
    for control in (NEXT_STEP, RESPONSE):
        if (output or {}).get(control) is not None:  # which branch commits last is chance
            text = say("en", "engine.branch_controls", step=step.name, branch=token.branch, name=control)
            raise DocumentRefused(text, code=500)
    public = state.public_part(output or {})
    others = [one for one in tx.runs.branches(run.id, step.name, run.visit) if one.branch not in ("", token.branch)]
    done = [one for one in others if one.status == "completed"]
    if step.on_conflict == "fail":
        for other in done:
            shared = sorted(public.keys() & (other.output or {}).keys())
            if shared:
                names = dict(zip(("one", "other"), sorted((token.branch, other.branch)), strict=True))
                text = say("en", "engine.branches_share", step=step.name, keys=shared, **names)
                raise DocumentRefused(text, code=500)
    state.merge(run, definition, public)
    tx.runs.finish_step(run, step.name, token.branch, "completed", public, None)
    tx.runs.add_event(run, "branch_completed", step.name, token.attempt, {"branch": token.branch})
    state.check_budgets(run, definition)
    if len(done) + 1 < len(step.branches):
        if run.status == "paused":
            return leave_paused(tx, run, step, token.branch)
        if has_left(run) and not tx.runs.others_at_work(run, step.name, token.branch):
            pointer.announce_next(tx, run)
            return Leave(f"a branch left under a pause; it runs in DAG run {run.dag_run_id}")
        tx.runs.save(run)
        return Replay()
    return pointer.advance(tx, definition, run, step, token, {})


# ---------------------------------------------------------------------------------------------------- for_each


@dataclass(frozen=True)
class Claimed:
    """An item that this slot works on."""

    index: int
    attempt: int
    item: Any


def expand(tx: Transaction, definition: Definition, run: Run, step: d.ForEach, token: Token) -> Forward | Leave | None:
    """Snapshots the items at the first visit of any slot. Returns a result when there is nothing to run."""
    if not tx.runs.has_items(run, step.name):
        items = run.state.get(step.items_key)
        if not isinstance(items, list):
            found = {"name": repr(step.items_key), "type": type(items).__name__}
            raise DocumentRefused(say("en", "engine.not_a_list", step=step.name, **found))
        if not items and step.mode != "all":
            raise DocumentRefused(say("en", "engine.no_items", step=step.name, mode=step.mode))
        if step.quorum is not None and step.quorum > len(items):
            raise DocumentRefused(say("en", "engine.quorum", step=step.name, needed=step.quorum, n=len(items)))
        state.count(run, definition, "for_each_items", len(items))
        tx.runs.add_items(run, step.name, items)
        tx.runs.add_event(run, "expanded", step.name, token.attempt, {"items": len(items)})
        if not items:
            return pointer.advance(tx, definition, run, step, token, _aggregate(tx, run, step, ItemCounts(0, 0, 0)))
        tx.runs.save(run)
    tx.runs.free_items(run, step.name, token.branch)
    return None


def is_settled(tx: Transaction, token: Token) -> bool:
    """Whether the step was completed by another slot since this one began: its work is not needed any more, and
    that is no failure."""
    standing, _ = tx.runs.standing(token.run_id, token.step, token.branch)
    return standing is None or (standing.current_step, standing.visit) != (token.step, token.visit)


def claim(tx: Transaction, step: d.ForEach, token: Token, is_fresh: bool = False) -> Claimed | Leave | None:
    """The next item for this slot; None when all are done or in other hands, or the step is over. is_fresh: not one
    that failed in this slot. Raises Fenced when a newer try of this slot has begun."""
    run, newest = tx.runs.standing(token.run_id, step.name, token.branch)
    if run is not None and run.status == "paused":
        return _leave_paused_items(tx, step, token)
    if run is None or not _stands_at(run, token) or run.status != "running":
        return None
    if newest is None or newest.attempt != token.attempt:
        raise Fenced("a newer try of this slot has begun")
    found = tx.runs.claim_item(run.id, step.name, token.visit, token.branch, token.n, is_fresh)
    return None if found is None else Claimed(found.index, found.attempt, found.item)


def _leave_paused_items(tx: Transaction, step: d.ForEach, token: Token) -> Leave | None:
    run = tx.runs.lock(token.run_id)
    if run.status != "paused" or not _stands_at(run, token):
        return None
    return leave_paused(tx, run, step, token.branch)


def _stands_at(run: Run | Standing, token: Token) -> bool:
    place = (run.dag_run_id, run.current_step, run.visit)
    return place == (token.dag_run_id, token.step, token.visit)


def finish_item(
    tx: Transaction, run: Standing, step: d.ForEach, claimed: Claimed, output: dict[str, Any] | None
) -> bool:
    """Records an item that succeeded. Whether that settles the step. Raises ItemFenced."""
    questions.refuse(step.name, output, "engine.an_item", n=claimed.index)
    public = state.public_part(output or {})
    if not tx.runs.finish_item(run, step.name, claimed.index, claimed.attempt, "succeeded", public, None):
        raise _fenced(step, claimed)
    if step.mode == "all":
        return tx.runs.all_succeeded(run, step.name)
    counts = tx.runs.count_items(run, step.name)
    return counts.succeeded >= _needed(step, counts)


def settle(tx: Transaction, definition: Definition, run: Run, step: d.ForEach, token: Token) -> Forward | Leave:
    """Moves the pointer past a step whose items are settled."""
    aggregate = _aggregate(tx, run, step, tx.runs.count_items(run, step.name))
    reduced: dict[str, Any] = {}
    if step.reducer is not None:
        told = copy.deepcopy({**state.public_part(run.state), **aggregate})  # what it does to them would be kept
        reduced = step.reducer(told, pointer.context(tx, run)) or {}
    return _going_on(tx, run, pointer.advance(tx, definition, run, step, token, {**aggregate, **reduced}))


def _going_on(tx: Transaction, run: Run, result: Forward | Leave) -> Forward | Leave:
    """Airflow has skipped what stands behind a slot that left: the next DAG run goes on there."""
    if not isinstance(result, Forward) or not has_left(run):
        return result
    pointer.announce_next(tx, run)
    return Leave(f"a slot left under a pause; {result.next_step} runs in DAG run {run.dag_run_id}")


def fail_item(
    tx: Transaction, definition: Definition, run: Run, step: d.ForEach, claimed: Claimed, error: Exception, tries: int
) -> ItemFailed | None:
    """Puts the item back for another try, or records its failure. Returns an error when the whole step has failed."""
    told = endings.diagnosis(error)
    detail: dict[str, Any] = {name: value for name, value in told.items() if name != "trace"}
    permanent = isinstance(error, EverestError) and not error.retryable
    is_last = permanent or tries >= definition.options.max_attempts
    status = "failed" if is_last else "pending"
    if not tx.runs.finish_item(run, step.name, claimed.index, claimed.attempt, status, None, detail):
        raise _fenced(step, claimed)
    tx.runs.add_event(run, "failed", step.name, claimed.attempt, {**told, "index": claimed.index})
    if not is_last:
        tx.runs.add_event(run, "retried", step.name, claimed.attempt, {**detail, "index": claimed.index})
        return None
    counts = tx.runs.count_items(run, step.name)
    if counts.total - counts.failed >= _needed(step, counts):
        return None
    failure = ItemFailed(say("id", "engine.item_failed", step=step.name, n=claimed.index, why=detail))
    failure.code = told["code"]
    return failure


def _needed(step: d.ForEach, counts: ItemCounts) -> int:
    return {"all": counts.total, "first_success": 1, "quorum": step.quorum or 1}[step.mode]


def _fenced(step: d.ForEach, claimed: Claimed) -> ItemFenced:
    return ItemFenced(f"item {claimed.index} of step {step.name} is in other hands")


def _aggregate(tx: Transaction, run: Run, step: d.ForEach, counts: ItemCounts) -> dict[str, Any]:
    items = tx.runs.items(run, step.name) if counts.total else []
    finished = [one for one in items if one.status == "succeeded"]
    return {
        step.result_key: {
            "mode": step.mode,
            "total": counts.total,
            "succeeded": counts.succeeded,
            "failed": counts.failed,
            "winner": tx.runs.first_success(run, step.name) if finished else None,
            "results": {str(one.index): one.output for one in finished},
            "failures": {str(one.index): one.error for one in items if one.status == "failed"},
        }
    }
