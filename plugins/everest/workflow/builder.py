"""Describing a workflow: `workflow("report").then(fetch).wait_for_approval().then(publish).build()`.

Each call adds a step or sets an option; `build()` checks everything at once and freezes it. Every mistake has a
sentence that names its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, Self, Unpack

from everest.errors import DefinitionError
from everest.workflow import checks, definition_hash
from everest.workflow import definition as d
from everest.workflow.builder_waits import Waits
from everest.workflow.definition import Branch, Definition, Mode
from everest.workflow.handlers import Handler, State, StreamHandler, own_name
from everest.workflow.step_options import RepeatOptions


class Builder(Waits):
    """Collects steps and options. All methods return the builder itself."""

    def __init__(self, name: str, version: str, doc: str, dag_id: str | None) -> None:
        super().__init__(version)
        self._name, self._doc, self._dag_id = name, doc, dag_id or name

    # -------------------------------------------------------------------------------------------------- steps

    def then(
        self,
        handler: Handler,
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
        """Back to `target` until the state says so. Options: condition, max_iterations, name."""
        return self._repeat(target, True, state_key, expected, options)

    def repeat_while(
        self, target: str, state_key: str | None = None, expected: Any = True, **options: Unpack[RepeatOptions]
    ) -> Self:
        """Back to `target` while the state says so. Options: condition, max_iterations, name."""
        return self._repeat(target, False, state_key, expected, options)

    def _repeat(self, target: str, until: bool, state_key: str | None, expected: Any, options: RepeatOptions) -> Self:
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
    ) -> Self:
        """A nested run: it gets the public state, and its own merges here when it has completed."""
        own = name or getattr(workflow, "name", None) or self._numbered("run_workflow")
        return self._add(d.RunWorkflow(name=own, workflow=workflow, compensate_with=compensate_with, timeout=timeout))

    def stream(
        self,
        handler: StreamHandler,
        on_complete: Callable[[list[Any], State], dict[str, Any] | None],
        name: str | None = None,
        compensate_with: Handler | None = None,
        timeout: timedelta | None = None,
    ) -> Self:
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


def workflow(name: str, version: str = "1", doc: str = "", dag_id: str | None = None) -> Builder:
    """Begins a definition. dag_id: for an older version that is deployed beside the current one."""
    return Builder(name, version, doc, dag_id)
