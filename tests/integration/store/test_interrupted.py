"""A signal in the middle of a statement: its exception arrives as what it is, and the next transaction works."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

from everest import bootstrap
from everest.errors import DatabaseError
from everest.settings import MysqlUrl, Settings
from everest.store.database import load_queries
from everest.store.unit_of_work import Database


class TimeIsOver(Exception):
    """As Airflow raises it in a task."""


@pytest.fixture
def units(mysql_server: MysqlUrl) -> Iterator[Database]:
    with closing(bootstrap.database(replace(mysql_server, schema="information_schema"), Settings())) as units:
        yield units


@pytest.fixture
def slow(tmp_path: Path) -> object:
    """A named query that takes half a second, and has a result."""
    file = tmp_path / "slow.sql"
    file.write_text("-- name: slow()\nSELECT SLEEP(0.5) AS waited;\n", encoding="utf-8")
    return load_queries(file)


@pytest.fixture
def timer() -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeIsOver

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_timeout_stays_a_timeout(units: Database, slow: object, is_named: bool, timer: None) -> None:
    with pytest.raises(TimeIsOver), units.transaction() as tx:
        if is_named:
            list(slow.slow(tx.conn))  # type: ignore[attr-defined]
        else:
            with tx.conn.cursor() as cursor:
                cursor.execute("SELECT SLEEP(0.5)")

    with units.transaction() as tx, tx.conn.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_out_of_sync_by_our_own_fault_stays_our_bug(units: Database) -> None:
    with pytest.raises(DatabaseError, match="2014"), units.transaction() as tx:
        tx.conn.query("SELECT 1")
        tx.conn.query("SELECT 2")
