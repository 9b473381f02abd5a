"""The process manager, supervisor from PyPI: its configuration, its start, and what it is asked over its socket."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from string import Template
from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc.client import Fault, ProtocolError, ServerProxy  # only our own manager answers  # nosec B411

from supervisor.xmlrpc import SupervisorTransport

from stack import processes
from stack.layout import Layout, StackError, write_private
from stack.programs import Stack
from stack.roster import GROUPS, Program, programs
from stack.shape import Shape

TEMPLATES = Path(__file__).with_name("templates")
STOPPED = frozenset({"STOPPED", "EXITED", "FATAL"})
START_RETRIES = 30  # each waits a second longer than the one before: about eight minutes of trying
LOST = (OSError, HTTPException, ProtocolError, ExpatError)  # also in the middle of an answer


class Gone(StackError):
    """The process manager does not answer any more; `make up` starts it again."""

    def __init__(self) -> None:
        super().__init__("the process manager does not answer any more; `make up` starts it again")


@dataclass(frozen=True)
class State:
    """What the manager says of one program; `seconds` is how long it has been running."""

    name: str
    state: str
    pid: int
    seconds: int
    problem: str

    @property
    def is_running(self) -> bool:
        return self.state == "RUNNING"


def render(template: str, **values: object) -> str:
    """A configuration file from stack/templates. Raises KeyError when a value is missing."""
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(
        {name: str(value) for name, value in values.items()}
    )


def configuration(layout: Layout, shape: Shape) -> str:
    """supervisord.conf: nothing starts by itself (`up` keeps the order), everything comes back by itself.

    Paths are relative to the checkout, where the manager is started: supervisor expands some values once and others
    twice, so no way of writing them suits a checkout path that holds a percent sign.
    """

    def inside(path: Path) -> Path:
        return path.relative_to(layout.root) if path.is_relative_to(layout.root) else path

    head = render(
        "supervisord.conf",
        logs=inside(layout.logs),
        pidfile=inside(layout.manager_pid_file),
        socket=inside(layout.socket),
    )
    sections = [head]
    every = programs(shape)
    for program in every:
        sections.append(
            f"[program:{program.name}]\n"
            f"command = {inside(layout.python)} -m stack.launch {program.name}\n"
            "autostart = false\n"
            "autorestart = true\n"
            f"startsecs = {program.start_seconds}\n"
            f"startretries = {START_RETRIES}\n"
            f"stopsignal = {program.stop_signal}\n"
            f"stopwaitsecs = {program.stop_seconds}\n"
            f"stopasgroup = {'true' if program.stop_children else 'false'}\n"
            "killasgroup = true\n"
            "redirect_stderr = true\n"
            f"stdout_logfile = {inside(layout.logs)}/{program.name}.log\n"
            "stdout_logfile_maxbytes = 10MB\n"
            "stdout_logfile_backups = 2\n"
        )
    for priority, group in enumerate(GROUPS):
        members = ",".join(program.name for program in every if program.group == group)
        if not members:
            continue
        sections.append(f"[group:{group}]\nprograms = {members}\npriority = {priority}\n")
    return "\n".join(sections)


def start(layout: Layout, shape: Shape, shell: Mapping[str, str] = os.environ) -> None:
    """Starts it in a session of its own and waits until it answers. Raises StackError with its last words."""
    write_private(layout.manager_config, configuration(layout, shape))
    env = {key: value for key, value in shell.items() if not key.startswith(("PYTHON", "SUPERVISOR_", "AIRFLOW_"))}
    env |= {processes.MARK: str(layout.root), processes.PROGRAM_MARK: "manager", "PYTHONPATH": str(layout.root)}
    with (layout.logs / "manager.out").open("wb") as out:
        process = subprocess.Popen(
            [layout.python, "-m", "supervisor.supervisord", "-c", layout.manager_config],
            cwd=layout.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if is_answering(layout):
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    words = (layout.logs / "manager.out").read_text(encoding="utf-8", errors="replace").strip()
    raise StackError(f"the process manager did not start: {words[-500:] or 'see .local/logs/manager.log'}")


def adopt(layout: Layout, shape: Shape) -> None:
    """Tells the running manager which programs there are now. A group that is no more, or has other members, is
    stopped; nothing is started."""
    write_private(layout.manager_config, configuration(layout, shape))
    try:
        with _server(layout) as server:
            ((added, changed, removed),) = server.reloadConfig()
            for group in [*removed, *changed]:
                server.stopProcessGroup(group, True)
                server.removeProcessGroup(group)
            for group in [*changed, *added]:
                server.addProcessGroup(group)
    except LOST:
        raise Gone from None
    except Fault as fault:
        raise StackError(f"the process manager refused: {fault.faultString}") from None


def is_answering(layout: Layout) -> bool:
    try:
        with _server(layout) as server:
            return bool(server.getState()["statename"] == "RUNNING")
    except (*LOST, Fault):
        return False


def states(layout: Layout) -> dict[str, State]:
    """The state of each program. Raises StackError when the manager does not answer."""
    try:
        with _server(layout) as server:
            rows = server.getAllProcessInfo()
    except LOST:
        raise Gone from None
    answer = {}
    for row in rows:
        seconds = int(row["now"]) - int(row["start"]) if row["statename"] == "RUNNING" else 0
        answer[row["name"]] = State(row["name"], row["statename"], int(row["pid"]), seconds, row["spawnerr"])
    return answer


def start_program(layout: Layout, program: Program) -> None:
    """Asks for a start without waiting for it; one that is at it already is fine."""
    with _tolerating(60), _server(layout) as server:  # 60 = ALREADY_STARTED
        server.startProcess(f"{program.group}:{program.name}", False)


def stop_program(layout: Layout, program: Program) -> None:
    with _tolerating(70), _server(layout) as server:  # 70 = NOT_RUNNING
        server.stopProcess(f"{program.group}:{program.name}", True)


def fingerprint(stack: Stack, program: Program) -> str:
    """Changes when the program has to be restarted: its command, its environment or the code and settings it read."""
    layout = stack.layout
    environment = stack.environment(program.name, shell={})
    digest = hashlib.sha256(json.dumps([stack.command(program.name), environment], sort_keys=True).encode("utf-8"))
    settings = [layout.local / name for name in program.settings]
    for file in [*settings, *_code(layout, program.code)]:
        digest.update(str(file).encode("utf-8") + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _code(layout: Layout, folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        for file in sorted((layout.root / folder).rglob("*")):
            if file.suffix in (".py", ".sql") and file.is_file():
                yield file


@contextlib.contextmanager
def _tolerating(code: int) -> Iterator[None]:
    try:
        yield
    except LOST:
        raise Gone from None
    except Fault as fault:
        if fault.faultCode != code:
            raise StackError(f"the process manager refused: {fault.faultString}") from None


@contextlib.contextmanager
def _server(layout: Layout) -> Iterator[Any]:
    transport = SupervisorTransport(None, None, f"unix://{layout.socket}")
    try:
        yield ServerProxy("http://127.0.0.1", transport=transport).supervisor
    finally:
        transport.close()
