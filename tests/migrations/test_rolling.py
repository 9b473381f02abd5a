"""Two versions of the programs may work on one schema: a migration only adds what an older program does not notice."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import MIGRATIONS_DIR, migrate, read_migrations
from tests import builders
from tests.builders import Line
from tests.integration.opname.deciding import approve, surprising
from tests.integration.opname.walk import Walker
from tests.migrations import shape

Build = Callable[[int], None]
NEWEST = len(read_migrations(MIGRATIONS_DIR))
STEPS_SINCE = 9
"""Today's steps find every column that they name since 0009; with a later one this number rises."""

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


@pytest.fixture
def build(empty_schema: MysqlUrl, tmp_path: Path) -> Build:
    """Brings the schema to the state of a release: the first so many migrations."""

    def build(state: int) -> None:
        for file in read_migrations(MIGRATIONS_DIR)[:state]:
            shutil.copy(MIGRATIONS_DIR / f"{file.name}.sql", tmp_path)
        migrate(empty_schema, lambda line: None, tmp_path)

    return build


@pytest.mark.parametrize("state", [STEPS_SINCE, NEWEST - 1])
def test_postings_go_on_while_the_schema_is_upgraded_under_them(
    empty_schema: MysqlUrl, build: Build, state: int
) -> None:
    """One waits for a person, one stands between its steps, one after the other is posted meanwhile: none fails, none
    needs a second run."""
    build(state)
    walker, over = Walker(empty_schema), threading.Event()

    def post_on() -> int:
        posted = 0
        with closing(Walker(empty_schema)) as other, closing(store.connect(empty_schema)) as conn:
            while not over.is_set() or posted < 3:
                one = builders.document(conn, [Line(f"M-{posted}")], gudang_kode="GD-B")
                assert other.post(one.shadow_id) == "COMPLETED"
                posted += 1
        return posted

    with closing(walker), closing(store.connect(empty_schema)) as connection, ThreadPoolExecutor() as pool:
        waiting = surprising(connection)
        assert walker.post(waiting.shadow_id) == "WAITING"
        between = builders.document(connection, [Line("X")])
        ticket = walker.claim(between.shadow_id)
        walker.step(ticket, "compute_variance")
        meanwhile = pool.submit(post_on)
        try:
            applied = migrate(empty_schema, lambda line: None)
        finally:
            over.set()
        posted = meanwhile.result()
        for step in ("clean_duplicate_notas", "post_jurnal"):
            walker.step(ticket, step)
        approve(walker, waiting.nomer_nota)
        assert walker.post(waiting.shadow_id) == "COMPLETED"

        assert len(applied) == NEWEST - state
        jobs = builders.rows(connection, "SELECT worker_status, error, n FROM rabbit_publish_shadow")
        assert {(job["worker_status"], job["error"]) for job in jobs} == {("COMPLETED", None)}
        assert sorted(job["n"] for job in jobs) == [*[1] * (posted + 1), 2], "only the approved one ran twice"
        (sums,) = builders.rows(connection, "SELECT SUM(debet) AS debet, SUM(kredit) AS kredit FROM jurnal")
        assert sums["debet"] == sums["kredit"] > 0


def test_what_a_program_of_any_release_writes_the_newest_schema_takes(
    empty_schema: MysqlUrl, database: MysqlUrl, build: Build
) -> None:
    """After each migration the tables are asked what an INSERT of that day had to name and could: each of its columns
    is there as it was, and those that came since can be left out."""
    newest = {(row[0], row[2]): row[3:] for row in shape.of(database)["columns"]}
    views = {row[0] for row in shape.of(database)["views"]}
    for state in range(1, NEWEST):
        build(state)
        then = {(row[0], row[2]): row[3:] for row in shape.of(empty_schema)["columns"] if row[0] not in views}
        assert {name: newest.get(name) for name in then} == then
        tables = {table for table, _ in then}
        for (table, column), (_, is_nullable, default, extra, *_) in newest.items():
            if table in tables and (table, column) not in then:
                assert is_nullable == "YES" or default is not None or extra, f"{table}.{column} since {state}"
