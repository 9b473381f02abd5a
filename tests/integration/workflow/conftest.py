"""The database as programs use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everest import bootstrap
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import Database


@pytest.fixture
def db(database: MysqlUrl) -> Iterator[Database]:
    opened = bootstrap.database(database, Settings())
    yield opened
    opened.close()
