"""A way to the database that forgets a connection without a word: whoever waits gives up, and begins anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from everest import bootstrap
from everest.errors import TransientDatabaseError
from everest.reconciler import __main__ as reconciler
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import Database
from everest.workflow.airflow_dag import open_connection
from tests.chaos.proxy import Proxy, Switchboard

MOMENT = timedelta(seconds=1)


@pytest.fixture
def board() -> Iterator[Switchboard]:
    with closing(Switchboard()) as board:
        yield board


@pytest.fixture
def proxy(board: Switchboard, mysql_server: MysqlUrl) -> Proxy:
    return board.open(mysql_server.port)


def ask(database: Database) -> Any:
    with database.transaction() as tx, tx.conn.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()


def assert_gives_up_and_begins_anew(database: Database, board: Switchboard, proxy: Proxy) -> None:
    with closing(database):
        assert ask(database) == (1,)
        board.forget(proxy)
        with pytest.raises(TransientDatabaseError):
            ask(database)
        assert ask(database) == (1,)


def test_a_forgotten_connection_is_given_up(board: Switchboard, proxy: Proxy, mysql_server: MysqlUrl) -> None:
    url = replace(mysql_server, port=proxy.port, host="127.0.0.1", schema="information_schema")

    assert_gives_up_and_begins_anew(bootstrap.database(url, Settings(), MOMENT), board, proxy)


def test_the_reconciler_gives_it_up(
    board: Switchboard, proxy: Proxy, mysql_server: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "ANSWER_WITHIN", MOMENT)
    url = replace(mysql_server, port=proxy.port, host="127.0.0.1", schema="information_schema")
    settings: Any = SimpleNamespace(mysql=url, site=Settings())

    assert_gives_up_and_begins_anew(reconciler._database(settings), board, proxy)


def test_a_task_gives_it_up_when_its_time_is_over(
    board: Switchboard, proxy: Proxy, mysql_server: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {
        "conn_type": "mysql",
        "host": "127.0.0.1",
        "port": proxy.port,
        "login": mysql_server.user,
        "password": mysql_server.password,
        "schema": "information_schema",
        "extra": {"charset": "utf8mb4"} | ({"ssl_mode": "REQUIRED"} if mysql_server.tls else {}),
    }
    monkeypatch.setenv("AIRFLOW_CONN_EVEREST_MYSQL", json.dumps(connection))

    assert_gives_up_and_begins_anew(
        bootstrap.database_from(open_connection, Settings(), answer_within=MOMENT), board, proxy
    )
