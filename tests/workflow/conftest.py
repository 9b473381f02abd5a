"""`world`: every behaviour is shown in memory and over real rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workflow.world import MemoryWorld, MysqlWorld, World


@pytest.fixture(params=["memory", "mysql"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
    else:
        yield request.getfixturevalue("mysql_world")


@pytest.fixture
def mysql_world(database: object) -> Iterator[MysqlWorld]:
    """For what needs several sessions at once."""
    opened = MysqlWorld(database)  # type: ignore[arg-type]
    yield opened
    opened.close()
