"""The dump that docs/operations.md describes, taken from a real server and loaded into another schema."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate
from tests import builders
from tests.migrations import dumps, shape


def test_the_documented_dump_restores_rows_triggers_and_schema_elsewhere(
    database: MysqlUrl, connection: Any, empty_schema: MysqlUrl, tmp_path: Path
) -> None:
    builders.document(connection)
    builders.insert(connection, "audit_log", actor="budi", action="test", reason="é ✓")
    connection.commit()

    dumps.load(empty_schema, dumps.dump(database, tmp_path), tmp_path)

    migrate(empty_schema, lambda line: None)
    assert shape.of(empty_schema) == shape.of(database)
    tables = ("so_headers_staging", "so_details_staging", "audit_log", "akun", "schema_migrations")
    with closing(store.connect(empty_schema)) as restored:
        for table in tables:
            wanted = builders.rows(connection, f"SELECT * FROM {table} ORDER BY 1")
            assert wanted
            assert builders.rows(restored, f"SELECT * FROM {table} ORDER BY 1") == wanted, table
