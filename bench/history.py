"""P9-history: the posting core beside five million older rows in each of jurnal and kartu_stok, and without them.

Two schemas on one server take turns, so that a noisy minute meets both. The older rows are of the items and warehouses
that the documents count, and are far more than the buffer pool holds: what a step reads and writes has to find its few
pages among them.
"""

from __future__ import annotations

import statistics
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from bench import documents
from bench.measure import Result, Run, against_floor, side_by_side
from bench.posting import LINES, SMOKE_LINES, Core
from bench.schema import private_schema
from bench.server import BenchServer
from everest.settings import MysqlUrl
from everest.store import database as store

ROWS, SMOKE_ROWS = 5_000_000, 2_000
ROWS_PER_INSERT = 250_000
# Beyond the ids of the documents that are posted beside them.
FIRST_ID = 1_000_000_000
PAIRS = 7
QUERIES = store.load_queries(Path(__file__).with_name("history.sql"))


def p9_history(server: BenchServer, smoke: bool) -> list[Result]:
    lines, rows, pairs = (SMOKE_LINES, SMOKE_ROWS, 1) if smoke else (LINES, ROWS, PAIRS)
    # Neither in the server's own schema: what other benchmarks posted there would be a history, too.
    with private_schema(server.url) as url, private_schema(server.url, "without") as without_url:
        fill(url, rows, lines)
        beside, without = Core(replace(server, url=url)), Core(replace(server, url=without_url))
        try:
            beside.post(lines)
            without.post(lines)
            costs = side_by_side(pairs, lambda index: beside.post(lines), lambda index: without.post(lines))
        finally:
            beside.close()
            without.close()
    cpu = [statistics.median(side) for side in zip(*((one.cpu, other.cpu) for one, other in costs), strict=True)]
    steps = "; ".join(
        ", ".join(f"{name} {statistics.median(seconds):.3f} s" for name, seconds in core.step_seconds.items())
        for core in (beside, without)
    )
    return [
        against_floor(
            "P9-history",
            f"posting core, {lines:,} lines, beside {rows:,} older rows in each of jurnal and kartu_stok",
            "s",
            "itself without them",
            [Run(one.seconds, other.seconds) for one, other in costs],
            must=1.1,
            aim=1.03,
            note=f"by step, beside them and without: {steps}; CPU {cpu[0]:.2f} s against {cpu[1]:.2f} s",
        )
    ]


def fill(url: MysqlUrl, rows: int, items: int) -> None:
    """`rows` older rows in each table. Raises RuntimeError when others stand there afterwards."""
    given = {"items": items, "warehouses": len(documents.WAREHOUSES), "warehouse": documents.WAREHOUSES[0][:-1]}
    with closing(store.connect(url)) as conn:
        QUERIES.make_numbers(conn)
        QUERIES.numbers(conn)
        for table in ("kartu_stok", "jurnal"):
            keys = list(QUERIES.keys_of(conn, table_name=table))
            _alter(conn, table, [f"DROP KEY {key['name']}" for key in keys])
            for first in range(1, rows + 1, ROWS_PER_INSERT):
                part = {"first": first, "last": min(first + ROWS_PER_INSERT, rows + 1), "first_id": FIRST_ID}
                with store.transaction(conn):
                    if table == "jurnal":
                        QUERIES.entries(conn, **part)
                    else:
                        QUERIES.movements(conn, **part, **given)
            _alter(conn, table, [f"ADD {key['kind']} {key['name']} ({key['columns']})" for key in keys])
            with conn.cursor() as cursor:
                cursor.execute(f"SELECT COUNT(*) FROM {table}")
                if (found := cursor.fetchone()[0]) != rows:
                    raise RuntimeError(f"{found} older rows in {table}, not {rows}")
                cursor.execute(f"ANALYZE TABLE {table}")
                cursor.fetchall()


def _alter(conn: store.Connection, table: str, parts: list[str]) -> None:
    with conn.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} {', '.join(parts)}")
