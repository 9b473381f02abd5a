"""H40: the SQL is the common subset of MariaDB 10.11 and MySQL 8; tests run on one of them, sites on either."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everest.store.database import SQL_DIR

ROOT = SQL_DIR.parent
SQL_FILES = sorted([*SQL_DIR.rglob("*.sql"), *ROOT.glob("ingest_consumer/**/*.sql")])

# Statements with words in quotes and comments taken out. Each with the server that would not understand it.
FORBIDDEN = {
    r"\bAS new\b": "MySQL only: row alias of ON DUPLICATE KEY UPDATE",
    r"->>?": "MySQL only: JSON arrows",
    r"\bRETURNING\b": "MariaDB only",
    r"\b(ADD|DROP|MODIFY|CHANGE) (COLUMN |INDEX |KEY |CONSTRAINT )?IF (NOT )?EXISTS\b": "MariaDB only",
    r"\bCREATE (UNIQUE )?INDEX IF NOT EXISTS\b": "MariaDB only",
    r"\bCREATE OR REPLACE (TABLE|TRIGGER|INDEX|PROCEDURE|FUNCTION)\b": "MariaDB only",
    r"\bCREATE TRIGGER IF NOT EXISTS\b": "MySQL before 8.0.29 does not know it",
    r"\bCREATE SEQUENCE\b|\bNEXTVAL\b|\bNEXT VALUE\b": "MariaDB only",
    r"\bFOR SHARE\b": "MySQL only; LOCK IN SHARE MODE is understood by both",
    r"\bOF \w+ (SKIP LOCKED|NOWAIT)\b": "MySQL only: FOR UPDATE OF",
    r"\bNOT ENFORCED\b": "MySQL only",
    r"\bINVISIBLE\b|\bIGNORED\b": "each knows one of them",
    r"\bMEMBER OF\b|\bJSON_STORAGE_SIZE\b": "MySQL only",
    r"\bLATERAL\b": "MySQL only",
    r"utf8mb4_0900\w*|utf8mb4_uca1400\w*": "a collation that only one of them has",
    r"\bDELIMITER\b|\bBEGIN\b": "no compound bodies: a file is split at ';'",
    r"\bUUID_TO_BIN\b|\bBIN_TO_UUID\b|\bREGEXP_LIKE\b|\bANY_VALUE\b|\bGROUPING\b": "MySQL only",
}


def code_of(text: str) -> str:
    text = re.sub(r"--[^\n]*", "", text)
    return re.sub(r"'[^']*'", "''", text)


def offences(text: str) -> list[str]:
    code = code_of(text)
    return [f"{match[0]}: {why}" for pattern, why in FORBIDDEN.items() for match in re.finditer(pattern, code, re.I)]


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_h40_a_file_uses_only_what_both_servers_understand(path: Path) -> None:
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO a (b) VALUES (1) AS new ON DUPLICATE KEY UPDATE b = new.b;",
        "SELECT payload->>'$.n' FROM a;",
        "INSERT INTO a (b) VALUES (1) returning id;",
        "ALTER TABLE a ADD COLUMN IF NOT EXISTS b INT;",
        "ALTER TABLE a ADD IF NOT EXISTS b INT;",
        "CREATE TABLE a (b VARCHAR(9) COLLATE utf8mb4_0900_ai_ci);",
        "SELECT 1 FROM a FOR SHARE;",
    ],
)
def test_h40_the_police_sees_what_one_server_refuses(statement: str) -> None:
    assert offences(statement)


def test_h40_the_police_overlooks_words_in_comments_and_quotes() -> None:
    assert offences("-- RETURNING is MariaDB's\nINSERT INTO a (b) VALUES ('AS new');") == []


TEXTS = r"(?:\w+\.)?(?:response|body)"
"""Columns that are no JSON everywhere: the outbox's text, and a job's answer in a table of another application."""


def unguarded(text: str) -> list[str]:
    """Where a text is read as JSON without being asked whether it is: NULL on MariaDB, an error (3141) on MySQL."""
    code = code_of(text)
    reads = re.finditer(rf"JSON_EXTRACT\(({TEXTS}),", code)
    return [read[0] for read in reads if f"IF(JSON_VALID({read[1]})," not in code[: read.start()][-80:]]


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_h40_a_text_is_read_as_json_only_if_it_is(path: Path) -> None:
    assert unguarded(path.read_text(encoding="utf-8")) == []


def test_h40_the_police_sees_a_text_that_is_read_as_json_unasked() -> None:
    assert unguarded("SELECT JSON_EXTRACT(s.response, '$.a') FROM a;")
    assert not unguarded("SELECT IF(JSON_VALID(body), JSON_EXTRACT(body, '$.a'), NULL) FROM a;")


def all_but_one(text: str) -> list[str]:
    """Where rows but one are changed: MySQL reads a secondary key as two ranges about it, and locks the row behind
    them, which is somebody else's. `id + 0 <> :one` is no range (and `id - :one` an error where ids have no sign)."""
    return re.findall(r"\bUPDATE\b[^;]*?\bid <> (?!0)[^;]*;", code_of(text))


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_h40_no_row_of_others_is_locked_where_all_but_one_are_changed(path: Path) -> None:
    assert all_but_one(path.read_text(encoding="utf-8")) == []


def test_h40_the_police_sees_that_all_but_one_are_changed() -> None:
    assert all_but_one("UPDATE a SET b = 1 WHERE c = 2 AND id <> :one;")
    assert not all_but_one("UPDATE a SET b = 1 WHERE id = 2; SELECT 1 FROM a WHERE id <> 3;")


def test_there_are_files_to_police() -> None:
    assert {"schema.sql", "0001_documents.sql", "demo.sql"} <= {path.name for path in SQL_FILES}
