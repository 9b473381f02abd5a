"""What a workflow is: an ordered list of named steps with options, frozen.

A definition knows no database and no Airflow; `builder` makes and checks it, the engine runs it, `airflow_dag` draws
it, `definition_hash` tells whether it still means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Literal

from everest.errors import DefinitionError
from everest.workflow import codec
from everest.workflow.fields import Field
from everest.workflow.handlers import FailureHandler, Handler, State, StreamHandler

Mode = Literal["all", "any", "first_success", "quorum"]
SignalKind = Literal["signal", "approval", "input", "decision"]
Priority = Literal["low", "normal", "high", "urgent"]
Tasks = Literal["per_step", "fused"]

PRIORITY_WEIGHT: Mapping[Priority, int] = {"low": 1, "normal": 10, "high": 100, "urgent": 1000}


@dataclass(frozen=True, kw_only=True)
class Step:
    """What all steps have. timeout: of one try, or of the wait; compensate_with: undoes the step on a cancel."""

    name: str
    timeout: timedelta | None = None
    compensate_with: Handler | None = None
    type: ClassVar[str] = ""
    waits: ClassVar[bool] = False

    @property
    def doc(self) -> str:
        """What the step does, for whoever looks at its task: the handler's docstring, else a sentence of its own."""
        handler = getattr(self, "handler", None)
        return ((handler.__doc__ if handler else None) or self._says()).strip()

    def _says(self) -> str:
        return (type(self).__doc__ or "").strip()

    def _at_most(self) -> str:
        return "" if self.timeout is None else f", at most {self.timeout}"


@dataclass(frozen=True, kw_only=True)
class Then(Step):
    """Runs one function."""

    handler: Handler
    type: ClassVar[str] = "then"


@dataclass(frozen=True)
class Branch:
    """One function of a parallel group."""

    name: str
    handler: Handler


@dataclass(frozen=True, kw_only=True)
class Parallel(Step):
    """Runs several functions at once; all must succeed."""

    branches: tuple[Branch, ...]
    on_conflict: Literal["fail", "last"] = "fail"
    type: ClassVar[str] = "parallel"

    def branch(self, name: str) -> Branch:
        for branch in self.branches:
            if branch.name == name:
                return branch
        raise DefinitionError(f"step {self.name} has no branch {name!r}")


@dataclass(frozen=True, kw_only=True)
class ForEach(Step):
    """Runs one function for every item of a list that is found at run time."""

    items_key: str
    handler: Handler
    result_key: str
    mode: Mode = "all"
    quorum: int | None = None
    reducer: Handler | None = None
    concurrency: int = 8
    type: ClassVar[str] = "for_each"


@dataclass(frozen=True, kw_only=True)
class StartWorkflows(Step):
    """Starts one independent workflow for every item and goes on without waiting for them."""

    items_key: str
    workflow: Definition
    result_key: str
    payload_key: str = "item"
    inherit_state: bool = True
    group_key: str | None = None
    type: ClassVar[str] = "start_workflows"

    def _says(self) -> str:
        return f"Starts one workflow `{self.workflow.name}` for every item of `{self.items_key}`, without waiting."


@dataclass(frozen=True, kw_only=True)
class Repeat(Step):
    """Goes back to an earlier step until (or while) a condition of the state holds."""

    target: str
    until: bool
    state_key: str | None = None
    expected: Any = True
    condition: Callable[[State], bool] | None = None
    max_iterations: int | None = None
    type: ClassVar[str] = "repeat"

    def _says(self) -> str:
        until = "until" if self.until else "while"
        condition = f"`{self.state_key}` is {self.expected!r}" if self.condition is None else "its condition holds"
        limit = "" if self.max_iterations is None else f", at most {self.max_iterations} times"
        return f"Goes back to `{self.target}` {until} {condition}{limit}."

    def goes_back(self, state: State) -> bool:
        """Type-strict: 1 is not True, Decimal("1") is not 1. A tuple is a list, as in the state."""
        if self.condition is not None:
            met = bool(self.condition(state))
        else:
            value, expected = state.get(self.state_key or ""), codec.as_stored(self.expected)
            met = type(value) is type(expected) and value == expected
        return met != self.until


@dataclass(frozen=True, kw_only=True)
class RunWorkflow(Step):
    """Runs another workflow as a part of this one and merges its state when it has completed."""

    workflow: Definition
    type: ClassVar[str] = "run_workflow"
    waits: ClassVar[bool] = True

    def _says(self) -> str:
        return f"Runs the workflow `{self.workflow.name}` as a part of this one and waits for its end{self._at_most()}."


@dataclass(frozen=True, kw_only=True)
class Delay(Step):
    """Waits for a while without using anything."""

    duration: timedelta
    type: ClassVar[str] = "delay"
    waits: ClassVar[bool] = True

    def _says(self) -> str:
        return f"Waits {self.duration}."


@dataclass(frozen=True, kw_only=True)
class WaitForSignals(Step):
    """Waits for a message from outside: a signal, an approval, an input or a decision of a person."""

    names: tuple[str, ...]
    kind: SignalKind = "signal"
    mode: Mode = "all"
    many: bool = False
    result_key: str | None = None
    match_payload: Mapping[str, Any] | None = None
    correlation_key: str | None = None
    on_timeout: Mapping[str, Any] | None = None
    fields: tuple[Field, ...] = ()
    type: ClassVar[str] = "wait_for_signal"
    waits: ClassVar[bool] = True

    def _says(self) -> str:
        names = (" or " if self.mode == "any" else " and ").join(f"`{name}`" for name in self.names)
        return f"Waits for the {self.kind} {names}{self._at_most()}; the DAG run ends meanwhile."


@dataclass(frozen=True, kw_only=True)
class WaitForWorkflows(Step):
    """Waits until other workflows have completed."""

    source: int | str | tuple[int, ...]
    result_key: str
    mode: Mode = "all"
    quorum: int | None = None
    is_group: bool = False
    on_timeout: Mapping[str, Any] | None = None
    many: bool = True
    type: ClassVar[str] = "wait_for_workflows"
    waits: ClassVar[bool] = True

    def _says(self) -> str:
        many = f"{self.quorum} of " if self.mode == "quorum" else f"{self.mode} of "
        return f"Waits for {many if self.many else ''}the workflow(s) of `{self.source}`{self._at_most()}."


@dataclass(frozen=True, kw_only=True)
class Stream(Step):
    """Runs a generator; each chunk it yields is stored at once and survives a retry."""

    handler: StreamHandler
    on_complete: Callable[[list[Any], State], dict[str, Any] | None]
    type: ClassVar[str] = "stream"


@dataclass(frozen=True)
class Options:
    """What holds for a whole workflow; `builder` has a method for each. Sizes are bytes of the stored state."""

    max_attempts: int = 3
    key_template: str | None = None
    queue: str | None = None
    priority: Priority = "normal"
    on_failure: FailureHandler | None = None
    on_cancel: Handler | None = None
    compensate_on_failure: bool = False
    prune_state_after: int | None = None
    must_complete_within: timedelta | None = None
    on_deadline: Handler | None = None
    max_transitions: int | None = None
    max_for_each_items: int | None = None
    max_state_bytes: int | None = None
    max_started_workflows: int | None = None
    tasks: Tasks = "per_step"


@dataclass(frozen=True)
class Definition:
    """A built workflow. `dag_id` is its name unless an older version is deployed beside the current one."""

    name: str
    version: str
    steps: tuple[Step, ...]
    options: Options = field(default_factory=Options)
    doc: str = ""
    dag_id: str = ""
    definition_hash: str = field(default="", compare=False)

    def index(self, step_name: str) -> int:
        for position, step in enumerate(self.steps):
            if step.name == step_name:
                return position
        raise DefinitionError(f"workflow {self.name} has no step named {step_name!r}")

    def step(self, step_name: str) -> Step:
        return self.steps[self.index(step_name)]

    def grouped(self) -> list[list[Step]]:
        """The steps by the task that runs them: one each, or consecutive plain ones together where tasks are fused."""
        groups: list[list[Step]] = []
        for step in self.steps:
            is_fused = self.options.tasks == "fused" and isinstance(step, Then)
            if is_fused and groups and isinstance(groups[-1][-1], Then):
                groups[-1].append(step)
            else:
                groups.append([step])
        return groups

    def task_of(self, step_name: str) -> str:
        """The id of the Airflow task that runs a step: its name, or those of the first and the last of a fused task."""
        names = next(names for names in self._task_names() if step_name in names)
        return names[0] if len(names) == 1 else f"{names[0]}_to_{names[-1]}"

    def _task_names(self) -> Iterator[list[str]]:
        for steps in self.grouped():
            yield [step.name for step in steps]

    def key(self, payload: Mapping[str, Any]) -> str | None:
        """The idempotency key of a payload, None when the definition has none. Raises DefinitionError."""
        template = self.options.key_template
        if template is None:
            return None
        try:
            return template.format_map(payload)
        except (KeyError, IndexError, AttributeError, ValueError):
            raise DefinitionError(f"workflow {self.name}: the payload does not fill the key {template!r}") from None

    def children(self) -> Iterator[Definition]:
        """The definitions this one runs or starts, and theirs."""
        for step in self.steps:
            if isinstance(step, RunWorkflow | StartWorkflows):
                yield step.workflow
                yield from step.workflow.children()
