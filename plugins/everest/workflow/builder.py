"""Describing a workflow: `workflow("report").then(fetch).wait_for_approval().then(publish).build()`.

Each call adds a step or sets an option; `build()` checks everything at once and freezes it. Every mistake has a
sentence that names its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, Unpack, get_type_hints

from everest.errors import DefinitionError
from everest.workflow import checks, definition_hash
from everest.workflow import definition as d
from everest.workflow.builder_options import WorkflowOptions
from everest.workflow.definition import Branch, Definition, Mode, Step
from everest.workflow.fields import Field
from everest.workflow.handlers import Handler, State, StreamHandler, own_name
from everest.workflow.step_options import EndOfWait, GroupOptions, RepeatOptions, SignalOptions


class Builder(WorkflowOptions):
    """Collects steps and options. All methods return the builder itself."""

    def __init__(self, name: str, version: str, doc: str, dag_id: str | None) -> None:
        super().__init__(version)
        self._name, self._doc, self._dag_id = name, doc, dag_id or name
        self._steps: list[Step] = []
        self._mistakes: list[str] = []

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
            d.Then(name=name or own_name(handler), handler=handler, compensate_with=compensate_with, timeout=timeout)
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
        named = handlers.items() if isinstance(handlers, Mapping) else [(own_name(one), one) for one in handlers]
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
        own = name or own_name(handler)
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

    def repeat_until(
        self, target: str, state_key: str | None = None, expected: Any = True, **options: Unpack[RepeatOptions]
    ) -> Builder:
        """Back to `target` until the state says so. Options: condition, max_iterations, name."""
        return self._repeat(target, True, state_key, expected, options)

    def repeat_while(
        self, target: str, state_key: str | None = None, expected: Any = True, **options: Unpack[RepeatOptions]
    ) -> Builder:
        """Back to `target` while the state says so. Options: condition, max_iterations, name."""
        return self._repeat(target, False, state_key, expected, options)

    def _repeat(
        self, target: str, until: bool, state_key: str | None, expected: Any, options: RepeatOptions
    ) -> Builder:
        own = options.get("name") or self._numbered("repeat")
        known = self._known(own, options, RepeatOptions)
        known.pop("name", None)
        return self._add(
            d.Repeat(name=own, target=target, until=until, state_key=state_key, expected=expected, **known)
        )

    def run_workflow(
        self,
        workflow: Definition,
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """A nested run: it gets the public state, and its own merges here when it has completed."""
        own = name or getattr(workflow, "name", None) or self._numbered("run_workflow")
        return self._add(d.RunWorkflow(name=own, workflow=workflow, compensate_with=compensate_with, timeout=timeout))

    def delay(
        self, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0, name: str | None = None
    ) -> Builder:
        """Waits that long; zero goes straight on."""
        duration = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        return self._add(d.Delay(name=name or self._numbered("delay"), duration=duration))

    def wait_for_signal(self, signal: str, name: str | None = None, **options: Unpack[SignalOptions]) -> Builder:
        """One signal; it may come early, then it is kept. Each wait consumes one."""
        return self._wait("signal", (signal,), name or self._numbered(f"wait_for_{signal}"), options)

    def wait_for_signals(
        self, signals: Sequence[str], mode: Mode = "all", name: str | None = None, **options: Unpack[SignalOptions]
    ) -> Builder:
        """Several signals, all or any of them; the result is a map by name."""
        own = name or self._numbered("wait_for_signals")
        if isinstance(signals, str):
            self._mistake(own, f"signals is the text {signals!r}, must be a list of names")
        return self._wait("signal", tuple(signals), own, options, mode=mode, many=True)

    def wait_for_approval(
        self, signal: str = "approval", name: str | None = None, **options: Unpack[SignalOptions]
    ) -> Builder:
        """A person says yes; a no fails the run (403)."""
        return self._wait("approval", (signal,), name or self._numbered("wait_for_approval"), options)

    def wait_for_input(
        self,
        signal: str = "input",
        name: str | None = None,
        fields: Sequence[Field] = (),
        **options: Unpack[SignalOptions],
    ) -> Builder:
        """A person fills something in; fields: what a page asks for, one by one (else it asks for JSON)."""
        own = name or self._numbered("wait_for_input")
        return self._wait("input", (signal,), own, options, fields=tuple(fields))

    def wait_for_decision(
        self, signal: str = "decision", name: str | None = None, **options: Unpack[SignalOptions]
    ) -> Builder:
        """A person approves or rejects; either way the run goes on, with the outcome under result_key."""
        return self._wait("decision", (signal,), name or self._numbered("wait_for_decision"), options)

    def _wait(
        self,
        kind: d.SignalKind,
        names: tuple[str, ...],
        own: str,
        options: SignalOptions,
        mode: Mode = "all",
        many: bool = False,
        fields: tuple[Field, ...] = (),
    ) -> Builder:
        known = self._known(own, options, SignalOptions)
        if kind != "signal":
            known.setdefault("result_key", kind)
        return self._add(
            d.WaitForSignals(name=own, names=names, kind=kind, mode=mode, many=many, fields=fields, **known)
        )

    def wait_for_workflow(
        self, id_or_key: int | str, result_key: str = "workflow", name: str | None = None, **options: Unpack[EndOfWait]
    ) -> Builder:
        """Another workflow has completed; its public state lands under result_key."""
        own = name or self._numbered("wait_for_workflow")
        known = self._known(own, options, EndOfWait)
        return self._add(d.WaitForWorkflows(name=own, source=id_or_key, result_key=result_key, many=False, **known))

    def wait_for_workflows(
        self,
        ids_or_key: Sequence[int] | str,
        mode: Mode = "all",
        quorum: int | None = None,
        result_key: str = "workflows",
        name: str | None = None,
        **options: Unpack[EndOfWait],
    ) -> Builder:
        """Others have completed: all, any, or a quorum; the result is a map of public states by id."""
        source = ids_or_key if isinstance(ids_or_key, str) else tuple(ids_or_key)
        own = name or self._numbered("wait_for_workflows")
        known = self._known(own, options, EndOfWait)
        return self._add(
            d.WaitForWorkflows(name=own, source=source, mode=mode, quorum=quorum, result_key=result_key, **known)
        )

    def wait_for_agents(self, ids_key: str = "started_workflow_ids", **options: Unpack[GroupOptions]) -> Builder:
        """The workflows that start_workflows started; the result is a map of their public states by id."""
        return self._group(options, "wait_for_agents", ids_key, "agent_results", is_group=False)

    def wait_for_workflow_group(self, group_key: str, **options: Unpack[GroupOptions]) -> Builder:
        """Every workflow that was started under this group key so far."""
        return self._group(options, "wait_for_workflow_group", group_key, "group_results", is_group=True)

    def _group(self, options: GroupOptions, base: str, source: str, result_key: str, is_group: bool) -> Builder:
        own = options.get("name") or self._numbered(base)
        known = {"result_key": result_key, **self._known(own, options, GroupOptions)}
        known.pop("name", None)
        return self._add(d.WaitForWorkflows(name=own, source=source, is_group=is_group, **known))

    def stream(
        self,
        handler: StreamHandler,
        on_complete: Callable[[list[Any], State], dict[str, Any] | None],
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Builder:
        """A generator whose chunks are stored as they come; on_complete makes the step's output of all of them."""
        return self._add(
            d.Stream(
                name=name or own_name(handler),
                handler=handler,
                on_complete=on_complete,
                compensate_with=compensate_with,
                timeout=timeout,
            )
        )

    # ---------------------------------------------------------------------------------------------------- build

    def build(self) -> Definition:
        """Raises DefinitionError that names every mistake with its step."""
        built = Definition(self._name, self._version, tuple(self._steps), self._options, self._doc, self._dag_id)
        problems = [*checks.problems(built), *self._mistakes]
        if problems:
            raise DefinitionError(f"workflow {self._name}: " + "; ".join(problems))
        return replace(built, definition_hash=definition_hash.of(built))

    def _mistake(self, step: str, problem: str) -> None:
        """What cannot be seen in the step any more once it is made."""
        self._mistakes.append(f"step {len(self._steps) + 1} {step!r}: {problem}")

    def _known(self, step: str, options: Mapping[str, Any], kind: type) -> dict[str, Any]:
        allowed = get_type_hints(kind)
        for unknown in sorted(options.keys() - allowed.keys()):
            self._mistake(step, f"it has no option {unknown!r}; there are {', '.join(sorted(allowed))}")
        return {name: value for name, value in options.items() if name in allowed}

    def _add(self, step: Step) -> Builder:
        self._steps.append(step)
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
