from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from zlib import crc32

import pytest

from everest.opname.workflow import REVERSE_OPNAME
from everest.settings import MysqlUrl, Settings
from tests.builders import Document
from tests.integration.opname.deciding import surprising
from tests.integration.opname.foreseen import Foresight
from tests.integration.opname.reversing import Backwards
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


@pytest.fixture
def backwards(database: MysqlUrl) -> Iterator[Backwards]:
    """Walkers of the reversal's workflow, each with connections of its own."""
    made: list[Walker] = []

    def another(**settings: Any) -> Walker:
        made.append(Walker(database, Settings(**settings), REVERSE_OPNAME))
        return made[-1]

    yield another
    for walker in made:
        walker.close()


@pytest.fixture
def waiting(walker: Walker, connection: Any) -> Document:
    document = surprising(connection)
    assert walker.post(document.shadow_id) == "WAITING"
    return document


@pytest.fixture
def others(database: MysqlUrl) -> Iterator[Callable[[], Walker]]:
    """Further walkers, each with connections of its own."""
    made: list[Walker] = []

    def another() -> Walker:
        made.append(Walker(database))
        return made[-1]

    yield another
    for walker in made:
        walker.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool
