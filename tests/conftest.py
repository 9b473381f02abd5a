"""Fixtures of all tests: the real servers, and a private schema that is empty at the start of each test.

A missing server fails a test with a sentence; it never skips one, because a skipped proof looks like a proof.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from everest.errors import EverestError
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate

STACK_ENV = Path(__file__).resolve().parents[1] / ".local" / "stack.env"

# A test that leaves a transaction open would let the next one wait for ever.
EMPTYING_PATIENCE_SECONDS = 10


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses the running stack kills parts of it, and belongs to the pass that has it alone (`make test`)."""
    for item in items:
        if "live" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.acceptance)


class Servers(dict[str, str]):
    """Its values hold passwords: a failing test that prints its arguments must not print them."""

    def __repr__(self) -> str:
        return f"Servers({', '.join(sorted(self))})"


@pytest.fixture(scope="session")
def servers() -> Mapping[str, str]:
    """Where the servers are: EVEREST_* of the environment, else of .local/stack.env (`make up` writes it)."""
    found = Servers()
    if STACK_ENV.exists():
        for line in STACK_ENV.read_text().splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            if name.startswith("EVEREST_"):
                found[name] = "".join(shlex.split(value))
    found.update({name: value for name, value in os.environ.items() if name.startswith("EVEREST_")})
    return found


@pytest.fixture(scope="session")
def mysql_server(servers: Mapping[str, str]) -> MysqlUrl:
    """The database server, as the owner of the schema; tests use schemas of their own beside it."""
    if "EVEREST_MYSQL_URL" not in servers:
        pytest.fail("no database server: `make up` starts one, or set EVEREST_MYSQL_URL")
    url = MysqlUrl.parse(servers["EVEREST_MYSQL_URL"])
    try:
        store.connect(replace(url, schema="information_schema")).close()
    except EverestError as problem:
        pytest.fail(f"the database server of EVEREST_MYSQL_URL does not answer: {problem}; `make up` starts one")
    return url


def as_text(url: MysqlUrl) -> str:
    """The URL as a program of its own gets it; over TLS where the tests reach the server so."""
    tls = "?ssl_verify=0" if url.tls else ""
    return f"mysql://{quote(url.user)}:{quote(url.password, safe='')}@{url.host}:{url.port}/{url.schema}{tls}"


def private_schema(server: MysqlUrl, suffix: str = "") -> MysqlUrl:
    """A fresh, empty schema that no other test process uses."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    url = replace(server, schema=f"{server.schema}_test_{os.getpid()}{worker}{suffix}")
    administer(server, f"DROP DATABASE IF EXISTS `{url.schema}`")
    administer(server, f"CREATE DATABASE `{url.schema}` CHARACTER SET utf8mb4")
    return url


def drop_schema(url: MysqlUrl) -> None:
    administer(url, f"DROP DATABASE IF EXISTS `{url.schema}`")


def administer(server: MysqlUrl, statement: str) -> None:
    with closing(store.connect(replace(server, schema="information_schema"))) as conn, store.typed_errors():
        conn.query(statement)


@pytest.fixture
def empty_schema(mysql_server: MysqlUrl) -> Iterator[MysqlUrl]:
    """A schema without a table, for this test alone."""
    url = private_schema(mysql_server, "_empty")
    yield url
    drop_schema(url)


@pytest.fixture(scope="session")
def migrated_schema(mysql_server: MysqlUrl) -> Iterator[MysqlUrl]:
    """Built once through the migrations; tests ask for `database`."""
    url = private_schema(mysql_server)
    try:
        migrate(url, report=lambda line: None)
        yield url
    finally:
        drop_schema(url)


@pytest.fixture
def database(migrated_schema: MysqlUrl) -> MysqlUrl:
    """A migrated private schema in which every table is empty but for the three accounts the migrations bring."""
    with closing(store.connect(migrated_schema)) as conn, store.transaction(conn):
        empty_all_tables(conn)
    return migrated_schema


@pytest.fixture
def connection(database: MysqlUrl) -> Iterator[Any]:
    """A prepared connection to `database`; what it did not commit is rolled back."""
    conn = store.connect(database)
    yield conn
    conn.close()


def empty_all_tables(conn: store.Connection) -> None:
    """TRUNCATE does not fire the triggers that keep audit_log append-only."""
    with conn.cursor() as cursor:
        cursor.execute(f"SET SESSION lock_wait_timeout = {EMPTYING_PATIENCE_SECONDS}")
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
            " AND table_type = 'BASE TABLE' AND table_name NOT IN ('schema_migrations', 'akun')"
        )
        tables = [name for (name,) in cursor.fetchall()]
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}', EXISTS(SELECT 1 FROM `{name}`)" for name in tables))
        for name in [name for name, has_rows in cursor.fetchall() if has_rows]:
            cursor.execute(f"TRUNCATE TABLE `{name}`")
        cursor.execute("DELETE FROM akun")
        cursor.execute(
            "INSERT INTO akun (kode_akun, nama) VALUES ('1010030030', 'Persediaan barang'),"
            " ('7010150', 'Laba selisih persediaan'), ('7020020', 'Rugi selisih persediaan')"
        )
