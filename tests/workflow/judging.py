"""A step that asks about what it finds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from everest.errors import DocumentRefused, Problem
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.questions import ask_decision
from everest.workflow.ticket import Decision
from tests.workflow.world import gives


class Judge:
    """A step that asks about whatever its evidence is now, and goes on when exactly that was approved."""

    def __init__(self, timeout: timedelta | None = None, not_by: tuple[str, ...] = ()) -> None:
        self.timeout, self.not_by = timeout, not_by
        self.evidence: str | None = "E1"
        self.seen: list[Decision | None] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        self.seen.append(step.decision)
        step.tx.write(f"looked {step.attempt}")
        found = self.evidence
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        decision: Decision | None = step.decision
        if found is None:
            return {"approved_by": None}
        if decision is not None and decision.evidence == found:
            if decision.outcome == "approved":
                return {"approved_by": decision.by}
            raise DocumentRefused(f"{decision.outcome} oleh {decision.by}: {decision.reason}", code=403)
        return ask_decision([f"reason {found}", Problem(3, "qty", "far off")], found, self.timeout, self.not_by)

    def flow(self, **options: Any) -> Definition:
        built = workflow("judged").then(gives(a=1), name="a").then(self, name="judge").then(gives(z=1), name="z")
        if options.get("fused"):
            built = built.tasks("fused")
        return built.build()
