"""The one file that knows every concrete class: settings, connection, stores, wired for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from everest.settings import MysqlUrl, Settings, mysql_url
from everest.store.database import Connection, connect, prepare
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow.definition import Definition


def database(url: MysqlUrl | None = None, settings: Settings | None = None) -> Database:
    """Units of work on the database of EVEREST_MYSQL_URL, or of the url given. Raises SettingsError."""
    where = url or mysql_url()
    return Database(lambda: connect(where), settings or Settings.from_environment())


def database_from(raw_connection: Callable[[], Connection], settings: Settings | None = None) -> Database:
    """Units of work on connections that somebody else opens, such as Airflow's MySQL hook."""
    return Database(lambda: prepare(raw_connection()), settings or Settings.from_environment())


def unit_of_work(url: MysqlUrl | None = None, settings: Settings | None = None) -> AbstractContextManager[UnitOfWork]:
    """One transaction on a connection of its own, for a command that needs no second one."""
    return database(url, settings).transaction()


def definitions() -> Mapping[str, Definition]:
    """The workflows this site runs, by name. Imported late: pandas comes with them."""
    from everest.opname.workflow import POST_OPNAME

    return {POST_OPNAME.name: POST_OPNAME}
