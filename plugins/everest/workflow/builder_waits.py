"""The steps of a definition that wait: for a clock, for signals and people, for other workflows. `builder` adds those
that work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Self, Unpack, get_type_hints

from everest.workflow import definition as d
from everest.workflow.builder_options import WorkflowOptions
from everest.workflow.definition import Mode, Step
from everest.workflow.fields import Field
from everest.workflow.step_options import EndOfWait, GroupOptions, SignalOptions


class Waits(WorkflowOptions):
    """Collects steps, and the mistakes in them. All methods return the builder itself."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self._steps: list[Step] = []
        self._mistakes: list[str] = []

    def delay(
        self, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0, name: str | None = None
    ) -> Self:
        """Waits that long; zero goes straight on."""
        duration = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        return self._add(d.Delay(name=name or self._numbered("delay"), duration=duration))

    def wait_for_signal(self, signal: str, name: str | None = None, **options: Unpack[SignalOptions]) -> Self:
        """One signal; it may come early, then it is kept. Each wait consumes one."""
        return self._wait("signal", (signal,), name or self._numbered(f"wait_for_{signal}"), options)

    def wait_for_signals(
        self, signals: Sequence[str], mode: Mode = "all", name: str | None = None, **options: Unpack[SignalOptions]
    ) -> Self:
        """Several signals, all or any of them; the result is a map by name."""
        own = name or self._numbered("wait_for_signals")
        if isinstance(signals, str):
            self._mistake(own, f"signals is the text {signals!r}, must be a list of names")
        return self._wait("signal", tuple(signals), own, options, mode=mode, many=True)

    def wait_for_approval(
        self, signal: str = "approval", name: str | None = None, **options: Unpack[SignalOptions]
    ) -> Self:
        """A person says yes; a no fails the run (403)."""
        return self._wait("approval", (signal,), name or self._numbered("wait_for_approval"), options)

    def wait_for_input(
        self,
        signal: str = "input",
        name: str | None = None,
        fields: Sequence[Field] = (),
        **options: Unpack[SignalOptions],
    ) -> Self:
        """A person fills something in; fields: what a page asks for, one by one (else it asks for JSON)."""
        own = name or self._numbered("wait_for_input")
        return self._wait("input", (signal,), own, options, fields=tuple(fields))

    def wait_for_decision(
        self, signal: str = "decision", name: str | None = None, **options: Unpack[SignalOptions]
    ) -> Self:
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
    ) -> Self:
        known = self._known(own, options, SignalOptions)
        if kind != "signal":
            known.setdefault("result_key", kind)
        return self._add(
            d.WaitForSignals(name=own, names=names, kind=kind, mode=mode, many=many, fields=fields, **known)
        )

    def wait_for_workflow(
        self, id_or_key: int | str, result_key: str = "workflow", name: str | None = None, **options: Unpack[EndOfWait]
    ) -> Self:
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
    ) -> Self:
        """Others have completed: all, any, or a quorum; the result is a map of public states by id."""
        source = ids_or_key if isinstance(ids_or_key, str) else tuple(ids_or_key)
        own = name or self._numbered("wait_for_workflows")
        known = self._known(own, options, EndOfWait)
        return self._add(
            d.WaitForWorkflows(name=own, source=source, mode=mode, quorum=quorum, result_key=result_key, **known)
        )

    def wait_for_agents(self, ids_key: str = "started_workflow_ids", **options: Unpack[GroupOptions]) -> Self:
        """The workflows that start_workflows started; the result is a map of their public states by id."""
        return self._group(options, "wait_for_agents", ids_key, "agent_results", is_group=False)

    def wait_for_workflow_group(self, group_key: str, **options: Unpack[GroupOptions]) -> Self:
        """Every workflow that was started under this group key so far."""
        return self._group(options, "wait_for_workflow_group", group_key, "group_results", is_group=True)

    def _group(self, options: GroupOptions, base: str, source: str, result_key: str, is_group: bool) -> Self:
        own = options.get("name") or self._numbered(base)
        known = {"result_key": result_key, **self._known(own, options, GroupOptions)}
        known.pop("name", None)
        return self._add(d.WaitForWorkflows(name=own, source=source, is_group=is_group, **known))

    # ----------------------------------------------------------------------------------------------- any step

    def _mistake(self, step: str, problem: str) -> None:
        """What cannot be seen in the step any more once it is made."""
        self._mistakes.append(f"step {len(self._steps) + 1} {step!r}: {problem}")

    def _known(self, step: str, options: Mapping[str, Any], kind: type) -> dict[str, Any]:
        allowed = get_type_hints(kind)
        for unknown in sorted(options.keys() - allowed.keys()):
            self._mistake(step, f"it has no option {unknown!r}; there are {', '.join(sorted(allowed))}")
        return {name: value for name, value in options.items() if name in allowed}

    def _add(self, step: Step) -> Self:
        self._steps.append(step)
        return self

    def _numbered(self, base: str) -> str:
        taken = {step.name for step in self._steps}
        number = 1
        while (name := base if number == 1 else f"{base}_{number}") in taken:
            number += 1
        return name
