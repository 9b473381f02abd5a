"""What a definition says about its workflow as a whole: version, key, tries, budgets, deadline, what happens at a
failure or a cancel. The steps are added in `builder`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

from everest.workflow import definition as d
from everest.workflow.definition import Options, Priority
from everest.workflow.handlers import FailureHandler, Handler


class WorkflowOptions:
    """Collects options. All methods return the builder itself."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._options = Options()

    def version(self, version: str) -> Self:
        """Changes when the definition means something else; runs on their way stay with theirs."""
        self._version = version
        return self

    def idempotency_key(self, template: str) -> Self:
        """One run per key; the template is filled from the payload, e.g. "{gudang}-{bulan}"."""
        return self._set(key_template=template)

    def max_attempts(self, attempts: int) -> Self:
        """How often a step, a branch or an item is tried before its failure is recorded."""
        return self._set(max_attempts=attempts)

    def on_queue(self, queue: str) -> Self:
        """The Airflow task queue of all steps."""
        return self._set(queue=queue)

    def with_priority(self, priority: Priority) -> Self:
        """The weight of all steps when workers are short."""
        return self._set(priority=priority)

    def on_failure(self, handler: FailureHandler) -> Self:
        """Runs in the transaction that records a failure."""
        return self._set(on_failure=handler)

    def on_cancel(self, handler: Handler) -> Self:
        """Runs after a cancel, behind all compensations, with the public state."""
        return self._set(on_cancel=handler)

    def compensate_on_failure(self) -> Self:
        """A failure, too, starts the compensations."""
        return self._set(compensate_on_failure=True)

    def prune_state_after(self, steps: int) -> Self:
        """Drops keys last written more than that many steps ago; the payload stays."""
        return self._set(prune_state_after=steps)

    def must_complete_within(self, limit: timedelta) -> Self:
        """From dispatch to the end, waits included; pauses stop the clock."""
        return self._set(must_complete_within=limit)

    def on_deadline(self, handler: Handler) -> Self:
        """Runs in the transaction that records a missed deadline."""
        return self._set(on_deadline=handler)

    def max_transitions(self, limit: int) -> Self:
        """Completed steps, loops included. This and the other budgets that count begin anew with each retry."""
        return self._set(max_transitions=limit)

    def max_for_each_items(self, limit: int) -> Self:
        """Items of all for_each steps together."""
        return self._set(max_for_each_items=limit)

    def max_state_bytes(self, limit: int) -> Self:
        """Bytes of the stored public state."""
        return self._set(max_state_bytes=limit)

    def max_started_workflows(self, limit: int) -> Self:
        """Workflows that start_workflows may start in all."""
        return self._set(max_started_workflows=limit)

    def tasks(self, how: d.Tasks) -> Self:
        """ "fused": consecutive plain steps share one Airflow task, each with its own commit."""
        return self._set(tasks=how)

    def _set(self, **changes: Any) -> Self:
        self._options = replace(self._options, **changes)
        return self
