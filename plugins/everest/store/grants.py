"""How each program's account gets its rights: sql/grants.sql, statement by statement, by the schema's owner.

It comes after every migrate, because rights name tables. Granting what is granted already changes nothing, so programs
may be at work meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from everest.errors import DatabaseError, EverestError
from everest.settings import MysqlUrl
from everest.store.database import SQL_DIR, connect, typed_errors
from everest.store.migrations import split

GRANTS_FILE = SQL_DIR / "grants.sql"

# No such account: MariaDB, MySQL. Not one of ours to give: no GRANT OPTION on the schema, or on the table.
NO_ACCOUNT = frozenset({1133, 1410})
NOT_OURS_TO_GIVE = frozenset({1044, 1142, 1143, 1227})


class GrantError(EverestError):
    """The rights cannot be given; the sentence says what a person has to do."""


def grant(url: MysqlUrl, report: Callable[[str], object] = print, file: Path = GRANTS_FILE) -> int:
    """Gives the accounts their rights on the schema of `url` and returns the number of statements.

    Raises GrantError when an account is missing or `url` may not grant, DatabaseError when a table is missing.
    """
    statements = [statement for statement, _ in split(file.read_text(encoding="utf-8"), file.name)]
    with closing(connect(url)) as conn:
        with typed_errors(), conn.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            if "mariadb" in cursor.fetchone()[0].lower():
                # Else MariaDB would make a missing account, without a password, for an administrator who grants.
                cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_CREATE_USER')")
        for statement in statements:
            try:
                with typed_errors(), conn.cursor() as cursor:
                    cursor.execute(statement)
            except DatabaseError as error:
                raise _explained(error, statement, url) from error
    report(f"{url.schema}: rights given ({len(statements)} statements of {file.name})")
    return len(statements)


def _explained(error: DatabaseError, statement: str, url: MysqlUrl) -> EverestError:
    if error.number in NO_ACCOUNT:
        accounts = statement.rpartition(" TO ")[2].rstrip(";")
        return GrantError(
            f"one of the accounts {accounts} does not exist; an administrator makes it (CREATE USER ... IDENTIFIED BY"
            " ...), or makes it locked (ACCOUNT LOCK) where its program is not used, then grant again"
        )
    if error.number in NOT_OURS_TO_GIVE:
        return GrantError(
            f"{url.user} may not grant rights on {url.schema}: {error.message}; an administrator gives it all rights"
            " on the schema WITH GRANT OPTION"
        )
    return error
