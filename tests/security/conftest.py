"""A database server of these tests alone: rights and certificates are the server's, not a schema's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.grants import grant
from everest.store.migrations import migrate
from tests import private_servers
from tests.conftest import administer, empty_all_tables
from tests.queue_fixtures import airflow, process, rows, running, settings, vhost
from tests.security.accounts import ACCOUNTS, password_of

__all__ = ["airflow", "process", "rows", "running", "settings", "vhost"]


@pytest.fixture(scope="session")
def own_server() -> Iterator[MysqlUrl]:
    with private_servers.mariadb() as url:
        yield url


@pytest.fixture(scope="session")
def granted_schema(own_server: MysqlUrl) -> MysqlUrl:
    """The migrated schema in which every program's account has its rights."""
    administer(own_server, f"CREATE DATABASE {own_server.schema} CHARACTER SET utf8mb4")
    migrate(own_server, report=lambda line: None)
    for account in ACCOUNTS:
        administer(own_server, f"CREATE USER '{account}'@'%' IDENTIFIED BY '{password_of(account)}'")
    grant(own_server, report=lambda line: None)
    return own_server


@pytest.fixture
def database(granted_schema: MysqlUrl) -> MysqlUrl:
    """As the administrator, for what a test prepares and looks at; every table empty."""
    with closing(store.connect(granted_schema)) as conn, store.transaction(conn):
        empty_all_tables(conn)
    return granted_schema


def as_account(url: MysqlUrl, account: str) -> MysqlUrl:
    """The same schema, as a program."""
    return replace(url, user=account, password=password_of(account))
