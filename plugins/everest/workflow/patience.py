"""How long a handler may take that somebody else's process calls: the reconciler, for a deadline, a failure, a cancel.

A task is ended by Airflow. The reconciler has the repairs of all other runs to make, and a handler that waits for a
mail server would hold up every one of them. It says how patient it is (`bounded`); where nobody does, a handler has
all the time it wants. Its transaction is lost when it is interrupted, together with its connection, which may stand in
the middle of a statement; what has to be recorded all the same is done again without it (`left_out`).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import TypeVar

from everest.errors import HandlerHangs
from everest.words import say

T = TypeVar("T")

RING_AGAIN_S = 1.0
"""A handler that swallows the interruption hears it again."""


@dataclass(frozen=True)
class _Patience:
    limit: timedelta
    tell: Callable[[str], None]


_BOUND: ContextVar[_Patience | None] = ContextVar("bound", default=None)
_LEFT_OUT: ContextVar[bool] = ContextVar("left_out", default=False)


class _Over(BaseException):
    """No `except Exception` of a handler is to stop it."""


@contextmanager
def bounded(limit: timedelta, tell: Callable[[str], None]) -> Iterator[None]:
    """Handlers called inside may take so long. tell: is given a sentence about each that took longer. Only in the main
    thread of a process: nothing interrupts another one."""
    token = _BOUND.set(_Patience(limit, tell))
    try:
        yield
    finally:
        _BOUND.reset(token)


@contextmanager
def left_out() -> Iterator[None]:
    """Handlers of an end are not called inside; their failure is recorded as if they had hung."""
    token = _LEFT_OUT.set(True)
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def is_left_out() -> bool:
    return _LEFT_OUT.get()


def call(what: str, handler: Callable[[], T]) -> T:
    """Raises HandlerHangs. what: names the handler and its run, for whoever is told."""
    patience = _BOUND.get()
    if patience is None or threading.current_thread() is not threading.main_thread():
        return handler()
    seconds = patience.limit.total_seconds()
    alarm = _Alarm()
    try:
        with alarm.rings_after(seconds):
            outcome = alarm.interrupts(handler)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        if not alarm.has_rung:
            raise
        raise _hung(what, seconds, patience) from error
    if alarm.has_rung:  # it swallowed the interruption, which may have cut a statement in two
        raise _hung(what, seconds, patience)
    return outcome


def _hung(what: str, seconds: float, patience: _Patience) -> HandlerHangs:
    patience.tell(f"{what} does not end within {seconds:g} s")
    return HandlerHangs(say("id", "engine.handler_hangs", seconds=f"{seconds:g}"))


class _Alarm:
    """Raises _Over in the middle of what takes too long, and nowhere else: a signal comes between any two bytecodes, in
    `rings_after` as well, and there it would leave the timer running. The driver may turn _Over into an error of its
    own, so who asks looks at `has_rung`."""

    def __init__(self) -> None:
        self.has_rung = False

    def interrupts(self, handler: Callable[[], T]) -> T:
        """What the alarm may end: this call, and whatever it calls."""
        return handler()

    @contextmanager
    def rings_after(self, seconds: float) -> Iterator[None]:
        """Another timer of this process goes on behind it."""
        began = time.monotonic()
        ring_before = signal.signal(signal.SIGALRM, self._ring)
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, RING_AGAIN_S)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, ring_before)
            if left:
                signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)), interval)

    def _ring(self, _signum: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is _Alarm.interrupts.__code__ and frame.f_locals.get("self") is self:
                self.has_rung = True
                raise _Over
            frame = frame.f_back
