"""Fixtures of tests that need the queue: a vhost of its own per test, a stand-in for Airflow, programs that run.

A folder of tests that needs them imports them in its conftest.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from ingest_consumer.addresses import Login, MysqlUrl
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests.fake_airflow import PASSWORD, USER, FakeAirflow
from tests.queue_rig import ROOT, Rows, Running, Vhost, environment

_numbers = itertools.count(1)


@pytest.fixture
def vhost(servers: Mapping[str, str]) -> Iterator[Vhost]:
    missing = [
        name
        for name in (
            "EVEREST_AMQP_URL",
            "EVEREST_RABBIT_MANAGEMENT_URL",
            "EVEREST_RABBIT_MANAGEMENT_USER",
            "EVEREST_RABBIT_MANAGEMENT_PASSWORD",
        )
        if name not in servers
    ]
    if missing:
        pytest.fail(f"no broker: {', '.join(missing)} not set; `make up` starts one, then source .local/stack.env")
    parts = urlsplit(servers["EVEREST_AMQP_URL"])
    management = Login(
        servers["EVEREST_RABBIT_MANAGEMENT_URL"].rstrip("/"),
        servers["EVEREST_RABBIT_MANAGEMENT_USER"],
        servers["EVEREST_RABBIT_MANAGEMENT_PASSWORD"],
    )
    name = f"everest_test_{os.getpid()}_{next(_numbers)}"
    made = Vhost(parts._replace(path=f"/{name}").geturl(), management, name)
    made.api("PUT", f"vhosts/{name}")
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    for user in {parts.username or "guest", management.user}:
        made.api("PUT", f"permissions/{name}/{user}", everything)
    yield made
    made.api("DELETE", f"vhosts/{name}")


@pytest.fixture
def airflow() -> Iterator[FakeAirflow]:
    fake = FakeAirflow()
    yield fake
    fake.close()


@pytest.fixture
def settings(database: MysqlUrl, vhost: Vhost, airflow: FakeAirflow) -> Settings:
    """As in production, but quick where a person would otherwise wait."""
    return Settings(
        mysql=database,
        amqp_url=vhost.amqp_url,
        airflow=Login(airflow.url, USER, PASSWORD),
        management=vhost.management,
        workers=1,
        poll=timedelta(milliseconds=20),
        dag_wait=timedelta(0),
        retry_max=timedelta(seconds=1),
        airflow_timeout=timedelta(seconds=2),
        relay_poll=timedelta(milliseconds=20),
    )


@pytest.fixture
def rows(settings: Settings) -> Iterator[Rows]:
    database = Database(settings.mysql, settings.mysql_timeout)
    yield Rows(database)
    database.close()


@pytest.fixture
def running(settings: Settings) -> Iterator[Running]:
    programs = Running()
    yield programs
    programs.stop()


@pytest.fixture
def process(settings: Settings) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `python -m ingest_consumer ...` as a process of its own, to be killed or asked for its exit code."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, code: str | None = None, **changes: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "ingest_consumer"]
        one = subprocess.Popen(
            [*command, *arguments],
            env=environment(settings, **changes),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(one)
        return one

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
        one.communicate()
