"""A schema of the benchmark's own beside the product's, on the same server: migrated, and dropped at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate


@contextmanager
def private_schema(server: MysqlUrl, what: str = "bench") -> Iterator[MysqlUrl]:
    """what: tells two apart that are there at once."""
    url = replace(server, schema=f"{server.schema}_{what}_{os.getpid()}")
    _administer(server, f"DROP DATABASE IF EXISTS `{url.schema}`")
    _administer(server, f"CREATE DATABASE `{url.schema}` CHARACTER SET utf8mb4")
    try:
        migrate(url, report=lambda line: None)
        yield url
    finally:
        _administer(server, f"DROP DATABASE IF EXISTS `{url.schema}`")


def _administer(server: MysqlUrl, statement: str) -> None:
    with closing(store.connect(replace(server, schema="information_schema"))) as conn, store.typed_errors():
        conn.query(statement)
