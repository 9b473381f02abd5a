"""What a program's login may do at the real Airflow: what its work needs, and nothing that changes Airflow itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from everest.opname.workflow import POST_OPNAME
from stack.accounts import AIRFLOW_LOGINS
from stack.layout import Layout
from stack.programs import Stack
from tests.acceptance.live import Live
from tests.builders import Line

DAG = f"/dags/{POST_OPNAME.name}"
CONNECTION = {"connection_id": "stolen", "conn_type": "mysql", "host": "127.0.0.1"}
ACTING = [name for name, role in AIRFLOW_LOGINS.items() if role == "user"]
LOOKING = [name for name, role in AIRFLOW_LOGINS.items() if role == "viewer"]


@contextmanager
def as_program(live: Live, name: str) -> Iterator[httpx.Client]:
    url = live.env["EVEREST_AIRFLOW_URL"]
    login = {"username": name, "password": Stack.open(Layout.here()).passwords()[name]}
    with httpx.Client(base_url=f"{url}/api/v2", trust_env=False, timeout=30) as client:
        token = client.post(f"{url}/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


@pytest.mark.parametrize("name", AIRFLOW_LOGINS)
def test_a_program_sees_runs_and_marks_and_changes_nothing_of_airflow(live: Live, name: str) -> None:
    with as_program(live, name) as client:
        for path in (DAG, f"{DAG}/dagRuns", "/eventLogs?limit=1"):
            assert client.get(path).status_code == 200, path
        answers = {
            "connections": client.get("/connections"),
            "a connection": client.post("/connections", json=CONNECTION),
            "variables": client.get("/variables"),
            "a pool": client.post("/pools", json={"name": "stolen", "slots": 1}),
        }
        assert {what: answer.status_code for what, answer in answers.items()} == dict.fromkeys(answers, 403)


@pytest.mark.parametrize("name", LOOKING)
def test_who_only_looks_starts_and_pauses_nothing(live: Live, name: str) -> None:
    with as_program(live, name) as client:
        trigger = {"dag_run_id": f"by-{name}", "logical_date": None, "conf": {}}
        assert client.post(f"{DAG}/dagRuns", json=trigger).status_code == 403
        assert client.patch(DAG, json={"is_paused": True}).status_code == 403


@pytest.mark.parametrize("name", ACTING)
def test_who_acts_may_leave_a_note_on_a_run(live: Live, name: str) -> None:
    document = live.document([Line(f"X-LOGIN-{time.time_ns()}", "1", "1", "1")])
    live.publish(document.message)
    run = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")["dag_run_id"]
    with as_program(live, name) as client:
        assert client.patch(f"{DAG}/dagRuns/{run}", json={"note": name}).status_code == 200
        assert client.get(f"{DAG}/dagRuns/{run}").json()["note"] == name
