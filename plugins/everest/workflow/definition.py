"""What a workflow is: an ordered list of named steps with options, checked when it is built.

A definition knows no database and no Airflow; the engine runs it, `airflow_dag` draws it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from everest.errors import DefinitionError

Handler = Callable[[dict[str, Any], Any], dict[str, Any] | None]
"""`handler(state, step)`: gets the public state, returns the keys to merge into it."""

FailureHandler = Callable[[dict[str, Any], Any, Exception], None]
"""Runs inside the transaction that records a failure; writes there commit with it."""

NEXT_STEP = "_next_step"
"""A handler that returns this key names the step to go to, forward or back."""

RESPONSE = "_response"
"""A handler that returns this key gives the answer that the document's sender reads in the shadow row."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")


@dataclass(frozen=True)
class Step:
    """One step: a plain function with a unique name. `timeout` bounds one try of it."""

    name: str
    handler: Handler
    timeout: timedelta | None = None

    @property
    def dotted_name(self) -> str:
        return f"{self.handler.__module__}.{self.handler.__qualname__}"

    @property
    def doc(self) -> str:
        return (self.handler.__doc__ or "").strip()


@dataclass(frozen=True)
class Definition:
    """A built workflow. `key_template` makes the idempotency key from the payload, e.g. "{transaksi_id}"."""

    name: str
    version: str
    steps: tuple[Step, ...]
    doc: str = ""
    max_attempts: int = 3
    key_template: str | None = None
    on_failure: FailureHandler | None = None
    definition_hash: str = field(default="", compare=False)

    def index(self, step_name: str) -> int:
        for position, step in enumerate(self.steps):
            if step.name == step_name:
                return position
        raise DefinitionError(f"workflow {self.name} has no step named {step_name!r}")

    def step(self, step_name: str) -> Step:
        return self.steps[self.index(step_name)]

    def key(self, payload: Mapping[str, Any]) -> str | None:
        return None if self.key_template is None else self.key_template.format_map(payload)


class Builder:
    """Collects steps and options; `build()` checks them all and freezes them."""

    def __init__(self, name: str, version: str, doc: str) -> None:
        self._name = name
        self._version = version
        self._doc = doc
        self._steps: list[Step] = []
        self._max_attempts = 3
        self._key_template: str | None = None
        self._on_failure: FailureHandler | None = None

    def then(self, handler: Handler, name: str | None = None, timeout: timedelta | None = None) -> Builder:
        """Adds a step that runs after the ones before it; its name is the function's unless given."""
        own_name = str(getattr(handler, "__name__", ""))
        self._steps.append(Step(name or own_name, handler, timeout))
        return self

    def max_attempts(self, attempts: int) -> Builder:
        """How often a step is tried before its failure is recorded."""
        self._max_attempts = attempts
        return self

    def idempotency_key(self, template: str) -> Builder:
        """One run per key; the template is filled from the payload."""
        self._key_template = template
        return self

    def on_failure(self, handler: FailureHandler) -> Builder:
        """Runs in the transaction that records a failure."""
        self._on_failure = handler
        return self

    def build(self) -> Definition:
        """Raises DefinitionError that names the step and everything that is wrong."""
        problems: list[str] = []
        if not _NAME.fullmatch(self._name):
            problems.append(f"workflow name {self._name!r} must be letters, digits and underscores")
        if not self._steps:
            problems.append("a workflow needs at least one step")
        if self._max_attempts < 1:
            problems.append(f"max_attempts is {self._max_attempts}, must be at least 1")
        seen: set[str] = set()
        for position, step in enumerate(self._steps, start=1):
            if not callable(step.handler):
                problems.append(f"step {position} {step.name!r}: the handler is not callable")
            elif not _NAME.fullmatch(step.name):
                problems.append(f"step {position} {step.name!r}: give it a name of letters, digits and underscores")
            if step.name in seen:
                problems.append(f"step {position} {step.name!r}: the name is taken by an earlier step")
            if step.timeout is not None and step.timeout <= timedelta(0):
                problems.append(f"step {position} {step.name!r}: the timeout must be above zero")
            seen.add(step.name)
        if problems:
            raise DefinitionError(f"workflow {self._name}: " + "; ".join(problems))
        return Definition(
            name=self._name,
            version=self._version,
            steps=tuple(self._steps),
            doc=self._doc,
            max_attempts=self._max_attempts,
            key_template=self._key_template,
            on_failure=self._on_failure,
            definition_hash=self._hash(),
        )

    def _hash(self) -> str:
        """Of names, types and options, not of code: the same shape hashes the same on every machine."""
        shape = {
            "name": self._name,
            "version": self._version,
            "key": self._key_template,
            "max_attempts": self._max_attempts,
            "steps": [["then", step.name, step.timeout and step.timeout.total_seconds()] for step in self._steps],
        }
        return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()


def workflow(name: str, version: str = "1", doc: str = "") -> Builder:
    """Begins a definition: `workflow("closing").then(first).then(second).build()`."""
    return Builder(name, version, doc)
