"""P1: how long a person at the screen waits for a submit of 20,000 lines.

Measured is what the web path does with a parsed document: make its rows, write header, lines, accounting document, run,
job and outbox row in one transaction, commit. The connection is open, as in a web process; what a submission computes
once (its rows, its token) is computed anew each time. No floor: the promise is absolute.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing

from bench import documents
from bench.measure import Result, Run, percentile, spread
from everest.bootstrap import database
from everest.intake.submit import Submitted, submit
from everest.settings import MysqlUrl
from everest.store import database as store

LINES = 20_000
RUNS = 20


def p1(url: MysqlUrl, smoke: bool) -> list[Result]:
    count, times = (50, 3) if smoke else (LINES, RUNS)
    documents.add_warehouses(url)
    units = database(url)
    seconds, cpu = [], []
    try:
        for number in range(times + 1):
            # As a form sends it: no token of the sender's, so the content is fingerprinted as well.
            document = documents.submission(f"BENCH-P1-{number}", documents.lines(count, number), token=None)
            began, busy = time.perf_counter(), time.process_time()
            with units.transaction() as tx:
                stored = submit(tx, document, documents.AUTHORITY)
            if number:  # the first one opens the connection
                seconds.append(time.perf_counter() - began)
                cpu.append(time.process_time() - busy)
            if not isinstance(stored, Submitted) or stored.lines != count:
                raise RuntimeError(f"{document.nomer_nota}: {stored}")
    finally:
        units.close()
    _check(url, count * (times + 1))
    p95 = percentile(seconds, 0.95)
    return [
        Result(
            "P1",
            f"submit of {count:,} lines by the web path, p95 of {times}",
            "s",
            "absolute",
            p95,
            None,
            p95,
            must=1.0,
            aim=0.5,
            runs=tuple(Run(value) for value in seconds),
            note=(
                f"median {statistics.median(seconds):.3f} s ({spread(seconds)});"
                f" of it {statistics.median(cpu):.3f} CPU-s in the client"
            ),
        )
    ]


def _check(url: MysqlUrl, expected: int) -> None:
    with closing(store.connect(url)) as conn, conn.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM so_details_staging")
        (found,) = cursor.fetchone()
    if found != expected:
        raise RuntimeError(f"{found} lines stand in the database, not {expected}")
