"""The process manager alone, a real one: whoever comes while it ends, or after it has vanished, gets a new one."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack import down, manager, processes, report, turns
from stack.credentials import Credentials
from stack.layout import Layout, StackError
from stack.ports import Ports, free_base
from stack.programs import Stack
from stack.up import with_manager

# Whoever starts the manager does not wait for its end.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """Of a checkout with nothing in it but an environment."""
    root = tmp_path / "a checkout"
    root.mkdir()
    (root / ".venv").symlink_to(sys.prefix)
    ports = Ports.choose({"EVEREST_PORT_BASE": str(free_base())})
    stack = Stack(Layout(root), ports, Credentials())
    stack.layout.make_folders()
    yield stack
    down.down(stack.layout)
    assert processes.find(stack.layout) == []


def test_a_manager_that_was_told_to_end_is_replaced_wherever_its_end_is_noticed(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    with_manager(stack, None, lambda: None)
    old = processes.manager(stack.layout)
    assert old is not None
    old.send(signal.SIGTERM)
    done = 0

    def work() -> None:
        nonlocal done
        while old.is_alive():
            manager.states(stack.layout)
        manager.states(stack.layout)
        done += 1

    with_manager(stack, stack.ports, work)
    assert done == 1
    found = processes.manager(stack.layout)
    assert found is not None
    assert found.pid != old.pid


def test_up_and_clean_take_turns_although_clean_removes_everything_below_local(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    with turns.alone(stack.layout):
        cleaning = threading.Thread(target=down.clean, args=[stack.layout])
        cleaning.start()
        cleaning.join(0.2)
        assert cleaning.is_alive()
        assert stack.layout.local.exists()
    cleaning.join()
    assert "waiting for it" in capsys.readouterr().out
    assert not stack.layout.local.exists()
    with turns.alone(stack.layout):
        pass


def test_what_can_be_asked_for_in_the_logs_has_a_file_of_that_name_and_what_has_none_yet_is_named(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[str] = []
    monkeypatch.setattr("os.execvp", lambda _program, argv: followed.extend(argv))
    with pytest.raises(StackError, match="relay has no log yet"):
        report.logs(stack.layout, ["relay"])
    text = manager.configuration(stack.layout, stack.shape)
    (stack.layout.root / text.split("logfile = ")[1].splitlines()[0]).touch()
    report.logs(stack.layout, ["manager"])
    assert followed[-1] == str(stack.layout.logs / "manager.log")
