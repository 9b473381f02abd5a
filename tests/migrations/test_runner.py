"""The migration runner: order, memory, refusals, two at once, and a run that dies at any statement."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everest.errors import DatabaseError
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store import migrations
from everest.store.migrations import MigrationError, check_server, migrate, read_migrations
from tests.migrations import shape

Files = Callable[..., Path]
STATEMENTS = sum(len(file.statements) for file in read_migrations(migrations.MIGRATIONS_DIR))


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Writes migration files into a folder of their own."""

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            (tmp_path / f"{name.removeprefix('m')}.sql").write_text(text)
        return tmp_path

    return write


def quiet(line: str) -> None:
    pass


def test_a_fresh_schema_gets_every_file_once_and_a_second_run_changes_nothing(empty_schema: MysqlUrl) -> None:
    names = [path.stem for path in sorted(migrations.MIGRATIONS_DIR.glob("*.sql"))]
    lines: list[str] = []

    assert migrate(empty_schema, quiet) == names
    before = shape.of(empty_schema), shape.query(empty_schema, "SELECT * FROM schema_migrations")
    assert migrate(empty_schema, lines.append) == []

    assert before == (shape.of(empty_schema), shape.query(empty_schema, "SELECT * FROM schema_migrations"))
    assert lines == [f"{empty_schema.schema}: up to date ({len(names)} migrations)"]


def test_each_file_is_remembered_by_number_name_checksum_and_instant(empty_schema: MysqlUrl, files: Files) -> None:
    text = "CREATE TABLE a (id INT);\n"
    migrate(empty_schema, quiet, files(m0001_first=text))

    ((version, name, checksum, done),) = shape.query(
        empty_schema, "SELECT version, name, checksum, applied_at IS NOT NULL FROM schema_migrations"
    )
    assert (version, name, checksum, done) == (1, "0001_first", hashlib.sha256(text.encode()).hexdigest(), 1)


def test_files_are_applied_in_the_order_of_their_numbers(empty_schema: MysqlUrl, files: Files) -> None:
    folder = files(m0002_b="INSERT INTO a VALUES (2);\n", m0001_a="CREATE TABLE a (id INT);\n")
    assert migrate(empty_schema, quiet, folder) == ["0001_a", "0002_b"]
    assert shape.query(empty_schema, "SELECT id FROM a") == [(2,)]


def test_a_file_changed_after_it_was_applied_is_refused_by_name(empty_schema: MysqlUrl, files: Files) -> None:
    folder = files(m0001_a="CREATE TABLE a (id INT);\n")
    migrate(empty_schema, quiet, folder)
    files(m0001_a="CREATE TABLE a (id INT);\n-- a word more\n", m0002_b="CREATE TABLE b (id INT);\n")

    with pytest.raises(MigrationError, match=r"0001_a\.sql was changed after it was applied"):
        migrate(empty_schema, quiet, folder)
    assert "b" not in shape.tables(empty_schema)


def test_a_renamed_file_is_refused(empty_schema: MysqlUrl, files: Files) -> None:
    folder = files(m0001_a="CREATE TABLE a (id INT);\n")
    migrate(empty_schema, quiet, folder)
    (folder / "0001_a.sql").rename(folder / "0001_other.sql")
    with pytest.raises(MigrationError, match="as 0001_a"):
        migrate(empty_schema, quiet, folder)


def test_line_ends_of_another_system_are_not_a_change(empty_schema: MysqlUrl, files: Files) -> None:
    folder = files(m0001_a="CREATE TABLE a (\n  id INT\n);\n")
    migrate(empty_schema, quiet, folder)
    (folder / "0001_a.sql").write_bytes(b"CREATE TABLE a (\r\n  id INT\r\n);\r\n")
    assert migrate(empty_schema, quiet, folder) == []


def test_a_database_newer_than_the_program_is_refused(empty_schema: MysqlUrl, files: Files) -> None:
    folder = files(m0001_a="CREATE TABLE a (id INT);\n", m0002_b="CREATE TABLE b (id INT);\n")
    migrate(empty_schema, quiet, folder)
    (folder / "0002_b.sql").unlink()
    with pytest.raises(MigrationError, match="newer than this program: it has 0002_b"):
        migrate(empty_schema, quiet, folder)


def test_another_programs_own_schema_migrations_is_left_alone(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, "CREATE TABLE schema_migrations (version VARCHAR(14) NOT NULL PRIMARY KEY);\n")
    with pytest.raises(MigrationError, match="another program keeps its own table schema_migrations"):
        migrate(empty_schema, quiet)
    assert shape.tables(empty_schema) == ["schema_migrations"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["0001_a", "0003_c"], "migration 0002 is missing"),
        (["0002_b"], "migration 0001 is missing"),
        (["0001_a", "0001_b"], r"0001_b\.sql and 0001_a\.sql have the same number"),
        (["0001-a"], r"0001-a\.sql: a migration is named like"),
        (["0001_A"], r"0001_A\.sql: a migration is named like"),
        (["1_a"], r"1_a\.sql: a migration is named like"),
    ],
)
def test_names_of_files_are_policed(tmp_path: Path, names: list[str], sentence: str) -> None:
    for name in names:
        (tmp_path / f"{name}.sql").write_text("SELECT 1;\n")
    with pytest.raises(MigrationError, match=sentence):
        read_migrations(tmp_path)


def test_statements_end_at_a_semicolon_at_the_end_of_a_line(files: Files) -> None:
    text = "-- about; this;\n\nCREATE TABLE a (\n  -- why;\n  note VARCHAR(9) DEFAULT ';x'\n);\nSELECT 1; -- so\n"
    (migration,) = read_migrations(files(m0001_a=text))
    assert [statement.split("(")[0].strip() for statement, _ in migration.statements] == [
        "CREATE TABLE a",
        "SELECT 1; -- so",
    ]


def test_a_file_without_its_last_semicolon_is_refused(files: Files) -> None:
    with pytest.raises(MigrationError, match=r"0001_a\.sql: the last statement does not end with ';'"):
        read_migrations(files(m0001_a="SELECT 1;\nSELECT 2\n"))


def test_a_statement_that_fails_stops_the_file_and_a_mended_one_goes_on_there(
    empty_schema: MysqlUrl, files: Files
) -> None:
    first = "CREATE TABLE a (id INT);\nINSERT INTO a VALUES (1);\n"
    folder = files(m0001_a=first + "ALTER TABLE a ADD COLUMN note;\n")
    with pytest.raises(DatabaseError, match="MySQL 1064"):
        migrate(empty_schema, quiet, folder)

    files(m0001_a=first + "ALTER TABLE a ADD COLUMN note INT;\n")
    assert migrate(empty_schema, quiet, folder) == ["0001_a"]
    assert shape.query(empty_schema, "SELECT id, note FROM a") == [(1, None)]
    assert migrate(empty_schema, quiet, folder) == []


def test_the_part_of_a_half_applied_file_that_is_done_cannot_be_changed(empty_schema: MysqlUrl, files: Files) -> None:
    folder = files(m0001_a="CREATE TABLE a (id INT);\nSELECT FROM;\n")
    with pytest.raises(DatabaseError):
        migrate(empty_schema, quiet, folder)
    files(m0001_a="CREATE TABLE a (id BIGINT);\nSELECT 1;\n")
    with pytest.raises(MigrationError, match=r"0001_a\.sql was changed"):
        migrate(empty_schema, quiet, folder)


def test_a_table_that_is_there_by_accident_is_an_error_outside_of_a_resumed_statement(
    empty_schema: MysqlUrl, files: Files
) -> None:
    shape.run(empty_schema, "CREATE TABLE b (id INT);\n")
    folder = files(m0001_a="CREATE TABLE a (id INT);\nCREATE TABLE b (id INT);\n")
    with pytest.raises(DatabaseError, match="MySQL 1050"):
        migrate(empty_schema, quiet, folder)


@pytest.mark.parametrize("dies_at", range(1, STATEMENTS + 1))
def test_a_run_that_dies_after_any_statement_is_gone_on_with(
    empty_schema: MysqlUrl, database: MysqlUrl, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    """The worst moment: the server has done the statement, and its progress is not recorded."""
    real = store.load_queries("migrations")
    calls = 0

    class Dying:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def remember(self, conn: Any, **row: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == dies_at:
                raise Died
            real.remember(conn, **row)

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "load_queries", lambda name: Dying())
        with pytest.raises(Died):
            migrate(empty_schema, quiet)

    migrate(empty_schema, quiet)
    assert shape.of(empty_schema) == shape.of(database)


def test_two_at_once_apply_each_file_once(empty_schema: MysqlUrl, database: MysqlUrl) -> None:
    with ThreadPoolExecutor(2) as pool:
        applied = list(pool.map(lambda _: migrate(empty_schema, quiet), range(2)))

    names = [file.name for file in read_migrations(migrations.MIGRATIONS_DIR)]
    assert sorted(applied) == [[], names]
    assert shape.of(empty_schema) == shape.of(database)


def test_the_turn_of_another_migrate_is_waited_for_only_so_long(
    empty_schema: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "TURN_SECONDS", 0)
    queries = store.load_queries("migrations")
    other = store.connect(empty_schema)
    try:
        with (
            migrations.turn(other, queries, empty_schema.schema),
            pytest.raises(MigrationError, match="another migrate has been at work"),
        ):
            migrate(empty_schema, quiet)
    finally:
        other.close()
    assert len(migrate(empty_schema, quiet)) > 0


@pytest.mark.parametrize(
    "version",
    ["10.11.19-MariaDB-0+deb12u1", "5.5.5-10.11.6-MariaDB", "11.4.2-MariaDB", "8.0.16", "8.4.3", "9.1.0-commercial"],
)
def test_servers_that_enforce_checks_are_accepted(version: str) -> None:
    check_server({"version": version, "log_bin": 0, "trusts_triggers": 0})


@pytest.mark.parametrize("version", ["10.6.18-MariaDB", "10.5.1-MariaDB-log", "8.0.15", "5.7.44-log"])
def test_older_servers_are_refused_with_a_sentence(version: str) -> None:
    with pytest.raises(MigrationError, match=r"needed is MariaDB 10\.11 or MySQL 8\.0\.16"):
        check_server({"version": version, "log_bin": 0, "trusts_triggers": 0})


def test_a_mysql_that_would_refuse_our_triggers_is_told_before_anything_is_changed() -> None:
    with pytest.raises(MigrationError, match="log_bin_trust_function_creators"):
        check_server({"version": "8.0.36", "log_bin": 1, "trusts_triggers": 0})
    check_server({"version": "8.0.36", "log_bin": 1, "trusts_triggers": 1})


def test_an_unknown_schema_is_an_error_with_its_name(empty_schema: MysqlUrl) -> None:
    with pytest.raises(DatabaseError, match="no_such_schema"):
        migrate(replace(empty_schema, schema=f"{empty_schema.schema}_no_such_schema"), quiet)
