"""What a migration declares, and which existing columns can hold it."""

from __future__ import annotations

from typing import Any

import pytest

from everest.store.declared import (
    Table,
    collation_misfit,
    filling_misfits,
    is_required,
    type_misfit,
)
from everest.store.migrations import MIGRATIONS_DIR, read_migrations

NONE: frozenset[str] = frozenset()


def column(**values: Any) -> dict[str, Any]:
    return {"Type": "int", "Collation": None, "Null": "NO", "Default": None, "Extra": ""} | values


def test_a_create_table_is_read_line_by_line() -> None:
    table = Table.declared_by(
        "CREATE TABLE IF NOT EXISTS t (\n"
        "    id BIGINT NOT NULL AUTO_INCREMENT,\n"
        "    -- why it is here, of all places\n"
        "    status VARCHAR(10) NOT NULL DEFAULT 'A',\n"
        "    nilai DECIMAL(24,2) NOT NULL,\n"
        "    PRIMARY KEY (id),\n"
        "    UNIQUE KEY uq_t (status, nilai),\n"
        "    KEY ix_t (nilai),\n"
        "    CONSTRAINT ck_t CHECK (status IN ('A', 'B'))\n"
        ") ENGINE=InnoDB;"
    )
    assert table is not None
    assert list(table.columns) == ["id", "status", "nilai"]
    assert (table.columns["nilai"].kind, table.columns["nilai"].tail) == ("DECIMAL(24,2)", "NOT NULL")
    assert [name for name, it in table.columns.items() if it.cannot_be_added] == ["id", "nilai"]
    assert {name: (key.columns, key.unique) for name, key in table.keys.items()} == {
        "PRIMARY": (("id",), True),
        "uq_t": (("status", "nilai"), True),
        "ix_t": (("nilai",), False),
    }
    assert table.checks == {"ck_t": "status IN ('A', 'B')"}
    assert table.allowed_values("status") == {"A", "B"}
    assert table.allowed_values("nilai") == NONE
    assert [name for name in table.columns if table.in_a_key(name)] == ["id", "status", "nilai"]


def test_a_line_that_is_no_item_is_refused() -> None:
    with pytest.raises(ValueError, match="t: not a column, key or CHECK on one line"):
        Table.declared_by("CREATE TABLE IF NOT EXISTS t (\n    (oops\n)")


def test_other_statements_declare_no_table() -> None:
    assert Table.declared_by("ALTER TABLE t ADD COLUMN x INT;") is None


def test_every_table_of_every_migration_can_be_read() -> None:
    statements = [text for file in read_migrations(MIGRATIONS_DIR) for text, _ in file.statements]
    made = [text for text in statements if text.startswith("CREATE TABLE")]
    tables = [Table.declared_by(text) for text in made]
    assert len(tables) >= 25
    for text, table in zip(made, tables, strict=True):
        assert table is not None, text
        items = len(table.columns) + len(table.keys) + len(table.checks)
        lines = [line for line in text.splitlines()[1:-1] if not line.strip().startswith("--")]
        assert items == len(lines), table.name


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("bigint(20)", "int(10) unsigned"),
        ("bigint", "bigint unsigned"),
        ("int(11)", "bigint(20)"),
        ("tinyint(4)", "tinyint(1)"),
        ("decimal(24,2)", "decimal(24,2)"),
        ("decimal(24,2)", "decimal(26,4)"),
        ("varchar(100)", "varchar(100)"),
        ("varchar(100)", "char(120)"),
        ("varchar(100)", "text"),
        ("longtext", "mediumtext"),
        ("longtext", "json"),
        ("json", "longtext"),
        ("text", "longtext"),
        ("datetime", "datetime(3)"),
        ("datetime(6)", "datetime(6)"),
        ("date", "date"),
    ],
)
def test_types_that_hold_ours(ours: str, theirs: str) -> None:
    assert type_misfit(ours, theirs, NONE, in_key=False) is None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("bigint(20)", "mediumint(9)"),
        ("int(11)", "smallint(6)"),
        ("bigint", "varchar(20)"),
        ("decimal(24,2)", "decimal(24,4)"),
        ("decimal(24,6)", "decimal(24,2)"),
        ("decimal(24,2)", "decimal(24,2) unsigned"),
        ("decimal(24,2)", "double"),
        ("decimal(24,2)", "bigint(20)"),
        ("varchar(100)", "varchar(99)"),
        ("varchar(100)", "tinytext"),
        ("varchar(100)", "varbinary(100)"),
        ("varchar(20)", "enum('A')"),
        ("longtext", "text"),
        ("json", "text"),
        ("datetime(6)", "datetime"),
        ("datetime", "timestamp"),
        ("datetime", "date"),
        ("date", "datetime"),
    ],
)
def test_types_that_would_cut_round_or_shift_ours(ours: str, theirs: str) -> None:
    assert type_misfit(ours, theirs, NONE, in_key=False) is not None


def test_text_without_a_length_cannot_be_a_key() -> None:
    assert type_misfit("varchar(100)", "text", NONE, in_key=True) == "needed is varchar(100)"


def test_an_enum_needs_every_value_of_ours() -> None:
    ours = frozenset({"OPEN", "CLOSED"})
    assert type_misfit("varchar(10)", "enum('OPEN','CLOSED','LOCKED')", ours, in_key=False) is None
    assert type_misfit("varchar(10)", "enum('OPEN','open')", ours, in_key=False) == "lacks CLOSED"


def test_keys_compare_byte_by_byte_and_other_text_takes_every_character() -> None:
    key, text = column(Collation="utf8mb4_bin"), column(Collation="utf8mb4_general_ci")
    assert collation_misfit(key, column(Collation="utf8mb4_bin")) is None
    assert collation_misfit(key, column(Collation="utf8mb4_unicode_ci")) is not None
    assert collation_misfit(text, column(Collation="utf8mb4_unicode_ci")) is None
    assert collation_misfit(text, column(Collation="utf8mb3_general_ci")) is not None
    assert collation_misfit(column(), column()) is None


def test_the_collation_of_json_is_the_servers_own() -> None:
    for kind in ("json", "longtext"):
        ours = column(Type=kind, Collation="utf8mb4_bin" if kind == "longtext" else None)
        assert collation_misfit(ours, column(Type="longtext", Collation="utf8mb4_general_ci")) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "misfits"),
    [
        (column(), column(), []),
        (column(), column(Null="YES"), ["may be NULL"]),
        (column(Null="YES"), column(), ["may not be NULL"]),
        (column(Default="0"), column(), ["has no default"]),
        (column(Default="0"), column(Default="1"), []),
        (column(Extra="auto_increment"), column(), ["does not count by itself"]),
        (column(Null="YES"), column(Null="YES", Extra="STORED GENERATED"), ["is computed"]),
        (
            column(Default="current_timestamp(6)"),
            column(Default="CURRENT_TIMESTAMP(6)", Extra="DEFAULT_GENERATED"),
            [],
        ),
    ],
)
def test_how_a_column_is_filled(ours: dict[str, Any], theirs: dict[str, Any], misfits: list[str]) -> None:
    assert filling_misfits(ours, theirs) == misfits


def test_a_column_is_required_when_an_insert_has_to_name_it() -> None:
    assert is_required(column())
    assert not is_required(column(Default=""))
    assert not is_required(column(Null="YES"))
    assert not is_required(column(Extra="auto_increment"))
