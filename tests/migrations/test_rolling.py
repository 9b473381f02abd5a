"""Two versions of the programs may work on one schema: a migration only adds what an older program does not notice."""

from __future__ import annotations

import re

import pytest

from everest.store.migrations import MIGRATIONS_DIR, read_migrations

STATEMENTS = [(file.name, text) for file in read_migrations(MIGRATIONS_DIR) for text, _ in file.statements]

# A new column can be left out by whoever does not know it; a key orders what is there. A UNIQUE one refuses only what
# was a fault before.
UNNOTICED = (
    r"CREATE TABLE IF NOT EXISTS .*",
    r"CREATE OR REPLACE VIEW .*",
    r"DROP TRIGGER IF EXISTS .*",
    r"CREATE TRIGGER .*",
    r"INSERT INTO akun .*",
    r"ALTER TABLE \w+ ADD (UNIQUE )?KEY \w+ \([\w, ]+\);",
    r"ALTER TABLE \w+ ADD COLUMN \w+ [^,]*(NULL|DEFAULT [^,]*);",
)


@pytest.mark.parametrize(("name", "statement"), STATEMENTS)
def test_no_statement_takes_away_or_changes_what_an_older_program_uses(name: str, statement: str) -> None:
    assert any(re.fullmatch(one, statement, re.DOTALL) for one in UNNOTICED) or leaves_a_longer_key(name, statement), (
        f"{name}: an older program that still runs would notice this; do it in two versions"
    )
    added = re.fullmatch(r"ALTER TABLE \w+ ADD COLUMN (.*);", statement, re.DOTALL)
    assert added is None or "NOT NULL" not in added[1] or "DEFAULT" in added[1]


def leaves_a_longer_key(name: str, statement: str) -> bool:
    """Whether it drops a key in whose place the same file has put one that begins with its columns: whatever a query
    of an older program found by the one it finds by the other."""
    dropped = re.fullmatch(r"ALTER TABLE (\w+) DROP KEY (\w+);", statement)
    if dropped is None:
        return False
    table, key = dropped.groups()
    (columns,) = {found for _, text in STATEMENTS for found in re.findall(rf"\bKEY {key} \(([\w, ]+)\)", text)}
    in_its_place = rf"ALTER TABLE {table} ADD KEY \w+ \({columns}, [\w, ]+\);"
    return any(file == name and re.fullmatch(in_its_place, text) for file, text in STATEMENTS)
