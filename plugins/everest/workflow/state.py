"""The public state of a run: how a step's output merges into it, what is pruned from it, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everest.words import say
from everest.workflow import codec
from everest.workflow.definition import Definition, Repeat
from everest.workflow.records import Run
from everest.workflow.ticket import BudgetExceeded

_TRANSITIONS_BEFORE = "transitions_before"
"""Among the run's counters: how many there were when it last failed and went on."""
_ANEW = "anew"
"""The same: it has failed, and nothing was counted since."""


def public_part(values: dict[str, Any]) -> dict[str, Any]:
    """Keys that begin with `_` are control values; they never reach the public state."""
    return {key: value for key, value in values.items() if not key.startswith("_")}


def merge(run: Run, definition: Definition, output: dict[str, Any]) -> None:
    """Shallow, last writer wins, a None is stored. Remembers the writer of each key where pruning needs it."""
    run.state.update(output)
    if definition.options.prune_state_after is not None:
        writers = run.counters.setdefault("writers", {})
        writers.update(dict.fromkeys(output, run.transitions))


def prune(run: Run, definition: Definition) -> None:
    """Drops keys whose last writer lies too far back. The payload stays."""
    keep = definition.options.prune_state_after
    if keep is None:
        return
    writers = run.counters.setdefault("writers", {})
    for key in [key for key, written in writers.items() if written <= run.transitions - keep]:
        del writers[key]
        if key not in run.payload:
            run.state.pop(key, None)


def count_anew_from_here(run: Run) -> None:
    """The run fails. It goes on only if a person wants it to, and what earlier attempts have used bars no person: what
    is counted next is the first of its kind. Until then the counts stand as they are, to be looked at.

    Bytes are measured, not counted. How often a loop goes back is its own rule: its count stays until it is left.
    """
    run.counters[_ANEW] = True


def _begin_anew(run: Run) -> None:
    if run.counters.pop(_ANEW, False):
        run.counters |= {_TRANSITIONS_BEFORE: run.transitions, "for_each_items": 0, "started_workflows": 0}


def transitions_used(transitions: int, counters: Mapping[str, Any]) -> int:
    """Since the run began, or since it went on after a failure."""
    return transitions - int(counters.get(_TRANSITIONS_BEFORE, 0))


def count_transition(run: Run) -> None:
    _begin_anew(run)
    run.transitions += 1


def count(run: Run, definition: Definition, what: str, more: int) -> None:
    """Uses a budget. Raises BudgetExceeded when that is more than the definition allows."""
    _begin_anew(run)
    used = int(run.counters.get(what, 0)) + more
    run.counters[what] = used
    allowed = getattr(definition.options, f"max_{what}")
    if allowed is not None and used > allowed:
        told = {"workflow": run.workflow, "name": what, "used": used, "most": allowed}
        raise BudgetExceeded(say("en", "engine.budget", **told))


def check_budgets(run: Run, definition: Definition) -> None:
    """After a step's merge. Raises BudgetExceeded: the step is rolled back, the run fails, nobody tries again."""
    options = definition.options
    used = transitions_used(run.transitions, run.counters)
    if options.max_transitions is not None and used > options.max_transitions:
        told = {"workflow": run.workflow, "used": used, "most": options.max_transitions}
        raise BudgetExceeded(say("en", "engine.transitions", **told))
    if options.max_state_bytes is not None:
        size = len(codec.dumps(run.state).encode())
        if size > options.max_state_bytes:
            told = {"workflow": run.workflow, "used": size, "most": options.max_state_bytes}
            raise BudgetExceeded(say("en", "engine.state_bytes", **told))


def forget_left_loops(run: Run, definition: Definition, pointer: int) -> None:
    """The count of a loop starts anew once the pointer stands outside of it."""
    loops = run.counters.get("loops", {})
    for name in list(loops):
        step = definition.step(name)
        if isinstance(step, Repeat) and not definition.index(step.target) <= pointer <= definition.index(name):
            del loops[name]
