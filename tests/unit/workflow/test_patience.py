"""A handler that takes too long is interrupted, and nothing but the handler."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest

from everest.errors import HandlerHangs
from everest.workflow import patience

FILE = patience.__file__


@pytest.fixture(autouse=True)
def an_alarm_of_somebody_else() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Ringing:
    """Rings before bytecode number `at` of the module under test. `has_come`: there were so many."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.has_come = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != FILE or frame.f_code.co_name == "_ring":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.has_come and signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            self._left -= 1
            if self._left == 0:
                self.has_come = True
                signal.raise_signal(signal.SIGALRM)
        return self


def test_whenever_the_alarm_rings_the_handler_is_done_or_hangs_and_no_timer_is_left() -> None:
    """One that rang in the clean-up ended the clean-up, went on ringing, and at last ended the process."""
    heard: list[str] = []

    def before(*_: Any) -> None:
        heard.append("somebody else's")

    signal.signal(signal.SIGALRM, before)
    ends: set[str] = set()
    at, ringing = 0, Ringing(0)
    while at == 0 or ringing.has_come:
        at, ringing = at + 1, Ringing(at + 1)
        with patience.bounded(timedelta(hours=1), lambda _: None):
            tracer = sys.gettrace()
            sys.settrace(ringing)
            try:
                ends.add(patience.call("a handler", lambda: "done"))
            except HandlerHangs:
                ends.add("hangs")
            finally:
                sys.settrace(tracer)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), f"bytecode {at}"
        assert signal.getsignal(signal.SIGALRM) is before, f"bytecode {at}"
    assert at > 100, "it came by all of them"
    assert ends == {"done", "hangs"}


def test_a_handler_that_calls_another_one_is_interrupted_by_the_alarm_whose_time_is_over() -> None:
    told: list[str] = []

    def inner() -> None:
        signal.pause()

    def outer() -> str:
        with pytest.raises(HandlerHangs), patience.bounded(timedelta(seconds=0.05), told.append):
            patience.call("the inner one", inner)
        return "done"

    with patience.bounded(timedelta(hours=1), told.append):
        assert patience.call("the outer one", outer) == "done"
    assert told == ["the inner one does not end within 0.05 s"]
