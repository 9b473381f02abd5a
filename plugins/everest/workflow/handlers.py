"""Handlers: the plain functions that steps run, what they may return beside their output, and how one is stored.

The database keeps the dotted name of a handler, so that what is due later (a compensation) is found in the code again.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from everest.errors import DefinitionError

State = dict[str, Any]

Handler = Callable[..., dict[str, Any] | None]
"""`handler(state, step)`: gets the public state, returns the keys to merge into it."""

FailureHandler = Callable[[State, Any, Exception], None]
"""Runs inside the transaction that records a failure; writes there commit with it."""

StreamHandler = Callable[[State, Any, list[Any]], Iterator[Any]]
"""`handler(state, step, chunks)`: a generator; gets the chunks that are stored already and yields further ones."""

NEXT_STEP = "_next_step"
"""A handler that returns this key names the step to go to, forward or back."""

RESPONSE = "_response"
"""A handler that returns this key gives the answer that the job's sender reads in the shadow row."""

WAIT_FOR_DECISION = "_wait_for_decision"
"""A handler that returns this key asks a person and is entered again with the answer; made by `ask_decision`."""


def dotted_name(handler: Callable[..., Any]) -> str:
    """How a handler is stored; `resolve` finds it again. Of a partial: its function's."""
    function = _function(handler)
    return f"{function.__module__}:{function.__qualname__}"


def resolve(name: str) -> Handler:
    """The handler of a stored name. Raises DefinitionError when the code no longer has it."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise DefinitionError(f"the handler {name} is gone from the code: {error}") from None
    return found  # type: ignore[no-any-return]


def own_name(handler: Callable[..., Any]) -> str:
    """What a step is called that was given no name; empty for something that has none."""
    return str(getattr(_function(handler), "__name__", ""))


def _function(handler: Any) -> Any:
    while hasattr(handler, "func"):  # functools.partial
        handler = handler.func
    return handler
