"""A database server of the benchmark's own, with the stack's settings.

LOAD DATA is the floor of P2. Both sides are measured here, away from the stack and its books: the same
program, the same settings file, the same disk. It lives in .local/bench/ and is gone afterwards.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import MySQLdb

from everest.errors import EverestError
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate
from stack import machine, processes
from stack.layout import Layout, write_private
from stack.machine import ServiceUser
from stack.manager import render
from stack.ports import LOOPBACK

SCHEMA = "everest_bench"
START_SECONDS = 60
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class BenchServer:
    """A running server with a migrated schema. `pid` is the server's, for its CPU time."""

    url: MysqlUrl
    pid: int

    def loader(self) -> store.Connection:
        """A connection in the same session settings as ours that may also LOAD DATA LOCAL."""
        url = self.url
        return store.prepare(
            MySQLdb.connect(
                host=url.host,
                port=url.port,
                user=url.user,
                passwd=url.password,
                db=url.schema,
                charset="utf8mb4",
                local_infile=1,
            )
        )

    def cpu_seconds(self) -> float:
        """What the server has used so far. A busy neighbour makes everything slower, but costs it no CPU."""
        text = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / CLOCK_TICKS


@contextmanager
def running(layout: Layout) -> Iterator[BenchServer]:
    """Starts it on a free port and removes it at the end. Raises StackError when MariaDB is not installed."""
    user = ServiceUser.of(layout, "mysql")
    home = layout.local / "bench"
    shutil.rmtree(home, ignore_errors=True)
    layout.local.mkdir(exist_ok=True)
    user.make_folder(home)
    folder, password, port = home / "mariadb", secrets.token_hex(16), _free_port()
    config = _write_settings(home, user, port, password)
    # `make down` finds the server by these, should this process be killed.
    env = {processes.MARK: str(layout.root), processes.PROGRAM_MARK: "bench-mariadb", "PATH": machine.SYSTEM_PATH}
    install = machine.require(machine.program("mariadb-install-db"), "MariaDB")
    user.make_folder(folder)
    arguments = [
        f"--datadir={folder}",
        "--auth-root-authentication-method=socket",
        "--skip-test-db",
        "--skip-name-resolve",
    ]
    subprocess.run(
        user.command([install, "--no-defaults", *arguments]), cwd="/", env=env, check=True, capture_output=True
    )
    server = machine.require(machine.program("mariadbd"), "MariaDB")
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            user.command([server, f"--defaults-file={config}"]),
            cwd="/",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        url = MysqlUrl(LOOPBACK, port, "bench", password, SCHEMA)
        _wait(url, process, home / "log")
        migrate(url, report=lambda line: None)
        yield BenchServer(url, process.pid)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _write_settings(home: Path, user: ServiceUser, port: int, password: str) -> Path:
    accounts, config = home / "accounts.sql", home / "mariadb.cnf"
    write_private(
        accounts,
        f"CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb4;\n"
        f"CREATE USER IF NOT EXISTS 'bench'@'{LOOPBACK}' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL PRIVILEGES ON `{SCHEMA}%`.* TO 'bench'@'{LOOPBACK}';\n",
        user.owner,
    )
    settings = render("mariadb.cnf", datadir=home / "mariadb", port=port, init_file=accounts)
    # The last one counts. Everything that makes a write slow or durable stays as the stack has it.
    write_private(config, settings + "\nlocal-infile = ON\n", user.owner)
    return config


def _wait(url: MysqlUrl, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with closing(store.connect(url)):
                return
        except EverestError as problem:
            if process.poll() is not None or time.monotonic() > deadline:
                words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
                raise RuntimeError("\n".join([f"the benchmark's database did not start: {problem}", *words])) from None
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
