from __future__ import annotations

from collections.abc import Iterator

import pytest

from everest.settings import MysqlUrl
from tests.integration.opname.foreseen import Foresight


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Foresight]:
    """Each scenario proves as well that the preview of its documents tells what becomes of them."""
    walker = Foresight(database)
    yield walker
    walker.close()
