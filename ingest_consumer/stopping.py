"""How the programs that run until they are told to stop hear of it: SIGTERM and SIGINT as an event."""

from __future__ import annotations

import _thread
import signal
import threading
from typing import Any


def stop_event(*, leaves: bool = False) -> threading.Event:
    """Set by the first signal. leaves: it also ends the main thread where it stands, by SystemExit(0)."""
    stop = threading.Event()

    def hear(_number: int, _frame: Any) -> None:
        # Not here: the main thread, which runs this, may just hold the event's lock (it waits for the event all the
        # time), and would wait for itself for ever. The bare call, because Thread.start takes locks as well.
        _thread.start_new_thread(stop.set, ())
        if leaves:
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hear)
    return stop
