"""The stack's own ports: an uncommon block, on the loopback only, so that servers already here are never met.

EVEREST_PORT_BASE moves the block, EVEREST_PORT_<NAME> one port. The choice is written down by `up`, so that every
later command finds the stack without the variables.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from stack.layout import StackError, write_private

DEFAULT_BASE = 28000
# Proposed instead: below 32768, where Linux begins to hand out ports to clients.
OTHER_BASES = (31_000, 32_000, 30_000, 29_000, 27_000, 26_000, 24_000)
LOOPBACK = "127.0.0.1"

# The last two digits are those of the usual port: 3306, 5672, 15672, 15692, 25672, 4369, 5432, 8080.
OFFSETS = {
    "mariadb": 6,
    "amqp": 72,
    "rabbitmq_management": 73,
    "rabbitmq_prometheus": 92,
    "rabbitmq_distribution": 71,
    "epmd": 69,
    "postgresql": 32,
    "airflow": 80,
}


@dataclass(frozen=True)
class Ports:
    mariadb: int
    amqp: int
    rabbitmq_management: int
    rabbitmq_prometheus: int
    rabbitmq_distribution: int
    epmd: int
    postgresql: int
    airflow: int

    @classmethod
    def choose(cls, env: Mapping[str, str] = os.environ, earlier: Ports | None = None) -> Ports:
        """The environment decides, then the earlier choice, then the default. Raises StackError."""
        problems: list[str] = []

        def number(name: str) -> int | None:
            text = env.get(name, "")
            if not text:
                return None
            if text.isdecimal() and 1024 <= int(text) <= 65_000:
                return int(text)
            problems.append(f"{name}={text!r} must be a port number from 1024 to 65000")
            return None

        base = number("EVEREST_PORT_BASE")
        chosen: dict[str, int] = {}
        for name, offset in OFFSETS.items():
            single = number(f"EVEREST_PORT_{name.upper()}")
            kept = getattr(earlier, name) if earlier else DEFAULT_BASE + offset
            chosen[name] = single or (base + offset if base else kept)
        if len(set(chosen.values())) < len(chosen):
            problems.append(f"two services have the same port: {chosen}")
        if problems:
            raise StackError("; ".join(problems))
        return cls(**chosen)

    @classmethod
    def load(cls, file: Path) -> Ports | None:
        """The choice of the last `up`, None when there was none or it is of another time."""
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            return cls(**{field.name: int(stored[field.name]) for field in fields(cls)})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, file: Path) -> None:
        write_private(file, json.dumps(asdict(self), indent=2) + "\n")


def is_free(port: int) -> bool:
    """Whether nobody listens there; a connection that is only fading away does not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def require_free(ports: Ports, names: Iterable[str]) -> None:
    """Raises StackError with one sentence per taken port: which, for what, held by whom, and what to do."""
    taken = [name for name in names if not is_free(getattr(ports, name))]
    if taken:
        sentences = [f"port {(port := getattr(ports, name))} ({name}) is taken{_holder(port)}" for name in taken]
        raise StackError(
            f"{'; '.join(sentences)}. Stop that program, or give the stack other ports: `make up"
            f" EVEREST_PORT_BASE={free_base()}` moves all of them, EVEREST_PORT_{taken[0].upper()}=... this one."
        )


def free_base() -> int:
    """A block in which nobody listens now, to be proposed."""
    free = (base for base in OTHER_BASES if all(is_free(base + offset) for offset in OFFSETS.values()))
    return next(free, OTHER_BASES[0])


def _holder(port: int) -> str:
    """' by NAME (pid N)' when /proc lets us see it: whoever listens, else whose connection begins at this port."""
    if program := _program(port, listening=True):
        return f" by {program}"
    if program := _program(port, listening=False):
        return f" by a connection of {program}; the system hands out ports from 32768 up to those, so choose lower ones"
    return ""


def _program(port: int, listening: bool) -> str | None:
    """The socket's inode leads to its process."""
    wanted = f"{port:04X}"
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            rows = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for columns in map(str.split, rows):
            if (columns[3] == "0A") == listening and columns[1].rsplit(":", 1)[1] == wanted:
                inodes.add(f"socket:[{columns[9]}]")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link) in inodes for link in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name} (pid {folder.name})"
        except OSError:
            continue
    return None
