"""A dump and the binary log after it are the books of the moment before the loss: docs/operations.md, "Between two
backups", as an operator types it, on a server that keeps such a log."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate
from tests import builders, private_servers
from tests.builders import Line
from tests.conftest import administer
from tests.integration.opname.walk import Walker
from tests.migrations import dumps, shape

OPERATIONS = dumps.OPERATIONS.read_text(encoding="utf-8")
(HOW_TO_LOG,) = re.findall(r"^log_bin.*\n(?:\w+ = \w+\n)*", OPERATIONS, re.MULTILINE)
(REPLAY,) = re.findall(r"^mariadb-binlog (.*) FILE", OPERATIONS, re.MULTILINE)
(POSITION,) = re.findall(r"dump with `(--master-data=2)`", OPERATIONS)
COUNT = [Line("BRG-A"), Line("BRG-B", "7", "5")]


@pytest.fixture
def logged() -> Iterator[MysqlUrl]:
    """A schema on a server set as documented."""
    with private_servers.mariadb(*(f"--{line.replace(' ', '')}" for line in HOW_TO_LOG.splitlines())) as server:
        url = replace(server, schema="everest_books")
        administer(url, f"CREATE DATABASE {url.schema} CHARACTER SET utf8mb4")
        migrate(url, lambda line: None)
        yield url


def everything(url: MysqlUrl) -> dict[str, list[tuple[Any, ...]]]:
    return {table: sorted(shape.query(url, f"SELECT * FROM {table}"), key=repr) for table in shape.tables(url)}


@pytest.mark.long
def test_a_dump_and_the_binary_log_are_the_books_of_the_moment_before_the_loss(
    logged: MysqlUrl, tmp_path: Path
) -> None:
    with closing(Walker(logged)) as walker, closing(store.connect(logged)) as conn:
        assert walker.post(builders.document(conn, COUNT).shadow_id) == "COMPLETED"
        content = dumps.dump(logged, tmp_path, POSITION)
        assert walker.post(builders.document(conn, [Line("BRG-C")]).shadow_id) == "COMPLETED"
        assert walker.post(builders.document(conn, [Line("BRG-D", "1", None)]).shadow_id) == "FAILED"
        builders.document(conn, [Line("BRG-E")])
        builders.insert(conn, "audit_log", actor="budi", action="test", reason="é ✓")
        books, wanted = builders.books(conn), everything(logged)
        ((_, until, *_),) = shape.query(logged, "SHOW MASTER STATUS")
        builders.insert(conn, "audit_log", actor="budi", action="test", reason="after it")
    ((folder,),) = shape.query(logged, "SELECT @@datadir")
    head = re.search(rb"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)", content)
    assert head, "the dump says where the log goes on"
    file, since = Path(folder) / head[1].decode(), head[2].decode()

    administer(logged, f"DROP DATABASE {logged.schema}")
    administer(logged, f"CREATE DATABASE {logged.schema} CHARACTER SET utf8mb4")
    dumps.load(logged, content, tmp_path)
    assert everything(logged) != wanted
    options = REPLAY.replace("SCHEMA", logged.schema).replace("POSITION", since).replace("END", str(until)).split()
    replayed = subprocess.run(["mariadb-binlog", *options, file], capture_output=True, check=True).stdout
    dumps.load(logged, replayed, tmp_path)

    assert everything(logged) == wanted
    assert migrate(logged, lambda line: None) == []
    with closing(store.connect(logged)) as conn:
        assert builders.books(conn) == books
        assert (books.postings, books.agree) == (2, True)
