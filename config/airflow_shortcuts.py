"""What Airflow 3.3.2 does anew for every task though once is enough, done once (decision 0056).

Imported by the processes that start tasks. It reaches into Airflow, so it does so for the one version whose code was
read, and leaves any other as it is; tests/unit/stack/test_airflow_shortcuts.py fails when the code it relies on moves.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from airflow import __version__
from airflow.sdk.execution_time import comms, supervisor
from pydantic import TypeAdapter

READ_VERSION = "3.3.2"


def apply() -> bool:
    """Whether this is the version."""
    if __version__ != READ_VERSION:
        return False
    _first_heartbeat_after_the_interval()
    _end_noticed_when_it_comes()
    _one_decoder()
    return True


def _first_heartbeat_after_the_interval() -> None:
    """The start of a task is a sign of life, and the API server notes it as one; Airflow's supervisor sends another at
    the first occasion behind it, one request in three of a short task."""
    tells_the_start = supervisor.ActivitySubprocess._on_child_started

    def started(self: Any, **arguments: Any) -> None:
        tells_the_start(self, **arguments)
        self._last_heartbeat_attempt = self._last_successful_heartbeat

    supervisor.ActivitySubprocess._on_child_started = started  # type: ignore[method-assign]


def _end_noticed_when_it_comes() -> None:
    """A task's process closes its sockets a moment before it is gone. The supervisor that looks in between would sleep
    for a whole min_heartbeat_interval with nothing to wake it, and keep its slot; now it waits for the process."""
    forgets = supervisor.ActivitySubprocess._on_socket_closed

    def closed(self: Any, sock: Any) -> None:
        forgets(self, sock)
        if not self._open_sockets and self._exit_code is None:
            with suppress(self._process.TimeoutExpired):
                self._process.wait(timeout=supervisor.MIN_HEARTBEAT_INTERVAL)

    supervisor.ActivitySubprocess._on_socket_closed = closed  # type: ignore[method-assign]


def _one_decoder() -> None:
    """A task makes the decoder of all answers it may get, twice; it is the same in each."""
    decoder: TypeAdapter[Any] = TypeAdapter(comms.ToTask)

    def adapter(wanted: Any) -> TypeAdapter[Any]:
        return decoder if wanted is comms.ToTask else TypeAdapter(wanted)

    comms.TypeAdapter = adapter  # type: ignore[misc, assignment]
