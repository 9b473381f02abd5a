"""The shape of a schema as information_schema tells it, for comparing two of them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import split

# Each with the columns that make up the shape; names of the schema itself are left out by `of`.
VIEWS = {
    "tables": "SELECT table_name, table_type, engine, table_collation FROM information_schema.tables"
    " WHERE table_schema = DATABASE()",
    "columns": "SELECT table_name, ordinal_position, column_name, column_type, is_nullable, column_default, extra,"
    " character_set_name, collation_name FROM information_schema.columns WHERE table_schema = DATABASE()",
    "keys": "SELECT table_name, index_name, seq_in_index, column_name, non_unique, sub_part"
    " FROM information_schema.statistics WHERE table_schema = DATABASE()",
    "checks": "SELECT c.constraint_name, c.check_clause FROM information_schema.check_constraints c"
    " WHERE c.constraint_schema = DATABASE()",
    "triggers": "SELECT trigger_name, event_manipulation, event_object_table, action_timing, action_statement"
    " FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
    "views": "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = DATABASE()",
    "accounts": "SELECT kode_akun, nama, aktif FROM akun",
}


def of(url: MysqlUrl) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    with closing(store.connect(url)) as conn, conn.cursor() as cursor:
        for name, sql in VIEWS.items():
            cursor.execute(sql)
            here = f"`{url.schema}`."
            rows = [tuple(v.replace(here, "") if isinstance(v, str) else v for v in row) for row in cursor.fetchall()]
            found[name] = sorted(rows, key=repr)
    return found


def tables(url: MysqlUrl) -> list[str]:
    return [row[0] for row in query(url, "SHOW TABLES")]


def run(url: MysqlUrl, sql: str) -> None:
    """Every statement of a text."""
    with closing(store.connect(url)) as conn, store.typed_errors():
        with conn.cursor() as cursor:
            for statement, _ in split(sql, "test"):
                cursor.execute(statement)
        conn.commit()


def query(url: MysqlUrl, sql: str) -> list[tuple[Any, ...]]:
    with closing(store.connect(url)) as conn, store.typed_errors(), conn.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
