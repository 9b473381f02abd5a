"""Processes of ours are found by their mark and ended; those of anybody else are not looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack import processes
from stack.layout import Layout

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)
PARENT = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); time.sleep(600)"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []
    yield children
    for child in children:
        child.kill()
        child.communicate()


def start(started: list[subprocess.Popen[str]], code: str, root: Path, program: str) -> subprocess.Popen[str]:
    env = os.environ | {processes.MARK: str(root), processes.PROGRAM_MARK: program}
    child = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
    started.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def test_only_processes_with_the_mark_of_this_checkout_are_ours(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    ours = start(started, STUBBORN, tmp_path, "consumer")
    start(started, STUBBORN, tmp_path / "other", "consumer")
    assert [(found.pid, found.program) for found in processes.find(Layout(tmp_path))] == [(ours.pid, "consumer")]
    assert processes.find(Layout(tmp_path), ["relay"]) == []


def test_whoever_does_not_end_when_asked_is_ended_with_its_children(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    layout = Layout(tmp_path)
    start(started, PARENT, tmp_path, "airflow-scheduler")
    assert len(processes.find(layout)) == 2
    assert processes.end(lambda: processes.find(layout), patience_seconds=0.2) == 2
    assert processes.find(layout) == []


def test_the_caller_and_its_ancestors_are_spared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from stack import processes; from stack.layout import Layout;"
        f"print(processes.find(Layout(Path({str(tmp_path)!r}))))"
    )
    env = os.environ | {
        processes.MARK: str(tmp_path),
        processes.PROGRAM_MARK: "up",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_manager_is_found_without_its_pid_file_and_no_child_of_it_is_taken_for_it(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    layout = Layout(tmp_path)
    assert processes.manager(layout) is None
    manager = start(started, PARENT, tmp_path, "manager")
    assert len(processes.find(layout, ["manager"])) == 2
    found = processes.manager(layout)
    assert found is not None
    assert found.pid == manager.pid
    processes.end(lambda: processes.find(layout), patience_seconds=0)
