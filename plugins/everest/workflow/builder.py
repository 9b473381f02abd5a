"""Describing a workflow: `workflow("report").then(fetch).wait_for_approval().then(publish).build()`.

Each call adds a step or sets an option; `build()` checks everything at once and freezes it. Every mistake has a
sentence that names its step.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from everest.errors import DefinitionError
from everest.workflow import definition as d
from everest.workflow.definition import Branch, Definition, Handler, Mode, Options, Priority, State, Step

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")
_VERSION = re.compile(r"[A-Za-z0-9._-]{1,40}")


class Builder:
    """Collects steps and options. All methods return the builder itself."""

    def __init__(self, name: str, version: str, doc: str, dag_id: str | None) -> None:
        self._name, self._version, self._doc, self._dag_id = name, version, doc, dag_id or name
        self._steps: list[Step] = []
        self._options = Options()

    # -------------------------------------------------------------------------------------------------- steps

    def then(
        self,
        handler: Handler,
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """A function; the step's name is the function's unless given."""
        return self._add(
            d.Then(name=name or _own_name(handler), handler=handler, compensate_with=compensate_with, timeout=timeout)
        )

    def parallel(
        self,
        handlers: Sequence[Handler] | Mapping[str, Handler],
        name: str | None = None,
        on_conflict: Literal["fail", "last"] = "fail",
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """Functions that run at once; all must succeed, each merges its output when it commits."""
        named = handlers.items() if isinstance(handlers, Mapping) else [(_own_name(one), one) for one in handlers]
        branches = tuple(Branch(branch, handler) for branch, handler in named)
        return self._add(
            d.Parallel(
                name=name or self._numbered("parallel"),
                branches=branches,
                on_conflict=on_conflict,
                compensate_with=compensate_with,
                timeout=timeout,
            )
        )

    def for_each(
        self,
        items_key: str,
        handler: Handler,
        result_key: str | None = None,
        mode: Mode = "all",
        quorum: int | None = None,
        reducer: Handler | None = None,
        name: str | None = None,
        concurrency: int = 8,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """`handler(state, step)` for each item of state[items_key]; it finds its own in step.item and step.index."""
        own = name or _own_name(handler)
        return self._add(
            d.ForEach(
                name=own,
                items_key=items_key,
                handler=handler,
                result_key=result_key or own,
                mode=mode,
                quorum=quorum,
                reducer=reducer,
                concurrency=concurrency,
                compensate_with=compensate_with,
                timeout=timeout,
            )
        )

    def start_workflows(
        self,
        items_key: str,
        workflow: Definition,
        result_key: str = "started_workflow_ids",
        payload_key: str = "item",
        inherit_state: bool = True,
        group_key: str | None = None,
        name: str | None = None,
        compensate_with: Handler | None = None,
    ) -> Builder:
        """One independent workflow per item; their ids land under result_key."""
        return self._add(
            d.StartWorkflows(
                name=name or self._numbered("start_workflows"),
                items_key=items_key,
                workflow=workflow,
                result_key=result_key,
                payload_key=payload_key,
                inherit_state=inherit_state,
                group_key=group_key,
                compensate_with=compensate_with,
            )
        )

    start_agents = start_workflows

    def repeat_until(self, target: str, state_key: str | None = None, expected: Any = True, **options: Any) -> Builder:
        """Back to `target` until the state says so. Options: condition, max_iterations, name."""
        return self._repeat(target, True, state_key, expected, **options)

    def repeat_while(self, target: str, state_key: str | None = None, expected: Any = True, **options: Any) -> Builder:
        """Back to `target` while the state says so. Options: condition, max_iterations, name."""
        return self._repeat(target, False, state_key, expected, **options)

    def _repeat(
        self,
        target: str,
        until: bool,
        state_key: str | None,
        expected: Any,
        condition: Callable[[State], bool] | None = None,
        max_iterations: int | None = None,
        name: str | None = None,
    ) -> Builder:
        return self._add(
            d.Repeat(
                name=name or self._numbered("repeat"),
                target=target,
                until=until,
                state_key=state_key,
                expected=expected,
                condition=condition,
                max_iterations=max_iterations,
            )
        )

    def run_workflow(
        self,
        workflow: Definition,
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """A nested run: it gets the public state, and its own merges here when it has completed."""
        own = name or workflow.name
        return self._add(d.RunWorkflow(name=own, workflow=workflow, compensate_with=compensate_with, timeout=timeout))

    def delay(
        self, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0, name: str | None = None
    ) -> Builder:
        """Waits that long; zero goes straight on."""
        duration = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        return self._add(d.Delay(name=name or self._numbered("delay"), duration=duration))

    def wait_for_signal(self, signal: str, name: str | None = None, **options: Any) -> Builder:
        """One signal. Options: result_key, match_payload, correlation_key, timeout, on_timeout, compensate_with."""
        return self._wait("signal", (signal,), name or f"wait_for_{signal}", **options)

    def wait_for_signals(
        self, signals: Sequence[str], mode: Mode = "all", name: str | None = None, **options: Any
    ) -> Builder:
        """Several signals, all or any of them; the result is a map by name."""
        own = name or self._numbered("wait_for_signals")
        return self._wait("signal", tuple(signals), own, mode=mode, many=True, **options)

    def wait_for_approval(self, signal: str = "approval", name: str | None = None, **options: Any) -> Builder:
        """A person says yes; a no fails the run (403)."""
        return self._wait("approval", (signal,), name or self._numbered("wait_for_approval"), **options)

    def wait_for_input(self, signal: str = "input", name: str | None = None, **options: Any) -> Builder:
        """A person fills something in."""
        return self._wait("input", (signal,), name or self._numbered("wait_for_input"), **options)

    def wait_for_decision(self, signal: str = "decision", name: str | None = None, **options: Any) -> Builder:
        """A person approves or rejects; either way the run goes on, with the outcome under result_key."""
        return self._wait("decision", (signal,), name or self._numbered("wait_for_decision"), **options)

    def _wait(self, kind: d.SignalKind, names: tuple[str, ...], own: str, **options: Any) -> Builder:
        if kind != "signal":
            options.setdefault("result_key", kind)
        return self._add(d.WaitForSignals(name=own, names=names, kind=kind, **options))

    def wait_for_workflow(
        self, id_or_key: int | str, result_key: str = "workflow", name: str | None = None, **options: Any
    ) -> Builder:
        """Another workflow has completed; its public state lands under result_key."""
        own = name or self._numbered("wait_for_workflow")
        return self._add(d.WaitForWorkflows(name=own, source=id_or_key, result_key=result_key, many=False, **options))

    def wait_for_workflows(
        self,
        ids_or_key: Sequence[int] | str,
        mode: Mode = "all",
        quorum: int | None = None,
        result_key: str = "workflows",
        name: str | None = None,
        **options: Any,
    ) -> Builder:
        """Others have completed: all, any, or a quorum; the result is a map of public states by id."""
        source = ids_or_key if isinstance(ids_or_key, str) else tuple(ids_or_key)
        own = name or self._numbered("wait_for_workflows")
        return self._add(
            d.WaitForWorkflows(name=own, source=source, mode=mode, quorum=quorum, result_key=result_key, **options)
        )

    def wait_for_agents(self, ids_key: str = "started_workflow_ids", **options: Any) -> Builder:
        """The workflows that start_workflows started."""
        options.setdefault("result_key", "agent_results")
        return self.wait_for_workflows(ids_key, **options)

    def wait_for_workflow_group(self, group_key: str, **options: Any) -> Builder:
        """Every workflow that was started under this group key."""
        own = options.pop("name", None) or self._numbered("wait_for_workflow_group")
        options.setdefault("result_key", "group_results")
        return self._add(d.WaitForWorkflows(name=own, source=group_key, is_group=True, **options))

    def stream(
        self,
        handler: d.StreamHandler,
        on_complete: Callable[[list[Any], State], dict[str, Any] | None],
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """A generator whose chunks are stored as they come; on_complete makes the step's output of all of them."""
        return self._add(
            d.Stream(
                name=name or _own_name(handler),
                handler=handler,
                on_complete=on_complete,
                compensate_with=compensate_with,
                timeout=timeout,
            )
        )

    # ------------------------------------------------------------------------------------------------ options

    def version(self, version: str) -> Builder:
        """Changes when the definition means something else; runs on their way stay with theirs."""
        self._version = version
        return self

    def idempotency_key(self, template: str) -> Builder:
        """One run per key; the template is filled from the payload, e.g. "{gudang}-{bulan}"."""
        return self._set(key_template=template)

    def max_attempts(self, attempts: int) -> Builder:
        """How often a step, a branch or an item is tried before its failure is recorded."""
        return self._set(max_attempts=attempts)

    def on_queue(self, queue: str) -> Builder:
        """The Airflow task queue of all steps."""
        return self._set(queue=queue)

    def with_priority(self, priority: Priority) -> Builder:
        """The weight of all steps when workers are short."""
        return self._set(priority=priority)

    def on_failure(self, handler: d.FailureHandler) -> Builder:
        """Runs in the transaction that records a failure."""
        return self._set(on_failure=handler)

    def on_cancel(self, handler: Handler) -> Builder:
        """Runs after a cancel, behind all compensations, with the public state."""
        return self._set(on_cancel=handler)

    def compensate_on_failure(self) -> Builder:
        """A failure, too, starts the compensations."""
        return self._set(compensate_on_failure=True)

    def prune_state_after(self, steps: int) -> Builder:
        """Drops keys last written more than that many steps ago; the payload stays."""
        return self._set(prune_state_after=steps)

    def must_complete_within(self, limit: timedelta) -> Builder:
        """From dispatch to the end, waits included; pauses stop the clock."""
        return self._set(must_complete_within=limit)

    def on_deadline(self, handler: Handler) -> Builder:
        """Runs in the transaction that records a missed deadline."""
        return self._set(on_deadline=handler)

    def max_transitions(self, limit: int) -> Builder:
        """Completed steps, loops included."""
        return self._set(max_transitions=limit)

    def max_for_each_items(self, limit: int) -> Builder:
        """Items of all for_each steps together."""
        return self._set(max_for_each_items=limit)

    def max_state_bytes(self, limit: int) -> Builder:
        """Bytes of the stored public state."""
        return self._set(max_state_bytes=limit)

    def max_started_workflows(self, limit: int) -> Builder:
        """Workflows that start_workflows may start in all."""
        return self._set(max_started_workflows=limit)

    def tasks(self, how: Literal["per_step", "fused"]) -> Builder:
        """ "fused": consecutive plain steps share one Airflow task, each with its own commit."""
        return self._set(tasks=how)

    # ---------------------------------------------------------------------------------------------------- build

    def build(self) -> Definition:
        """Raises DefinitionError that names every mistake with its step."""
        problems = [*self._own_problems(), *self._step_problems()]
        if problems:
            raise DefinitionError(f"workflow {self._name}: " + "; ".join(problems))
        built = Definition(self._name, self._version, tuple(self._steps), self._options, self._doc, self._dag_id)
        return replace(built, definition_hash=built.hashed())

    def _own_problems(self) -> list[str]:
        problems = []
        for what, text, pattern in (
            ("workflow name", self._name, _NAME),
            ("dag_id", self._dag_id if self._dag_id != self._name else "same", _NAME),
            ("version", self._version, _VERSION),
        ):
            if not pattern.fullmatch(text):
                problems.append(f"{what} {text!r} must be letters, digits and underscores")
        if not self._steps:
            problems.append("a workflow needs at least one step")
        options = self._options
        for name in (
            "max_attempts",
            "prune_state_after",
            "max_transitions",
            "max_for_each_items",
            "max_state_bytes",
            "max_started_workflows",
        ):
            value = getattr(options, name)
            least = 0 if name == "prune_state_after" else 1
            if value is not None and value < least:
                problems.append(f"{name} is {value}, must be at least {least}")
        if options.priority not in d.PRIORITY_WEIGHT:
            problems.append(f"priority {options.priority!r} is none of {', '.join(d.PRIORITY_WEIGHT)}")
        if options.must_complete_within is not None and options.must_complete_within <= timedelta(0):
            problems.append("must_complete_within must be above zero")
        if options.on_deadline is not None and options.must_complete_within is None:
            problems.append("on_deadline needs must_complete_within")
        if options.tasks not in ("per_step", "fused"):
            problems.append(f"tasks {options.tasks!r} is neither per_step nor fused")
        return problems

    def _step_problems(self) -> list[str]:
        problems: list[str] = []
        seen: dict[str, int] = {}
        for position, step in enumerate(self._steps):
            found = list(_problems(step, seen))
            if not _NAME.fullmatch(step.name):
                found.append("give it a name of letters, digits and underscores")
            if step.name in seen:
                found.append("the name is taken by an earlier step")
            if step.timeout is not None and step.timeout <= timedelta(0):
                found.append("the timeout must be above zero")
            if step.compensate_with is not None:
                found += _handler_problems(step.compensate_with, "compensate_with")
            problems += [f"step {position + 1} {step.name!r}: {problem}" for problem in found]
            seen[step.name] = position
        return problems

    def _add(self, step: Step) -> Builder:
        self._steps.append(step)
        return self

    def _set(self, **changes: Any) -> Builder:
        self._options = replace(self._options, **changes)
        return self

    def _numbered(self, base: str) -> str:
        taken = {step.name for step in self._steps}
        number = 1
        while (name := base if number == 1 else f"{base}_{number}") in taken:
            number += 1
        return name


def workflow(name: str, version: str = "1", doc: str = "", dag_id: str | None = None) -> Builder:
    """Begins a definition. dag_id: for an older version that is deployed beside the current one."""
    return Builder(name, version, doc, dag_id)


def _own_name(handler: Any) -> str:
    while hasattr(handler, "func"):  # functools.partial
        handler = handler.func
    return str(getattr(handler, "__name__", ""))


def _handler_problems(handler: Any, what: str = "the handler") -> list[str]:
    return [] if callable(handler) else [f"{what} is not callable"]


def _problems(step: Step, earlier: Mapping[str, int]) -> list[str]:
    """What is wrong with the arguments of one step."""
    match step:
        case d.Then():
            return _handler_problems(step.handler)
        case d.Parallel():
            return _parallel_problems(step)
        case d.ForEach():
            problems = _handler_problems(step.handler) + _mode_problems(step.mode, step.quorum, "for_each")
            if step.concurrency < 1:
                problems.append(f"concurrency is {step.concurrency}, must be at least 1")
            return problems
        case d.StartWorkflows() | d.RunWorkflow():
            return [] if isinstance(step.workflow, Definition) else ["the workflow must be a built definition"]
        case d.Repeat():
            return _repeat_problems(step, earlier)
        case d.Delay():
            return ["a delay cannot be negative"] if step.duration < timedelta(0) else []
        case d.WaitForSignals():
            problems = [] if step.names and all(step.names) else ["it waits for no signal"]
            if len(set(step.names)) != len(step.names):
                problems.append("it names a signal twice")
            if step.mode not in ("all", "any"):
                problems.append(f"mode {step.mode!r} is neither all nor any")
            return problems
        case d.WaitForWorkflows():
            return _mode_problems(step.mode, step.quorum, "wait")
        case d.Stream():
            problems = _handler_problems(step.handler) + _handler_problems(step.on_complete, "on_complete")
            if not problems and not inspect.isgeneratorfunction(inspect.unwrap(step.handler)):
                problems.append("the handler of a stream must be a generator")
            return problems
        case _:
            return [f"unknown step type {type(step).__name__}"]


def _parallel_problems(step: d.Parallel) -> list[str]:
    if not step.branches:
        return ["a parallel group needs at least one branch"]
    names = [branch.name for branch in step.branches]
    problems = [problem for branch in step.branches for problem in _handler_problems(branch.handler)]
    problems += [
        f"branch {name!r}: give it a name of letters, digits and underscores"
        for name in names
        if not _NAME.fullmatch(name)
    ]
    problems += [f"branch {name!r} stands there twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if step.on_conflict not in ("fail", "last"):
        problems.append(f"on_conflict {step.on_conflict!r} is neither fail nor last")
    return problems


def _mode_problems(mode: str, quorum: int | None, where: str) -> list[str]:
    allowed = ("all", "first_success", "quorum") if where == "for_each" else ("all", "any", "quorum")
    if mode not in allowed:
        return [f"mode {mode!r} is none of {', '.join(allowed)}"]
    if mode == "quorum" and (quorum is None or quorum < 1):
        return ["mode quorum needs a quorum of at least 1"]
    if mode != "quorum" and quorum is not None:
        return [f"a quorum is given, but the mode is {mode}"]
    return []


def _repeat_problems(step: d.Repeat, earlier: Mapping[str, int]) -> list[str]:
    problems = []
    if step.target not in earlier:
        problems.append(f"its target {step.target!r} is no earlier step")
    if (step.state_key is None) == (step.condition is None):
        problems.append("give exactly one of state_key and condition")
    if step.max_iterations is not None and step.max_iterations < 1:
        problems.append(f"max_iterations is {step.max_iterations}, must be at least 1")
    return problems
