"""A program that is told to stop hears of it at whatever moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import os, signal, sys
from ingest_consumer.stopping import stop_event

stop = stop_event(leaves={leaves})
try:
    with stop._cond:  # as the main thread has it for a moment in each wait
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
except SystemExit as end:
    print("left with", end.code)
print("stopped", stop.wait(30))
"""


@pytest.mark.parametrize(("leaves", "said"), [(False, "stopped True\n"), (True, "left with 0\nstopped True\n")])
def test_a_signal_that_finds_the_main_thread_at_the_event_itself_stops_it_all_the_same(leaves: bool, said: str) -> None:
    """It would else wait for a lock that it holds, until somebody kills it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(leaves=leaves)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == said
