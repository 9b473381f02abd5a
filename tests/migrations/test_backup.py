"""The dump that docs/operations.md describes, taken from a real server and loaded into another schema."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate
from tests import builders
from tests.migrations import shape

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def client(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(names)} is installed; `make setup` brings the database's clients")
    return found


def test_the_documented_dump_restores_rows_triggers_and_schema_elsewhere(
    database: MysqlUrl, connection: Any, empty_schema: MysqlUrl, tmp_path: Path
) -> None:
    builders.document(connection)
    builders.insert(connection, "audit_log", actor="budi", action="test", reason="é ✓")
    connection.commit()
    login = tmp_path / "login.cnf"
    login.write_text(
        f'[client]\nhost={database.host}\nport={database.port}\nuser={database.user}\npassword="{database.password}"\n'
    )
    documented = re.search(r"^mariadb-dump (.*) SCHEMA >", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    assert documented

    take = [client("mariadb-dump", "mysqldump"), f"--defaults-extra-file={login}", *documented[1].split()]
    dump = subprocess.run([*take, database.schema], capture_output=True, check=True).stdout
    load = [client("mariadb", "mysql"), f"--defaults-extra-file={login}", "--default-character-set=utf8mb4"]
    subprocess.run([*load, empty_schema.schema], input=dump, check=True, capture_output=True)

    migrate(empty_schema, lambda line: None)
    assert shape.of(empty_schema) == shape.of(database)
    tables = ("so_headers_staging", "so_details_staging", "audit_log", "akun", "schema_migrations")
    with closing(store.connect(empty_schema)) as restored:
        for table in tables:
            wanted = builders.rows(connection, f"SELECT * FROM {table} ORDER BY 1")
            assert wanted
            assert builders.rows(restored, f"SELECT * FROM {table} ORDER BY 1") == wanted, table
