"""The three private servers: their configuration, their first data folder, and how one knows that they answer.

A data folder is made under another name and renamed when it is complete, so a start that was cut short is repeated.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
from psycopg2 import sql

from stack import machine
from stack.accounts import CELERY_VHOST, MYSQL_ACCOUNTS, RABBITMQ_OWNER
from stack.broker_definitions import definitions
from stack.layout import StackError, write_private
from stack.machine import ServiceUser
from stack.manager import render
from stack.ports import LOOPBACK
from stack.programs import Stack

INIT_SECONDS = 180
TASK_QUEUE = "default"  # Airflow's own name for the queue of tasks that name none


def prepare_mariadb(stack: Stack) -> None:
    user = ServiceUser.of(stack.layout, "mysql")
    folder, config = stack.layout.data / "mariadb", stack.layout.config
    accounts = config / "mariadb-accounts.sql"
    write_private(accounts, mariadb_accounts(stack), user.owner)
    settings = config / "mariadb.cnf"
    write_private(
        settings, render("mariadb.cnf", datadir=folder, port=stack.ports.mariadb, init_file=accounts), user.owner
    )
    if folder.exists():
        return
    tool = machine.require(machine.program("mariadb-install-db"), "MariaDB")
    draft = _draft(folder, user)
    # root can log in over the socket only, and only as the owner of the process: nobody needs its password.
    arguments = [
        f"--datadir={draft}",
        "--auth-root-authentication-method=socket",
        "--skip-test-db",
        "--skip-name-resolve",
    ]
    _initialise(user, [tool, "--no-defaults", *arguments], "MariaDB's data folder")
    draft.rename(folder)


def mariadb_accounts(stack: Stack) -> str:
    """The schema, its owner, and an account per program without any right yet: `everest grant` gives those."""
    owner = render("mariadb-accounts.sql", owner_password=stack.credentials.mariadb_owner)
    programs = [
        f"CREATE USER IF NOT EXISTS '{name}'@'%';\n"
        f"ALTER USER '{name}'@'%' IDENTIFIED BY '{stack.credentials.mariadb[name]}';\n"
        for name in MYSQL_ACCOUNTS
    ]
    return owner + "".join(programs)


def prepare_rabbitmq(stack: Stack) -> None:
    user = ServiceUser.of(stack.layout, "rabbitmq")
    home, config = stack.layout.data / "rabbitmq", stack.layout.config
    for folder in (home, home / "mnesia", home / "log"):
        user.make_folder(folder)
    cookie = home / ".erlang.cookie"
    if not cookie.exists():
        write_private(cookie, stack.credentials.erlang_cookie, user.owner)
        cookie.chmod(0o400)
    # In the folder it works in: a path with a space is not understood in rabbitmq.conf.
    told = home / "definitions.json"
    write_private(told, json.dumps(definitions(stack.credentials.rabbitmq), indent=2, sort_keys=True), user.owner)
    text = render(
        "rabbitmq.conf",
        amqp_port=stack.ports.amqp,
        management_port=stack.ports.rabbitmq_management,
        prometheus_port=stack.ports.rabbitmq_prometheus,
        definitions=told.name,
    )
    write_private(config / "rabbitmq.conf", text, user.owner)
    write_private(config / "rabbitmq-plugins", "[rabbitmq_management, rabbitmq_prometheus].\n", user.owner)


def prepare_postgresql(stack: Stack) -> None:
    user = ServiceUser.of(stack.layout, "postgres")
    folder, config = stack.layout.data / "postgresql", stack.layout.config
    write_private(config / "postgresql.conf", render("postgresql.conf", port=stack.ports.postgresql), user.owner)
    if folder.exists():
        return
    tools = machine.require(machine.postgresql_bin(), "PostgreSQL")
    password = config / "postgresql-first-password"
    write_private(password, stack.credentials.postgresql_admin + "\n", user.owner)
    draft = _draft(folder, user)
    arguments = [f"--pgdata={draft}", "--username=everest_admin", f"--pwfile={password}", "--auth=scram-sha-256"]
    _initialise(user, [tools / "initdb", *arguments, "--encoding=UTF8", "--locale=C.UTF-8"], "PostgreSQL's data folder")
    password.unlink()
    draft.rename(folder)


def provision_postgresql(stack: Stack) -> None:
    """Airflow's role and database, made or corrected."""
    with closing(_postgresql(stack)) as connection:
        connection.autocommit = True  # CREATE DATABASE refuses to be part of a transaction
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = 'airflow'")
            verb = "ALTER" if cursor.fetchone() else "CREATE"
            password = sql.Literal(stack.credentials.postgresql_airflow)
            cursor.execute(sql.SQL(verb + " ROLE airflow LOGIN PASSWORD {}").format(password))
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = 'airflow'")
            if cursor.fetchone() is None:
                cursor.execute("CREATE DATABASE airflow OWNER airflow")


def mariadb_answers(stack: Stack) -> str | None:
    """None when it does, else what is in the way."""
    try:
        pymysql.connect(
            host=LOOPBACK,
            port=stack.ports.mariadb,
            user="everest_owner",
            password=stack.credentials.mariadb_owner,
            connect_timeout=2,
        ).close()
    except (pymysql.MySQLError, OSError) as error:
        return str(error)
    return None


def postgresql_answers(stack: Stack) -> str | None:
    try:
        _postgresql(stack).close()
    except psycopg2.OperationalError as error:
        return str(error).strip()
    return None


def rabbitmq_answers(stack: Stack) -> str | None:
    """The management API is up last; it also knows whether the vhosts are."""
    answer = _management(stack, "health/checks/virtual-hosts")
    return answer if isinstance(answer, str) else None


def workers_listen(stack: Stack) -> str | None:
    """None when as many Celery workers as there should be take tasks."""
    consumers = _management(stack, f"consumers/{CELERY_VHOST}")
    if isinstance(consumers, str):
        return consumers
    listening = len([one for one in consumers if one["queue"]["name"] == TASK_QUEUE])
    wanted = stack.shape.workers
    return None if listening >= wanted else f"{listening} of {wanted} workers take tasks"


def _management(stack: Stack, path: str) -> Any:
    """The answer's JSON, or a sentence about why there is none."""
    user, password = RABBITMQ_OWNER, stack.credentials.rabbitmq_owner
    login = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    request = urllib.request.Request(f"{stack.management_url}/api/{path}", headers={"Authorization": f"Basic {login}"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=3) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError, ValueError) as error:
        return str(error)


def _postgresql(stack: Stack) -> psycopg2.extensions.connection:
    return psycopg2.connect(
        host=LOOPBACK,
        port=stack.ports.postgresql,
        user="everest_admin",
        password=stack.credentials.postgresql_admin,
        dbname="postgres",
        connect_timeout=2,
    )


def _draft(folder: Path, user: ServiceUser) -> Path:
    """An empty folder of that user beside the final one."""
    draft = folder.with_name(folder.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    user.make_folder(draft)
    return draft


def _initialise(user: ServiceUser, argv: list[str | Path], what: str) -> None:
    done = subprocess.run(
        user.command(argv),
        cwd="/",
        env={"PATH": machine.SYSTEM_PATH, "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=INIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise StackError(f"{what} could not be made: {(done.stderr or done.stdout).strip()[-800:]}")
