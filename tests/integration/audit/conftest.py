from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from everest.settings import MysqlUrl
from tests.integration.audit.world import Books


@pytest.fixture
def books(database: MysqlUrl, connection: Any) -> Iterator[Books]:
    books = Books(database, connection)
    yield books
    books.close()
