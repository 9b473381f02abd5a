"""What config/airflow_shortcuts.py takes for granted of Airflow; a new version of Airflow has to be read again."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# In a process of its own: it changes Airflow for good.
PROBE = """
import socket, sys
from types import SimpleNamespace
import airflow_shortcuts
from airflow.sdk.execution_time import comms, supervisor
from airflow.sdk.execution_time.supervisor import ActivitySubprocess

class Process:
    TimeoutExpired = TimeoutError
    waited = []
    def wait(self, timeout):
        self.waited.append(timeout)
        raise TimeoutError

ActivitySubprocess._on_child_started = lambda self, **_: setattr(self, "_last_successful_heartbeat", 7.0)
assert airflow_shortcuts.apply()

here, there = socket.socketpair()
task = comms.CommsDecoder[comms.ToTask, comms.ToSupervisor](socket=here)
again = comms.CommsDecoder[comms.ToTask, comms.ToSupervisor](socket=there)
assert task.body_decoder is task.err_decoder is again.body_decoder
assert task.body_decoder.validate_python({"type": "OKResponse", "ok": True}).ok

started = SimpleNamespace(_last_heartbeat_attempt=0, _last_successful_heartbeat=0)
ActivitySubprocess._on_child_started(started)
assert started._last_heartbeat_attempt == 7.0

one, other = socket.socketpair()
selector = SimpleNamespace(unregister=lambda sock: None)
ending = SimpleNamespace(selector=selector, _open_sockets={one: "logs", other: "requests"}, _exit_code=None,
                         _process=Process())
ActivitySubprocess._on_socket_closed(ending, one)
assert Process.waited == [], "the process has something to say yet"
ActivitySubprocess._on_socket_closed(ending, other)
assert Process.waited == [supervisor.MIN_HEARTBEAT_INTERVAL]

airflow_shortcuts.READ_VERSION = "another"
before = ActivitySubprocess._on_child_started
assert not airflow_shortcuts.apply() and ActivitySubprocess._on_child_started is before
print("as read")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("airflow")
    path = f"{ROOT}:{ROOT / 'plugins'}:{ROOT / 'config'}"
    return {"PYTHONPATH": path, "AIRFLOW_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)}


def test_each_shortcut_does_what_it_says_and_none_is_taken_with_another_version(environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "as read"


def test_airflow_is_the_version_whose_code_was_read() -> None:
    text = (ROOT / "config" / "airflow_shortcuts.py").read_text(encoding="utf-8")

    assert f'READ_VERSION = "{version("apache-airflow")}"' in text


def test_airflow_still_does_what_the_shortcuts_leave_out() -> None:
    """Else they have become needless, and go."""
    from airflow.sdk.execution_time import supervisor
    from airflow.sdk.execution_time.comms import CommsDecoder

    process = supervisor.ActivitySubprocess
    assert process.__attrs_attrs__._last_heartbeat_attempt.default == 0  # type: ignore[attr-defined]
    assert "_last_heartbeat_attempt) < MIN_HEARTBEAT_INTERVAL" in inspect.getsource(process._send_heartbeat_if_needed)
    assert "MIN_HEARTBEAT_INTERVAL" in inspect.getsource(process._monitor_subprocess)
    assert inspect.getsource(CommsDecoder).count("TypeAdapter(ToTask)") == 2
