"""The reconciler's world in a test: a real database, and stand-ins for Airflow's and RabbitMQ's HTTP interfaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everest.settings import MysqlUrl
from tests.integration.reconciler.world import World


@pytest.fixture
def world(database: MysqlUrl) -> Iterator[World]:
    made = World(database)
    yield made
    made.close()
