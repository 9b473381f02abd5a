"""The reconciler as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests import fake_airflow, fake_management
from tests.conftest import as_text
from tests.integration.reconciler.world import World

ROOT = Path(__file__).resolve().parents[3]


def environment(world: World, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        "EVEREST_MYSQL_URL": as_text(world.url),
        "EVEREST_AMQP_URL": "amqp://127.0.0.1/%2F",
        "EVEREST_AIRFLOW_URL": world.airflow.url,
        "EVEREST_AIRFLOW_USER": fake_airflow.USER,
        "EVEREST_AIRFLOW_PASSWORD": fake_airflow.PASSWORD,
        "EVEREST_RABBIT_MANAGEMENT_URL": world.broker.url,
        "EVEREST_RABBIT_MANAGEMENT_USER": fake_management.USER,
        "EVEREST_RABBIT_MANAGEMENT_PASSWORD": fake_management.PASSWORD,
        "EVEREST_RECONCILER_PERIOD_S": "0.2",
        "EVEREST_RECONCILER_HTTP_TIMEOUT_S": "60",
    } | more


def start(env: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "everest.reconciler", *arguments],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
