"""Airflow as a part of the stack: its configuration, its database, and how one knows that it works."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from datetime import datetime
from importlib.metadata import version
from typing import Any

from stack import machine
from stack.accounts import AIRFLOW_ADMIN, AIRFLOW_LOGINS, OWNER
from stack.layout import StackError, write_private
from stack.manager import render
from stack.programs import PEOPLE, Stack

DAG = "opname_posting"
MIGRATE_SECONDS = 300
WARM_SECONDS = 60


def prepare(stack: Stack) -> None:
    layout, credentials = stack.layout, stack.credentials
    passwords = layout.airflow_home / "login.json"
    layout.bench_dags.mkdir(exist_ok=True)

    def literal(text: object) -> str:
        return str(text).replace("%", "%%")

    text = render(
        "airflow.cfg",
        root=literal(layout.root),
        home=literal(layout.airflow_home),
        bench_dags=literal(layout.bench_dags),
        parallelism=machine.parallelism(),
        celery_url=literal(stack.celery_url),
        passwords_file=literal(passwords),
        users=",".join(f"{user}:{role}" for user, role in {AIRFLOW_ADMIN: "admin", **PEOPLE, **AIRFLOW_LOGINS}.items()),
        api_port=stack.ports.airflow,
        database_port=stack.ports.postgresql,
        database_password=credentials.postgresql_airflow,
        fernet_key=credentials.airflow_fernet,
        session_key=credentials.airflow_session,
        jwt_secret=credentials.airflow_jwt,
    )
    write_private(layout.airflow_home / "airflow.cfg", text)
    write_private(passwords, json.dumps(stack.passwords()))


def migrate(stack: Stack) -> bool:
    """Brings Airflow's tables to this version; False when they are. Importing Airflow only to look costs seconds."""
    stamp = stack.layout.data / "postgresql-airflow-version"
    installed = version("apache-airflow")
    if stamp.exists() and stamp.read_text(encoding="ascii") == installed:
        return False
    run_python(stack, ["-m", "airflow", "db", "migrate"], "Airflow's database could not be migrated", "airflow")
    stamp.write_text(installed, encoding="ascii")
    return True


def run_python(stack: Stack, arguments: list[str], failure: str, program: str = "up") -> None:
    """Runs a module to its end, as the owner of the schema. Raises StackError with its last lines."""
    env = stack.environment(program) | stack.connections(OWNER)
    done = subprocess.run(
        [stack.layout.python, *arguments],
        cwd=stack.layout.root,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=MIGRATE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        raise StackError("\n  ".join([f"{failure}:", *lines[-12:]]))


def answers(stack: Stack) -> str | None:
    """None when the API server is healthy, else what is in the way."""
    health = _health(stack)
    if isinstance(health, str):
        return health
    status = health["metadatabase"]["status"]
    if status != "healthy":
        return f"its database is {status}"
    # The first request to the tasks' side builds it, and blocks the server for seconds: better now than in a task.
    warm = _ask(stack, "/execution/health", timeout_seconds=WARM_SECONDS)
    return warm if isinstance(warm, str) else None


def works(stack: Stack, component: str, since: datetime) -> str | None:
    """The same for `scheduler` or `dag_processor`: did the one started since then report to the API server?"""
    health = _health(stack)
    if isinstance(health, str):
        return health
    last = health[component][f"latest_{component}_heartbeat"]
    # An earlier one's last heartbeat counts as healthy for a while.
    return None if last and datetime.fromisoformat(last) >= since else f"the {component} has not reported yet"


def knows_dag(stack: Stack) -> str | None:
    """None when the posting workflow can be triggered; a trigger of an unknown DAG would be answered with 404."""
    if not (stack.layout.root / "dags" / f"{DAG}.py").exists():
        return None
    login = json.dumps({"username": AIRFLOW_ADMIN, "password": stack.credentials.airflow_admin}).encode()
    token = _ask(stack, "/auth/token", data=login)
    if isinstance(token, str):
        return token
    dag = _ask(stack, f"/api/v2/dags/{DAG}", token=token["access_token"])
    if not isinstance(dag, str):
        return None
    errors = _ask(stack, "/api/v2/importErrors", token=token["access_token"])
    if not isinstance(errors, str) and errors["import_errors"]:
        return str(errors["import_errors"][0]["stack_trace"]).strip()[-400:]
    return dag


def _health(stack: Stack) -> Any:
    return _ask(stack, "/api/v2/monitor/health")


def _ask(stack: Stack, path: str, data: bytes | None = None, token: str = "", timeout_seconds: float = 5) -> Any:
    """The answer's JSON, or a sentence about why there is none."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(stack.airflow_url + path, data=data, headers=headers)
    try:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=timeout_seconds) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError, ValueError) as error:
        return f"{path}: {error}"
