"""The one place that knows the MySQL driver: connections, transactions, typed errors, named queries.

Every connection is strict, utf8mb4, UTC and READ COMMITTED (under REPEATABLE READ two postings that delete
nothing and insert deadlock), and never retries by itself: a retry loop belongs to whoever owns the work.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Any

import aiosql
import MySQLdb
import MySQLdb.cursors

from everest.errors import DatabaseError, DuplicateKey, SettingsError, TransientDatabaseError
from everest.settings import MysqlUrl

Connection = Any
"""A MySQLdb connection (the provider's hook gives the same type); autocommit is off."""

SQL_DIR = Path(__file__).resolve().parents[3] / "sql"

# Deadlock, lock wait, record changed (MariaDB snapshot isolation): somebody else is at the same rows.
LOCKED = frozenset({1213, 1205, 1020})
# And server gone, lost connection (two numbers).
TRANSIENT = LOCKED | {2006, 2013, 2055}
# Cannot reach the server at all, or it is starting, stopping or full (for this user: 1203, 1226).
# 2026: no TLS with it, as with a server that ends meanwhile, or whose certificate will be renewed.
TLS_FAILED = 2026
UNREACHABLE = frozenset({2002, 2003, TLS_FAILED, 1040, 1053, 1077, 1079, 1203, 1226, 1927, 3169})
ACCESS_DENIED = 1045
# It ended a connection that was idle (4031), or lost the way to us (1158 to 1161).
CUT_OFF = frozenset({4031, 1158, 1159, 1160, 1161})
# It does not know us, has no such schema (for us), or nobody has its name.
DENIED = frozenset({1044, 1045, 1049, 1698, 2005})
# It changes places with another one: read only (1290, 1836), offline (3032), no part of its cluster (1047), or its
# group takes no commit (3100, 3101). A new connection finds the one that took over.
FAILING_OVER = frozenset({1290, 1836, 3032, 1047, 3100, 3101})
PASSING = TRANSIENT | UNREACHABLE | CUT_OFF | FAILING_OVER
"""The same call may succeed a little later, or on another connection."""
DUPLICATE = 1062
OUT_OF_SYNC = 2014
NOT_NULL = 1048
"""Strict mode refuses a NULL where none may be."""
TOO_LARGE = 1153
"""A statement larger than the server takes; by itself it ends the connection, which looks like the trouble of a moment:
2006 or 2013."""
BYTES_AT_ONCE = 2 * 1024 * 1024
"""Of several statements in one trip; a large one goes alone."""
LOCK_WAIT_SECONDS = 20
LONGEST_TEXT_BYTES = 16 * 1024 * 1024
"""What GROUP_CONCAT may make, as much as MariaDB's packet holds by default; by itself MySQL cuts at 1,024."""

SESSION = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    f"NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS},"
    f" group_concat_max_len = {LONGEST_TEXT_BYTES}"
)

PREPARE = (
    f"{SESSION}; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
    " SELECT @@sql_mode, @@character_set_client, @@default_storage_engine, @@max_allowed_packet"
)


def connect(url: MysqlUrl, connect_timeout: int = 5, answer_within: timedelta | None = None) -> Connection:
    """A prepared connection.

    answer_within: how long a statement may take until its first byte comes back; then the connection counts as lost
    (2013). None: for ever, also when the server, or the way to it, has forgotten the connection without a word.
    Raises TransientDatabaseError when the server cannot be reached, SettingsError when it is not one we can trust with
    books.
    """
    with typed_errors():
        conn = MySQLdb.connect(
            host=url.host,
            port=url.port,
            user=url.user,
            passwd=url.password,
            db=url.schema,
            charset="utf8mb4",
            connect_timeout=connect_timeout,
            **patience(answer_within),
            **_tls(url),
        )
    return prepare(conn)


def patience(answer_within: timedelta | None) -> dict[str, int]:
    """The driver's arguments for it; the driver takes whole seconds."""
    if answer_within is None:
        return {}
    seconds = max(1, ceil(answer_within.total_seconds()))
    return {"read_timeout": seconds, "write_timeout": seconds}


def _tls(url: MysqlUrl) -> dict[str, Any]:
    if url.tls is None:
        return {}
    # The library would verify against a ca that it is given, whatever the mode.
    files = {"ca": url.tls.ca if url.tls.verify else None, "cert": url.tls.cert, "key": url.tls.key}
    mode = "VERIFY_IDENTITY" if url.tls.verify else "REQUIRED"
    return {"ssl_mode": mode, "ssl": {name: path for name, path in files.items() if path is not None}}


def prepare(conn: Connection) -> Connection:
    """Brings a fresh connection, ours or the hook's, into the session every query relies on, and asserts it."""
    with typed_errors():
        if conn.character_set_name() != "utf8mb4":
            conn.set_character_set("utf8mb4")
        with conn.cursor() as cursor:
            cursor.execute(PREPARE)  # one trip for all three
            while cursor.description is None:
                cursor.nextset()
            sql_mode, charset, engine, most_bytes = cursor.fetchone()
    if "STRICT_ALL_TABLES" not in sql_mode or charset != "utf8mb4" or engine.lower() != "innodb":
        raise SettingsError(
            f"the database session is not safe for books: sql_mode={sql_mode}, charset={charset}, engine={engine};"
            " needed are STRICT_ALL_TABLES, utf8mb4 and InnoDB"
        )
    _refuse_too_large(conn, int(most_bytes))
    return conn


def _refuse_too_large(conn: Connection, most_bytes: int) -> None:
    """From here on a statement that the server would not take is refused before it is sent, and its reason is known."""
    itself, send = weakref.ref(conn), type(conn).query

    def query(statement: bytes) -> None:
        if len(statement) >= most_bytes:
            text = f"the statement has {len(statement):,} bytes, the server's max_allowed_packet is {most_bytes:,}"
            raise MySQLdb.OperationalError(TOO_LARGE, text)
        send(itself(), statement)

    conn.query = query


@contextmanager
def transaction(conn: Connection) -> Iterator[Connection]:
    """Commits at the end, rolls back on every error (after 1205 a later COMMIT would keep half of the work)."""
    with typed_errors():
        try:
            yield conn
            conn.commit()
        except BaseException:
            with suppress(MySQLdb.Error):  # the connection is gone; so is the transaction
                conn.rollback()
            raise


@contextmanager
def snapshot(conn: Connection) -> Iterator[Connection]:
    """Everything read inside is of one moment, and nothing can be written: for whatever reads with several queries.
    What was open on the connection before is rolled back."""
    with typed_errors():
        conn.rollback()
        conn.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.query("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        try:
            yield conn
        finally:
            with suppress(MySQLdb.Error):
                conn.rollback()


@contextmanager
def typed_errors() -> Iterator[None]:
    """Driver errors leave as ours, judged by their number; what a signal raised in the middle of a statement leaves as
    it is."""
    try:
        yield
    except MySQLdb.Error as error:
        if (interruption := _interruption(error)) is not None:
            raise interruption from None
        raise typed(error) from error


def _interruption(error: MySQLdb.Error) -> BaseException | None:
    """A timeout or the end of the process is an exception that a signal raises: behind the statement, before its result
    is fetched. Closing the cursor then fails as out of sync, and would hide it: a timeout would look like our bug."""
    if not error.args or error.args[0] != OUT_OF_SYNC:
        return None
    cause = error.__context__
    while isinstance(cause, MySQLdb.Error):
        cause = cause.__context__
    return cause


_WHERE = "of EVEREST_MYSQL_URL, for tasks the extra of Airflow's connection"
_ADVICE = {
    TLS_FAILED: f"; see ssl_ca, ssl_cert and the host name {_WHERE}",
    ACCESS_DENIED: f"; the account may be for TLS only: ssl_ca, or ssl_cert and ssl_key, {_WHERE}",
}
"""All that MariaDB says of a missing TLS is that access is denied."""


def typed(error: MySQLdb.Error) -> DatabaseError:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    text += _ADVICE.get(number, "")
    if number in PASSING or isinstance(error, MySQLdb.InterfaceError):
        return TransientDatabaseError(text, number)
    if number == DUPLICATE:
        return DuplicateKey(text, number)
    return DatabaseError(text, number)


def load_queries(name: str | Path, as_tuples: bool = False, streaming: bool = False) -> Any:
    """The named queries of sql/queries/<name>.sql, or of another module's own file, as functions
    `query(conn, **parameters)`; rows are dicts, or tuples where thousands of them become a frame. A literal % in a
    file is written %%.

    streaming: tuples that stay on the server until they are fetched; until the last one, or the cursor is closed, the
    connection can do nothing else."""
    file = name if isinstance(name, Path) else SQL_DIR / "queries" / f"{name}.sql"
    kind: type[Any] = MySQLdb.cursors.Cursor if as_tuples else MySQLdb.cursors.DictCursor
    if streaming:
        kind = MySQLdb.cursors.SSCursor
    return aiosql.from_path(file, "mysqldb", kwargs={"cursorclass": kind}, encoding="utf-8")


class Statements:
    """Writes that go to the server in one round trip: for trivial ones the way there is most of what they cost. The
    first that fails is raised, and none behind it is run."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._texts: list[str] = []
        self._refusals: dict[int, Exception] = {}

    def add(self, query: Any, parameters: dict[str, Any], refusal: Exception | None = None) -> None:
        """query: a named one; its parameters are bound now. refusal: what it means when it would write a NULL that its
        column refuses, which is how a statement of a batch says that its row is not as expected."""
        if refusal is not None:
            self._refusals[len(self._texts)] = refusal
        with self._conn.cursor() as cursor:
            self._texts.append(cursor.mogrify(query.sql, parameters).rstrip().rstrip(";") + ";")

    def send(self) -> None:
        done = 0
        with self._conn.cursor() as cursor:
            try:
                for texts in self._trips():
                    cursor.execute("\n".join(texts))
                    done += 1
                    while cursor.nextset():
                        done += 1
            except MySQLdb.Error as error:
                if error.args[:1] == (NOT_NULL,) and done in self._refusals:
                    raise self._refusals[done] from error
                raise

    def _trips(self) -> Iterator[list[str]]:
        """All of them at once, as a rule."""
        together: list[str] = []
        size = 0
        for text in self._texts:
            if together and size + len(text) > BYTES_AT_ONCE:
                yield together
                together, size = [], 0
            together.append(text)
            size += len(text)
        if together:
            yield together


def last_insert_id(conn: Connection) -> int:
    return int(conn.insert_id())


def aware(instant: datetime | None) -> datetime | None:
    """What a column of instants holds, naive UTC, as everest reckons with it."""
    return None if instant is None else instant.replace(tzinfo=UTC)
