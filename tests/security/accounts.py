"""sql/grants.sql as data: which account has which right on which table, and the statements each program runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from everest.store.grants import GRANTS_FILE
from everest.store.migrations import split

ACCOUNTS = tuple(
    f"everest_{name}" for name in ("consumer", "relay", "reconciler", "tasks", "pages", "operator", "reader")
)
_GRANT = re.compile(r"GRANT (?P<rights>.+) ON (?P<table>\w+) TO (?P<accounts>[^;]+);", re.DOTALL)
_RIGHT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE)(?: \(([^)]*)\))?")


@dataclass(frozen=True)
class Right:
    """columns None: the whole table."""

    account: str
    table: str
    verb: str
    columns: frozenset[str] | None


def password_of(account: str) -> str:
    return f"the password of {account}"


def rights() -> Iterator[Right]:
    """Everything that the file gives."""
    for statement, _ in split(GRANTS_FILE.read_text(encoding="utf-8"), GRANTS_FILE.name):
        match = _GRANT.fullmatch(statement)
        assert match, f"not a plain GRANT on one table: {statement}"
        names = re.findall(r"'(\w+)'@'%'", match["accounts"])
        assert names and set(names) <= set(ACCOUNTS), statement
        assert _RIGHT.sub("", match["rights"]).strip(", ") == "", statement
        for verb, columns in _RIGHT.findall(match["rights"]):
            listed = frozenset(column.strip() for column in columns.split(",")) if columns else None
            for name in names:
                yield Right(name, match["table"], verb, listed)


def granted(account: str, table: str, verb: str) -> list[Right]:
    return [one for one in rights() if (one.account, one.table, one.verb) == (account, table, verb)]
