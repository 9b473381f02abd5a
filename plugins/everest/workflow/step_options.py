"""The options that several kinds of steps share, for `builder`: loops, waits for signals, waits for workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypedDict

from everest.workflow.definition import Mode
from everest.workflow.handlers import Handler, State


class RepeatOptions(TypedDict, total=False):
    """condition: instead of a key, `condition(state) -> bool`. max_iterations: jumps back; one more fails the run."""

    condition: Callable[[State], bool] | None
    max_iterations: int | None
    name: str | None


class EndOfWait(TypedDict, total=False):
    """What every wait for others may have. timeout: then the run fails (504), or goes on with on_timeout merged."""

    timeout: timedelta | None
    on_timeout: Mapping[str, Any] | None
    compensate_with: Handler | None


class SignalOptions(EndOfWait, total=False):
    """result_key: where the payload lands, else it merges. match_payload: keys and values it must have.
    correlation_key: a key of the state; only a signal with its value counts."""

    result_key: str | None
    match_payload: Mapping[str, Any] | None
    correlation_key: str | None


class GroupOptions(EndOfWait, total=False):
    """How many of the workflows must complete, and where their public states land."""

    mode: Mode
    quorum: int | None
    result_key: str
    name: str | None
