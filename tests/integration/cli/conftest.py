from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from closing_example.workflow import MONTHLY_CLOSING
from everest.cli import output
from everest.cli.main import main
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import rows
from tests.conftest import as_text
from tests.integration.opname.walk import Walker
from tests.workflow.world import MysqlWorld

HEADER = ("--nota", "SO-1", "--gudang", "GD-A", "--tanggal-opname", "2026-08-31")
TITLES = "kode_barang,qty_sistem,qty_fisik,harga_pokok\n"
BAD = TITLES + "BRG-A,10,,1500.00\n"
AUGUST = '{"bulan": "2026-08"}'
EXAMPLE = TITLES + "BRG-A,10,12,1500.00\nBRG-B,7,5,2500.50\nBRG-C,3,3,100.00\n"

Everest = Callable[..., Result]
WriteFile = Callable[..., str]


@pytest.fixture
def everest(database: MysqlUrl, connection: Any, monkeypatch: pytest.MonkeyPatch) -> Everest:
    """`python -m everest` on the test's database."""
    builders.warehouse(connection, "GD-A")
    monkeypatch.setenv("EVEREST_MYSQL_URL", as_text(database))

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(main, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def write(tmp_path: Path) -> WriteFile:
    def write(content: str = EXAMPLE, name: str = "opname.csv") -> str:
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    walker = Walker(database)
    yield walker
    walker.close()


def answer(result: Result) -> dict[str, Any]:
    """The JSON object on stdout."""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def audited(connection: Any) -> list[tuple[str, str | None]]:
    """What people did, by whom: the system's own account."""
    connection.commit()
    found = rows(connection, "SELECT actor, action, reason FROM audit_log WHERE actor <> 'monthly_closing' ORDER BY id")
    assert {row["actor"] for row in found} <= {output.operator()}
    return [(row["action"], row["reason"]) for row in found]


@pytest.fixture
def world(database: MysqlUrl, connection: Any, everest: Everest) -> Iterator[MysqlWorld]:
    """Relay, consumer and Airflow for what the commands set off; its clock is ahead of theirs, so all is due."""
    builders.warehouse(connection, "GD-B")
    opened = MysqlWorld(database)
    opened.database.move_clock(datetime.now(UTC) + timedelta(hours=1) - opened.now)
    opened.know(MONTHLY_CLOSING)
    yield opened
    opened.close()


@pytest.fixture
def closing(everest: Everest, world: MysqlWorld) -> int:
    """A closing that waits for its first approval."""
    run_id = answer(everest("workflow", "dispatch", "monthly_closing", "--payload", AUGUST, "--json"))["workflow_id"]
    world.walk()
    return int(run_id)
