"""Looking changes nothing: whoever opens whatever page or file there is, no row of any table is another one."""

from __future__ import annotations

from typing import Any

from everest.settings import MysqlUrl
from tests import builders
from tests.pages.conftest import Be
from tests.pages.poisoned import addresses, filled


def test_whoever_looks_at_whatever_changes_no_row(browser: Be, database: MysqlUrl, connection: Any) -> None:
    """An engineer sees everything, a clerk their own pages only; files are made of the same rows as pages."""
    places = filled(browser, database, connection) | {"form": ["csv"]}
    before = sums(connection)
    assert len(before) > 20 and all(value is not None for value in before.values())

    for who in ("engineer", "warehouse"):
        answers = [browser(who).get(path).status_code for _, path in addresses(places)]
        assert answers.count(200) > 5 and max(answers) < 500
        assert sums(connection) == before, who


def sums(connection: Any) -> dict[str, Any]:
    """A checksum of each table's rows."""
    connection.commit()
    tables = builders.rows(
        connection,
        "SELECT TABLE_NAME AS name FROM information_schema.TABLES"
        " WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'",
    )
    named = ", ".join(f"`{table['name']}`" for table in tables)
    found = builders.rows(connection, f"CHECKSUM TABLE {named} EXTENDED")
    connection.commit()
    return {row["Table"]: row["Checksum"] for row in found}
