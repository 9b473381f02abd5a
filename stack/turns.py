"""`up`, `down` and `clean` of one checkout take turns.

The lock is on the checkout's own folder. A file below .local would vanish with `clean`: the next `up` would lock
another one of that name, and work beside a `clean` that is still at it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from stack.layout import Layout


@contextmanager
def alone(layout: Layout) -> Iterator[None]:
    """Waits for whoever is at it. A process that dies has ended its turn."""
    folder = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY)  # not inherited by what is started meanwhile
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another `make up`, `make down` or `make clean` is at work here; waiting for it", flush=True)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
