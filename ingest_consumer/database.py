"""The one place of the consumer that knows the MySQL driver: connections, transactions, which errors pass.

A connection never reconnects by itself: named locks and half-done transactions would vanish unseen. After any error
it is thrown away, which rolls back, and the owner reads the row again before it does anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from pymysql.err import DataError, IntegrityError, MySQLError

from ingest_consumer import tls
from ingest_consumer.addresses import MysqlUrl

Connection = Any
"""A PyMySQL connection; autocommit is off, except for a reader's."""

CONNECT_TIMEOUT_S = 5
CR_SSL_CONNECTION_ERROR = 2026
ACCESS_DENIED = 1045
LOCK_WAIT_S = 5


class _Connection(pymysql.connections.Connection):
    """Refuses a server that offers no TLS where TLS was asked for; PyMySQL would log in without it."""

    def _request_authentication(self) -> None:
        if self.ssl and not self.server_capabilities & CLIENT.SSL:  # type: ignore[attr-defined]
            raise pymysql.OperationalError(
                CR_SSL_CONNECTION_ERROR, "TLS is asked for, but the server does not offer it"
            )
        super()._request_authentication()  # type: ignore[misc]


class Database:
    """One lazily opened connection, for one thread. is_reader: it only ever reads, each statement for itself, and no
    COMMIT is sent after it."""

    def __init__(self, url: MysqlUrl, timeout: timedelta, is_reader: bool = False) -> None:
        self._url = url
        self._is_reader = is_reader
        self._timeout_s = max(1, int(timeout.total_seconds()))
        self._conn: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits at the end; on any error the connection is dropped, and with it the transaction."""
        try:
            if self._conn is None:
                self._conn = self._connect()
            yield self._conn
            if not self._is_reader:
                self._conn.commit()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(MySQLError, OSError):
                conn.close()

    @property
    def is_open(self) -> bool:
        return self._conn is not None

    def lock_name(self, purpose: str) -> str:
        """The named lock of this schema for `purpose`."""
        return self._url.lock_name(purpose)

    def _connect(self) -> Connection:
        conn = _Connection(
            host=self._url.host,
            port=self._url.port,
            user=self._url.user,
            password=self._url.password,
            database=self._url.schema,
            charset="utf8mb4",
            autocommit=self._is_reader,
            ssl=None if self._url.tls is None else self._url.tls.context(),
            ssl_disabled=self._url.tls is None,  # PyMySQL 1.2 would else ask for it by itself
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=self._timeout_s,
            write_timeout=self._timeout_s,
            init_command=(
                "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
                "NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', "
                f"innodb_lock_wait_timeout = {min(LOCK_WAIT_S, self._timeout_s)}"
            ),
        )
        with conn.cursor() as cursor:
            # under REPEATABLE READ a re-read inside one transaction would show the old row
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return conn


def said(error: BaseException) -> str:
    """A database error for a log, with what to look at in the settings."""
    words = tls.said(error, "EVEREST_MYSQL_URL")
    if isinstance(error, MySQLError) and error.args[:1] == (ACCESS_DENIED,):  # all that MariaDB says of a missing TLS
        return f"{words}; the account may be for TLS only: ssl_ca, or ssl_cert and ssl_key, of EVEREST_MYSQL_URL"
    return words


def passes(error: Exception) -> bool:
    """Whether a database error is about the server (wait and try again) and not about what we sent (a bug)."""
    return isinstance(error, (MySQLError, OSError)) and not isinstance(error, (DataError, IntegrityError))
