"""One open transaction with everything a handler may need on it. Leaving the `with` by an error rolls back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from everest.errors import EverestError, HandlerHangs, TransientDatabaseError
from everest.settings import Settings
from everest.store.books import MysqlBooks
from everest.store.database import Connection, snapshot, transaction, typed_errors
from everest.store.reversals import MysqlReversals
from everest.store.runs import MysqlRunStore


@dataclass(frozen=True)
class UnitOfWork:
    """conn: the connection, for queries of other modules."""

    conn: Connection
    settings: Settings
    runs: MysqlRunStore
    books: MysqlBooks

    @property
    def reversals(self) -> MysqlReversals:
        return MysqlReversals(self.conn)

    @cached_property
    def now(self) -> datetime:
        """Aware UTC, the database's clock when it was asked first."""
        with self.conn.cursor() as cursor:
            cursor.execute("SELECT UTC_TIMESTAMP(6)")
            (now,) = cursor.fetchone()
        return now.replace(tzinfo=UTC)  # type: ignore[no-any-return]

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is written inside is undone, alone, when the `with` is left by an error; not nested. Raises
        TransientDatabaseError when the whole transaction is lost with it (a deadlock drops the savepoint too), and
        HandlerHangs, after which nobody knows in what state the connection is."""
        with typed_errors():
            self.conn.query("SAVEPOINT everest")
            try:
                with typed_errors():
                    yield
            except (TransientDatabaseError, HandlerHangs):
                raise
            except BaseException:
                self.conn.query("ROLLBACK TO SAVEPOINT everest")
                raise


class Database:
    """Opens units of work one after another on one connection, and replaces a connection that was lost."""

    def __init__(self, connect: Callable[[], Connection], settings: Settings) -> None:
        self._connect = connect
        self._settings = settings
        self._conn: Connection | None = None

    def transaction(self) -> AbstractContextManager[UnitOfWork]:
        return self._opened(transaction)

    def snapshot(self) -> AbstractContextManager[UnitOfWork]:
        """For whoever only looks: everything is read of one moment, and the server refuses every write (1792)."""
        return self._opened(snapshot)

    @contextmanager
    def _opened(self, kind: Callable[[Connection], AbstractContextManager[Connection]]) -> Iterator[UnitOfWork]:
        if self._conn is None:
            self._conn = self._connect()
        conn = self._conn
        try:
            with kind(conn):
                books = MysqlBooks(conn, self._settings)
                yield UnitOfWork(conn, self._settings, MysqlRunStore(conn), books)
        except (TransientDatabaseError, HandlerHangs):
            # Which of them leave the connection usable is not worth knowing: a new one costs a few milliseconds.
            self.close()
            raise
        except EverestError:
            raise
        except BaseException:
            # It may have come from a signal, in the middle of a statement whose result nobody fetched.
            self.close()
            raise

    def close(self) -> None:
        if self._conn is not None:
            conn, self._conn = self._conn, None
            with suppress(Exception):  # closing a lost connection may fail; it is gone either way
                conn.close()
