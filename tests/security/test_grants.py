"""Each program has an account with no more rights than its statements need (sql/grants.sql).

What is allowed and refused is read out of that file and tried on the server, right by right; that it is enough is
shown by asking the server to prepare every named statement under the accounts of the programs that run it. What can be
read off the file without a server is in tests/unit/security.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import MySQLdb
import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from tests.security.accounts import ACCOUNTS, granted, rights
from tests.security.conftest import as_account
from tests.security.programs import PROGRAMS, files, programs_of, statements

DENIED = (1142, 1143)
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE")


@pytest.fixture(scope="module")
def tables(granted_schema: MysqlUrl) -> dict[str, list[str]]:
    """Every table and view of the schema with its columns, as the server has them."""
    found: dict[str, list[str]] = {}
    with closing(store.connect(granted_schema)) as conn, conn.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
            " ORDER BY table_name, ordinal_position"
        )
        for table, column in cursor.fetchall():
            found.setdefault(table, []).append(column)
    return found


@pytest.fixture(scope="module", params=ACCOUNTS)
def account(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def session(granted_schema: MysqlUrl, account: str) -> Iterator[Any]:
    with closing(store.connect(as_account(granted_schema, account))) as conn:
        yield conn


def outcome(conn: Any, statement: str) -> int:
    """0, or the number of the error; nothing stays of it."""
    try:
        with conn.cursor() as cursor:
            cursor.execute(statement)
            cursor.fetchall()
    except MySQLdb.Error as error:
        return int(error.args[0])
    finally:
        conn.rollback()
    return 0


def attempt(verb: str, table: str, column: str) -> str:
    """The statement that needs this one right on this one column (DELETE: on the table), and touches no row."""
    return {
        "SELECT": f"SELECT `{column}` FROM `{table}` LIMIT 0",
        "INSERT": f"INSERT INTO `{table}` (`{column}`) SELECT NULL FROM DUAL WHERE FALSE",
        "UPDATE": f"UPDATE `{table}` SET `{column}` = NULL WHERE FALSE",
        "DELETE": f"DELETE FROM `{table}` WHERE FALSE",
    }[verb]


def test_columns_that_are_named_exist(tables: dict[str, list[str]]) -> None:
    for right in rights():
        assert (right.columns or frozenset()) <= set(tables[right.table]), right


def test_an_account_may_do_what_the_file_says_and_nothing_else(
    session: Any, account: str, tables: dict[str, list[str]]
) -> None:
    surprises = []
    for table, columns in tables.items():
        if table == "v_kartu_stok":  # a view over one table: its rights are its own, its columns cannot be written
            columns = columns[:1]
        for verb in VERBS:
            given = granted(account, table, verb)
            for column in columns if verb != "DELETE" else columns[:1]:
                may = any(right.columns is None or column in right.columns for right in given)
                number = outcome(session, attempt(verb, table, column))
                if may == (number in DENIED):
                    surprises.append(f"{verb} {table}.{column}: {'refused' if may else 'allowed'} ({number})")
    assert surprises == []


def test_no_account_changes_the_shape_of_anything(session: Any, tables: dict[str, list[str]]) -> None:
    for table in sorted(set(tables) - {"v_kartu_stok"}):
        for statement in (
            f"TRUNCATE TABLE `{table}`",
            f"DROP TABLE `{table}`",
            f"ALTER TABLE `{table}` ADD COLUMN mine INT",
            f"CREATE TRIGGER mine BEFORE INSERT ON `{table}` FOR EACH ROW SET @mine = 1",
            f"CREATE INDEX mine ON `{table}` (`{tables[table][0]}`)",
        ):
            assert outcome(session, statement) in DENIED, statement
    assert outcome(session, "CREATE TABLE mine (a INT)") in DENIED
    assert outcome(session, "DROP TRIGGER tr_audit_log_no_delete") in DENIED
    assert outcome(session, "DROP VIEW v_kartu_stok") in DENIED


def test_no_account_sees_or_makes_accounts_or_files(session: Any) -> None:
    for statement in (
        "SELECT * FROM mysql.global_priv LIMIT 1",
        "CREATE USER 'mine'@'%'",
        "GRANT SELECT ON jurnal TO 'everest_reader'@'%'",
        "SELECT 1 INTO OUTFILE '/tmp/mine'",
        "SELECT * FROM jurnal INTO OUTFILE '/tmp/mine'",
        "SET GLOBAL max_connections = 1",
    ):
        assert outcome(session, statement) in (1044, 1045, 1142, 1227, 1410), statement


# ------------------------------------------------------------------------------------------------- it is enough


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_statement_of_a_program_is_allowed_to_its_account(granted_schema: MysqlUrl, program: str) -> None:
    refused, prepared = [], 0
    with closing(store.connect(as_account(granted_schema, f"everest_{program}"))) as conn:
        for path in files():
            for name, sql in statements(path).items():
                if program not in programs_of(path, name):
                    continue
                number = prepare(conn, sql)
                prepared += 1
                if number:
                    refused.append(f"{path.name}: {name}: {number}")
    assert refused == []
    assert prepared


def prepare(conn: Any, sql: str) -> int:
    """The server checks the rights of a statement when it prepares it; nothing runs."""
    return outcome(conn, f"PREPARE looked_at FROM '{conn.escape_string(sql.encode()).decode()}'")
