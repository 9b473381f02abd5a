from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

from everest.cli.main import main
from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker

HEADER = ("--nota", "SO-1", "--gudang", "GD-A", "--tanggal-opname", "2026-08-31")
TITLES = "kode_barang,qty_sistem,qty_fisik,harga_pokok\n"
EXAMPLE = TITLES + "BRG-A,10,12,1500.00\nBRG-B,7,5,2500.50\nBRG-C,3,3,100.00\n"

Everest = Callable[..., Result]
WriteFile = Callable[..., str]


@pytest.fixture
def everest(database: MysqlUrl, connection: Any, monkeypatch: pytest.MonkeyPatch) -> Everest:
    """`python -m everest` on the test's database."""
    builders.warehouse(connection, "GD-A")
    account = f"{quote(database.user)}:{quote(database.password, safe='')}"
    url = f"mysql://{account}@{database.host}:{database.port}/{database.schema}"
    monkeypatch.setenv("EVEREST_MYSQL_URL", url)

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
