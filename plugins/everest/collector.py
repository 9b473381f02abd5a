"""Python's garbage collector, at rest while very many rows pass: for whoever reads a large file or writes a report."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Every 700 new rows the collector would look for cycles, which they have none of, and every so often through all
    that a server holds: half of the time that a file or a report takes there. Whoever paused it wakes it again; of two
    at once the first to begin is enough."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
