"""How a database gets its schema: the numbered files of sql/migrations, in order, once each, forward only.

DDL commits by itself on MySQL, so a file cannot be applied all or nothing. Progress is recorded after every
statement instead, and a run that died goes on where it stopped: only the one statement in doubt may find its work
done already. A statement ends with `;` at the end of a line; files have no compound bodies, so no parser is needed.
Tables that another application made are the business of `adoption.py`.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everest.errors import EverestError
from everest.settings import MysqlUrl, mysql_url
from everest.store.adoption import Findings, examine
from everest.store.database import SQL_DIR, Connection, connect, load_queries, transaction, typed_errors
from everest.store.declared import ADD_COLUMN, ADD_KEY, DROP_KEY, Table

MIGRATIONS_DIR = SQL_DIR / "migrations"
FILE_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
STATEMENT_END = re.compile(r";\s*(--.*)?$")

# Oldest servers with window functions and CHECKs that are enforced.
MARIADB_OLDEST = (10, 11)
MYSQL_OLDEST = (8, 0, 16)

TURN_SECONDS = 120

# An ALTER that waits for a table keeps everybody away from it: the wait is short (sql/queries/migrations.sql), the
# pause lets them through, and the tries last for minutes.
TABLE_TRIES = 60
TABLE_PAUSE_SECONDS = 5.0
LOCK_WAIT = 1205
# The server cannot do it without locking writers out: MariaDB, MySQL.
NOT_BESIDE_WRITERS = frozenset({1845, 1846})

# "It is there (or gone) already": table, column, key, trigger, constraint (MariaDB, MySQL), nothing to drop.
DONE_ALREADY = frozenset({1050, 1060, 1061, 1359, 1826, 3822, 1091})
UNKNOWN_COLUMN = 1054

Report = Callable[[str], object]


class MigrationError(EverestError):
    """The schema cannot be brought up to date; the sentence says what a person has to do."""


@dataclass(frozen=True)
class Migration:
    """One file. statements: each with the offset of its end in `text`."""

    version: int
    name: str
    text: str
    statements: tuple[tuple[str, int], ...]

    def checksum(self, statements_done: int | None = None) -> str:
        """SHA-256 of the file, or of its beginning up to the end of that many statements."""
        text = self.text
        if statements_done is not None:
            text = text[: self.statements[statements_done - 1][1] if statements_done else 0]
        return hashlib.sha256(text.encode()).hexdigest()


def migrate(url: MysqlUrl, report: Report = print, directory: Path = MIGRATIONS_DIR) -> list[str]:
    """Brings the schema of `url` up to date and returns the names of the files applied now.

    Safe to call from two places at once; a second call changes nothing. Needs the rights of the schema's owner and
    no more. Raises MigrationError with a sentence, TransientDatabaseError when the server could not do it this time.
    """
    migrations = read_migrations(directory)
    queries = load_queries("migrations")
    with closing(connect(url)) as conn, typed_errors():
        check_server(queries.server(conn))
        with turn(conn, queries, url.schema):
            queries.bound_lock_waits(conn)
            queries.tolerate_zero_dates(conn)
            queries.create_memory(conn)
            pending = still_to_do(migrations, remembered(conn, queries))
            findings = examine(conn, queries, [text for file, done in pending for text, _ in file.statements[done:]])
            if findings.differences:
                raise MigrationError(refusal(url.schema, findings))
            for note in findings.notes:
                report(note)
            for migration, done in pending:
                report(f"{migration.name}: applying" if not done else f"{migration.name}: going on after {done}")
                apply(conn, queries, migration, done, findings.statements, report)
    if not pending:
        report(f"{url.schema}: up to date ({len(migrations)} migrations)")
    return [migration.name for migration, _ in pending]


def read_migrations(directory: Path) -> list[Migration]:
    """The files in order. Raises MigrationError for a bad name, a number missing or given twice, or loose text."""
    found: dict[int, Migration] = {}
    for path in sorted(directory.glob("*.sql")):
        match = FILE_NAME.fullmatch(path.name)
        if not match:
            raise MigrationError(f"{path.name}: a migration is named like 0001_what_it_does.sql")
        version = int(match[1])
        if version in found:
            raise MigrationError(f"{path.name} and {found[version].name}.sql have the same number")
        text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
        found[version] = Migration(version, path.stem, text, tuple(split(text, path.name)))
    missing = sorted(set(range(1, max(found, default=0) + 1)) - set(found))
    if missing:
        raise MigrationError(f"migration {missing[0]:04d} is missing in {directory}; numbers have no gaps")
    return [found[version] for version in sorted(found)]


def split(text: str, name: str) -> Iterator[tuple[str, int]]:
    """The statements of a file, each with the offset behind it."""
    lines: list[str] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        offset += len(line)
        if line.lstrip().startswith("--") or (not lines and not line.strip()):
            continue
        lines.append(line)
        if STATEMENT_END.search(line.rstrip()):
            yield "".join(lines).strip(), offset
            lines = []
    if lines:
        raise MigrationError(f"{name}: the last statement does not end with ';' at the end of a line")


def remembered(conn: Connection, queries: Any) -> list[dict[str, Any]]:
    try:
        return list(queries.remembered(conn))
    except conn.Error as error:
        if error.args[0] != UNKNOWN_COLUMN:
            raise
        raise MigrationError("another program keeps its own table schema_migrations in this schema") from error


def still_to_do(migrations: Sequence[Migration], remembered: Sequence[dict[str, Any]]) -> list[tuple[Migration, int]]:
    """What is left, each with the number of statements done. Raises MigrationError when files and database differ."""
    rows = {row["version"]: row for row in remembered}
    unknown = [row["name"] for row in remembered if row["version"] > len(migrations)]
    if unknown:
        raise MigrationError(f"the database is newer than this program: it has {', '.join(unknown)}")
    pending = []
    for migration in migrations:
        row = rows.get(migration.version)
        if row is None:
            pending.append((migration, 0))
            continue
        done = None if row["done"] else row["statements"]
        gone = done is not None and done > len(migration.statements)
        if gone or row["name"] != migration.name or row["checksum"] != migration.checksum(done):
            raise MigrationError(
                f"{migration.name}.sql was changed after it was applied (as {row['name']});"
                " restore it and put the change into a new migration"
            )
        if done is not None:
            pending.append((migration, done))
    return pending


def apply(
    conn: Connection,
    queries: Any,
    migration: Migration,
    done: int,
    extensions: Mapping[str, Sequence[str]],
    report: Report,
) -> None:
    """Runs the statements after the first `done`; rows and their progress commit together, DDL commits by itself.
    extensions: what to do to a table that exists, by its name, where the file would make it."""
    for number, (statement, _) in enumerate(migration.statements[done:], start=done + 1):
        if table := Table.declared_by(statement):
            for extension in extensions.get(table.name, ()):
                with transaction(conn):
                    execute(conn, extension, report)
        with transaction(conn):
            try:
                if not is_done(queries, conn, statement):
                    execute(conn, statement, report)
            except conn.Error as error:
                # Only the first one of a resumed file can have been done by the run that died.
                if number != done + 1 or done == 0 or error.args[0] not in DONE_ALREADY:
                    raise
            queries.remember(
                conn,
                version=migration.version,
                name=migration.name,
                checksum=migration.checksum(number),
                statements=number,
            )
    with transaction(conn):
        queries.finish(conn, version=migration.version, checksum=migration.checksum())


def execute(conn: Connection, statement: str, report: Report) -> None:
    """Runs it: an ALTER beside whoever reads and writes the table, where the server can do that at all. It waits only
    seconds at a time for a transaction that has the table open, because everybody who comes later waits behind it."""
    is_alter = statement.startswith("ALTER TABLE")
    text = f"{statement.removesuffix(';')}, LOCK=NONE" if is_alter else statement
    for tries_left in range(TABLE_TRIES, 0, -1):
        try:
            with conn.cursor() as cursor:
                cursor.execute(text)
            return
        except conn.Error as error:
            number = error.args[0]
            if number in NOT_BESIDE_WRITERS and text != statement:
                report(f"nobody can write to the table meanwhile: {statement}")
                text = statement
            elif number == LOCK_WAIT and tries_left > 1:
                report(f"waits for a transaction that has the table open: {statement}")
                time.sleep(TABLE_PAUSE_SECONDS)
            else:
                raise


def is_done(queries: Any, conn: Connection, statement: str) -> bool:
    """Whether the column that a statement adds stands already, or its key, under its name and on its columns, or the
    key that it drops does not: so it is in a schema that was made from sql/schema.sql."""
    if column := ADD_COLUMN.fullmatch(statement):
        return bool(queries.has_column(conn, table=column[1], column=column[2]))
    if dropped := DROP_KEY.fullmatch(statement):
        return queries.key_columns(conn, table=dropped[1], key=dropped[2]) is None
    added = ADD_KEY.fullmatch(statement)
    return added is not None and queries.key_columns(conn, table=added[1], key=added[4]) == added[5]


def refusal(schema: str, findings: Findings) -> str:
    """All that does not fit, each with what mends it, and the same in one ALTER per table."""
    lines = [
        (
            f"{schema} holds tables that do not fit; nothing was changed. Let their owner mend these"
            " (SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES' first), then migrate again:"
        )
    ]
    lines += [f"  - {difference}" for difference in findings.differences]
    several = {table: parts for table, parts in findings.mendings.items() if len(parts) > 1}
    if findings.mendings:
        lines.append(
            "Another engine, character set or type rebuilds its table, and nobody can write to it meanwhile: do it on a"
            " copy first, then in a quiet hour (docs/existing-installations.md)."
        )
    if several:
        lines.append("All of a table in one statement, so that it is rebuilt once:")
    lines += [f"  ALTER TABLE {table} {', '.join(parts)};" for table, parts in several.items()]
    return "\n".join(lines)


def check_server(server: dict[str, Any]) -> None:
    """Raises MigrationError unless the server enforces CHECKs, has window functions and lets us make a trigger."""
    version = str(server["version"])
    mariadb = "mariadb" in version.lower()
    # MariaDB may put "5.5.5-" in front, for clients that read only one digit.
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.removeprefix("5.5.5-"))[:3])
    if numbers < (MARIADB_OLDEST if mariadb else MYSQL_OLDEST):
        raise MigrationError(f"the server is {version}; needed is MariaDB 10.11 or MySQL 8.0.16, or newer")
    if server["log_bin"] and not server["trusts_triggers"] and not mariadb:
        raise MigrationError(
            "the server writes a binary log and would refuse our triggers to anyone but an administrator;"
            " let one run SET PERSIST log_bin_trust_function_creators = 1"
        )


@contextmanager
def turn(conn: Connection, queries: Any, schema: str) -> Iterator[None]:
    """One migrate at a time per schema. The lock goes with the connection, so a killed one leaves none behind."""
    lock_name = f"everest_migrate_{hashlib.sha256(schema.encode()).hexdigest()[:32]}"
    if queries.take_turn(conn, lock_name=lock_name, seconds=TURN_SECONDS) != 1:
        raise MigrationError(f"another migrate has been at work on {schema} for {TURN_SECONDS} s; try again later")
    try:
        yield
    finally:
        queries.end_turn(conn, lock_name=lock_name)


if __name__ == "__main__":
    try:
        migrate(mysql_url())
    except EverestError as problem:
        sys.exit(f"migrate: {problem.message}")
