"""Whether a definition still means what it meant: the hash that a run keeps of the one it began with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from everest.workflow import codec
from everest.workflow.definition import Branch, Definition, Options, Step

# How a definition is run rather than what it means: changing these must not strand the runs that are on their way.
_NOT_HASHED = frozenset({"max_attempts", "queue", "priority", "on_failure", "tasks", "concurrency", "fields"})


def of(definition: Definition) -> str:
    """Of names, types and options, not of code and not of how it is scheduled."""
    shape = {
        "name": definition.name,
        "version": definition.version,
        "steps": [_shape(step) for step in definition.steps],
        "options": _shape(definition.options),
    }
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()


def _shape(part: Any) -> Any:
    """JSON of what a definition says, with functions by whether they are there (their code may change)."""
    if isinstance(part, Definition):
        return part.definition_hash
    if isinstance(part, Step | Options | Branch):
        hidden = set(_NOT_HASHED)
        if isinstance(part, Step) and not part.waits:
            hidden.add("timeout")  # of a try
        kept = {item.name: _shape(getattr(part, item.name)) for item in fields(part) if item.name not in hidden}
        return {"type": part.type, **kept} if isinstance(part, Step) else kept
    if isinstance(part, timedelta):
        return part.total_seconds()
    if isinstance(part, tuple | list):
        return [_shape(item) for item in part]
    if isinstance(part, Mapping):
        return {str(key): _shape(value) for key, value in part.items()}
    if callable(part):
        return "function"
    return codec.dumps(part)  # with its type: 1, True, "1" and Decimal("1") are four values
