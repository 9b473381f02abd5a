"""The tables of the store in memory: everything that a commit keeps and a rollback takes back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from everest.workflow import codec
from everest.workflow.records import Run, StepRecord


@dataclass
class Message:
    """An outbox row."""

    run_id: int
    shadow_id: int
    dag_run_id: str
    n: int
    due_at: datetime
    sent: bool = False


@dataclass
class Tables:
    """Everything that a rollback takes back."""

    runs: dict[int, Run] = field(default_factory=dict)
    steps: dict[tuple[int, str, int, str], StepRecord] = field(default_factory=dict)
    ends: dict[tuple[int, str, int, str], dict[str, Any]] = field(default_factory=dict)
    """The rest of a step's record: its error and the state it left."""
    items: dict[tuple[int, str, int], dict[int, dict[str, Any]]] = field(default_factory=dict)
    dependencies: dict[tuple[int, str, int], list[int]] = field(default_factory=dict)
    signals: list[dict[str, Any]] = field(default_factory=list)
    chunks: dict[tuple[int, str, int], list[Any]] = field(default_factory=dict)
    compensations: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    shadows: dict[int, dict[str, Any]] = field(default_factory=dict)
    outbox: list[Message] = field(default_factory=list)
    audit: list[dict[str, Any]] = field(default_factory=list)
    effects: list[Any] = field(default_factory=list)
    """What handlers of tests wrote with `step.tx.write(...)`: commits and rolls back with the step."""

    def copy(self) -> Tables:
        """As it stands now. Runs and step records are replaced, never changed, so their maps are enough."""
        return Tables(
            runs=dict(self.runs),
            steps=dict(self.steps),
            ends=dict(self.ends),
            items={key: {index: dict(one) for index, one in found.items()} for key, found in self.items.items()},
            dependencies=dict(self.dependencies),
            signals=[dict(one) for one in self.signals],
            chunks={key: list(found) for key, found in self.chunks.items()},
            compensations=[dict(one) for one in self.compensations],
            events=list(self.events),
            shadows={key: dict(row) for key, row in self.shadows.items()},
            outbox=[replace(one) for one in self.outbox],
            audit=list(self.audit),
            effects=list(self.effects),
        )


def plain(value: Any) -> Any:
    """As a JSON column would give it back."""
    return codec.loads(codec.dumps(value))
