"""A table that another application made, as the server tells it: columns, keys, and the rows that stand in our way.

What to do about them is the business of `adoption.py`. Names of tables and columns come out of our own files.
"""

from __future__ import annotations

import re
from typing import Any

from everest.store.database import Connection
from everest.store.declared import Table

ROWS_NAMED = 5


class ExistingTable:
    """Beside its declaration. `actual`: the rows of SHOW FULL COLUMNS by column, after `look`."""

    def __init__(self, conn: Connection, table: Table) -> None:
        self.conn, self.table, self.name = conn, table, table.name
        self.actual: dict[str, dict[str, Any]] = {}

    def look(self) -> None:
        self.actual = self.columns_of(self.name)

    def rows_breaking(self, expression: str) -> str:
        if set(re.findall(r"\w+", expression)) & (self.table.columns.keys() - self.actual.keys()):
            return ""  # a column we add, with a default that fits
        where = f"FROM {self.name} WHERE NOT ({expression})"
        count = self.value(f"SELECT COUNT(*) {where}")
        return self.named(count, where) if count else ""

    def doubles(self, columns: tuple[str, ...]) -> str:
        if set(columns) - self.actual.keys():
            return ""
        given = " AND ".join(f"{column} IS NOT NULL" for column in columns)
        group = f"FROM {self.name} WHERE {given} GROUP BY {', '.join(columns)} HAVING COUNT(*) > 1"
        found = self.all(f"SELECT {', '.join(columns)} {group} LIMIT {ROWS_NAMED}")
        return ", ".join("/".join(map(str, row)) for row in found)

    def named(self, count: int, where: str) -> str:
        key = ", ".join(self.keys().get("PRIMARY", (tuple(self.actual)[:1], True))[0])
        found = self.all(f"SELECT {key} {where} ORDER BY {key} LIMIT {ROWS_NAMED}")
        more = " ..." if count > len(found) else ""
        return f"{count} rows, {key} = {', '.join('/'.join(map(str, row)) for row in found)}{more}"

    def expected_columns(self) -> dict[str, dict[str, Any]]:
        """As this server would describe them: made as a temporary table, which needs no name and leaves nothing."""
        items = [column.line for column in self.table.columns.values()]
        items += [key.line for key in self.table.keys.values()]
        with self.conn.cursor() as cursor:
            cursor.execute("DROP TEMPORARY TABLE IF EXISTS everest_expected")
            cursor.execute(f"CREATE TEMPORARY TABLE everest_expected ({', '.join(items)}) DEFAULT CHARSET=utf8mb4")
        try:
            return self.columns_of("everest_expected")
        finally:
            with self.conn.cursor() as cursor:
                cursor.execute("DROP TEMPORARY TABLE everest_expected")

    def columns_of(self, name: str) -> dict[str, dict[str, Any]]:
        return {row["Field"]: row for row in self.dicts(f"SHOW FULL COLUMNS FROM {name}")}

    def keys(self) -> dict[str, tuple[tuple[str, ...], bool]]:
        found: dict[str, tuple[tuple[str, ...], bool]] = {}
        for row in self.dicts(f"SHOW INDEX FROM {self.name}"):
            before = found.get(row["Key_name"], ((), True))[0]
            # A key over the beginning of a column neither finds nor guards what ours does.
            column = row["Column_name"] if row["Sub_part"] is None else f"{row['Column_name']}({row['Sub_part']})"
            found[row["Key_name"]] = ((*before, str(column)), not row["Non_unique"])
        return found

    def all(self, sql: str) -> list[tuple[Any, ...]]:
        with self.conn.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def value(self, sql: str) -> int:
        return int(self.all(sql)[0][0])

    def dicts(self, sql: str) -> list[dict[str, Any]]:
        with self.conn.cursor() as cursor:
            cursor.execute(sql)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
