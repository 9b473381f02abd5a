"""The one file that knows every concrete class: settings, connection, stores, wired for whoever asks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from types import ModuleType

from everest.errors import SettingsError
from everest.settings import MysqlUrl, Settings, mysql_url
from everest.store.database import Connection, connect, patience, prepare
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import deployment
from everest.workflow.definition import Definition

DEFAULT_TASK_QUEUE = "default"
"""Airflow's queue for tasks that name none ([operators] default_queue)."""


def database(
    url: MysqlUrl | None = None, settings: Settings | None = None, answer_within: timedelta | None = None
) -> Database:
    """Units of work on the database of EVEREST_MYSQL_URL, or of the url given. answer_within: for a process that
    nobody watches; see `connect`. Raises SettingsError."""
    where = url or mysql_url()
    return Database(lambda: connect(where, answer_within=answer_within), settings or Settings.from_environment())


def database_from(
    raw_connection: Callable[..., Connection],
    settings: Settings | None = None,
    answer_within: timedelta | None = None,
) -> Database:
    """Units of work on connections that somebody else opens, such as Airflow's MySQL hook; called with the driver's
    arguments for answer_within."""
    arguments = patience(answer_within)
    return Database(lambda: prepare(raw_connection(**arguments)), settings or Settings.from_environment())


def unit_of_work(url: MysqlUrl | None = None, settings: Settings | None = None) -> AbstractContextManager[UnitOfWork]:
    """One transaction on a connection of its own, for a command that needs no second one."""
    return database(url, settings).transaction()


def definitions() -> Mapping[str, Definition]:
    """The workflows this site runs, by name: every definition in the modules that EVEREST_WORKFLOWS names, and those
    they run or start. Imported late: pandas may come with them."""
    return {one.name: one for one in _all_definitions() if one.dag_id == one.name}


def deployed(name: str, version: str, definition_hash: str = "") -> Definition | None:
    """The definition of a run, older ones that are deployed beside the current included: the one with its hash, else
    one of its version."""
    return deployment.among(_all_definitions(), name, version, definition_hash)


def task_queues() -> list[str]:
    """The queues of Airflow's tasks that these workflows use, sorted: what all workers together have to listen to."""
    return sorted({DEFAULT_TASK_QUEUE, *(one.options.queue for one in _all_definitions() if one.options.queue)})


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and asks for one that is not
        raise SettingsError(f"EVEREST_WORKFLOWS names {name}, and there is no such module") from None


def _all_definitions() -> list[Definition]:
    found: list[Definition] = []
    for module in Settings.from_environment().workflows:
        for one in [value for value in vars(_module(module)).values() if isinstance(value, Definition)]:
            found += [known for known in (one, *one.children()) if known not in found]
    return found
