"""The peer of P6: Airflow as `pip install` leaves it, in an environment of its own, with Airflow's own defaults.

Set is only what has to be, so that it can run beside the stack at all: where its database, its DAGs and its port are,
one key for all its processes, and no example DAGs. Its database is one of its own on the stack's PostgreSQL. The
environment stays in .local/bench-plain for the next time; processes, database and everything else are gone afterwards.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psycopg2
from psycopg2 import sql

from bench.airflow import Airflow
from stack import machine, processes
from stack.layout import Layout
from stack.ports import LOOPBACK
from stack.programs import Stack

PROGRAM = "bench-plain"
DATABASE = "airflow_bench_plain"
NEEDS = ("apache-airflow==3.3.2", "psycopg2-binary", "asyncpg", "pandas")
START_SECONDS = 300
COMPONENTS = ("api-server", "scheduler", "dag-processor")


@contextmanager
def running(layout: Layout, dag_file: Path) -> Iterator[Airflow]:
    """That Airflow, with this one DAG, ready to be triggered."""
    folder = layout.local / PROGRAM
    python = _environment(folder / "venv", layout.root / "requirements.txt")
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    (home / "dags").mkdir(parents=True)
    shutil.copyfile(dag_file, home / "dags" / dag_file.name)
    port = _free_port()
    stack = Stack.open(layout)
    env = _settings(layout, stack, home, port)
    try:
        _create_database(stack)
        airflow = [str(python), "-m", "airflow"]
        with (home / "log").open("wb") as log:
            subprocess.run([*airflow, "db", "migrate"], cwd=home, env=env, check=True, stdout=log, stderr=log)
            _start([*airflow, "api-server"], home, env, log)
            _until_healthy(port, home / "log")
            for component in COMPONENTS[1:]:
                _start([*airflow, component], home, env, log)
        passwords = json.loads((home / "simple_auth_manager_passwords.json.generated").read_text(encoding="utf-8"))
        found = Airflow(f"http://{LOOPBACK}:{port}", "admin", passwords["admin"])
        found.wait_for_dags(dag_file.stem)
        yield found
    finally:
        processes.end(lambda: processes.find(layout, [PROGRAM]), patience_seconds=15)
        _drop_database(stack)
        shutil.rmtree(home, ignore_errors=True)


def _environment(venv: Path, constraints: Path) -> Path:
    """Made once, with pip alone and the versions of our pins, so that settings and not versions are compared."""
    python, stamp = venv / "bin" / "python", venv / "bench.stamp"
    wanted = "\n".join([*NEEDS, constraints.read_text(encoding="utf-8")])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making {venv} with pip (a few minutes, once)", flush=True)
    # As pip does it by itself: it writes bytecode, unless this shell forbids it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True, env=env)
    subprocess.run([python, "-m", "pip", "install", "-qq", "-c", constraints, *NEEDS], check=True, env=env)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _settings(layout: Layout, stack: Stack, home: Path, port: int) -> dict[str, str]:
    database = f"airflow:{stack.credentials.postgresql_airflow}@{LOOPBACK}:{stack.ports.postgresql}/{DATABASE}"
    return {
        # `make down` finds its processes by these, should this one be killed.
        processes.MARK: str(layout.root),
        processes.PROGRAM_MARK: PROGRAM,
        "SPT_NOENV": "1",
        "PATH": f"{home.parent / 'venv' / 'bin'}{os.pathsep}{machine.SYSTEM_PATH}",
        "HOME": os.environ.get("HOME", str(home)),
        "LANG": "C.UTF-8",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://{LOOPBACK}:{port}",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
    }


def _create_database(stack: Stack) -> None:
    _drop_database(stack)
    _administer(stack, sql.SQL("CREATE DATABASE {} OWNER airflow").format(sql.Identifier(DATABASE)))


def _drop_database(stack: Stack) -> None:
    _administer(stack, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))


def _administer(stack: Stack, statement: sql.Composable) -> None:
    with closing(
        psycopg2.connect(
            host=LOOPBACK,
            port=stack.ports.postgresql,
            user="everest_admin",
            password=stack.credentials.postgresql_admin,
            dbname="postgres",
        )
    ) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)


def _start(command: list[str], home: Path, env: dict[str, str], log: object) -> None:
    subprocess.Popen(
        command,
        cwd=home,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _until_healthy(port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with httpx.Client(trust_env=False, timeout=30) as client:
                client.get(f"http://{LOOPBACK}:{port}/api/v2/monitor/health").raise_for_status()
                client.get(f"http://{LOOPBACK}:{port}/execution/health")
                return
        except httpx.HTTPError as problem:
            if time.monotonic() > deadline:
                words = log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:]
                raise RuntimeError("\n".join([f"the plain Airflow did not start: {problem}", *words])) from None
            time.sleep(0.5)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
