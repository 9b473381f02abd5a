from __future__ import annotations

from collections.abc import Iterator

import pytest

from everest.settings import MysqlUrl
from tests.integration.opname.walk import Walker


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    walker = Walker(database)
    yield walker
    walker.close()
