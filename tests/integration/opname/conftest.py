from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import pytest

from everest.settings import MysqlUrl
from tests.integration.opname.foreseen import Foresight
from tests.integration.opname.walk import Walker

ONE_IN = 3
"""So many scenarios preview their documents in a short run; all of them in `make test-all`."""


@pytest.fixture
def walker(database: MysqlUrl, request: pytest.FixtureRequest) -> Iterator[Walker]:
    """A scenario proves as well that the preview of its documents tells what becomes of them."""
    is_short = "not long" in request.config.option.markexpr
    foresees = not is_short or crc32(request.node.name.encode()) % ONE_IN == 0
    walker = (Foresight if foresees else Walker)(database)
    yield walker
    walker.close()
