"""P10: the latency of one document beside 1,000 that wait, against the same without them.

They are documents over an approval limit, walked to their question as `everest post` would, so that each has its run,
its open wait, its timer in the outbox and its job WAITING in the stack's own tables. The documents that are measured
go through the whole pipeline: before, beside and after them, and the floor is both of the times without.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from bench import documents
from bench.airflow import EMPTY_DAG, with_dags
from bench.measure import Result, Run, spread
from bench.pipeline import Pipeline
from everest.bootstrap import database
from everest.intake.submit import Submitted, submit
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.workflow import control, engine, runner
from stack.layout import Layout

WAITING, DOCUMENTS = 1_000, 9
WAREHOUSE = "BENCH-TUNGGU"


def p10(url: MysqlUrl, layout: Layout, smoke: bool) -> list[Result]:
    count, documents_each = (5, 1) if smoke else (WAITING, DOCUMENTS)
    with with_dags(layout, EMPTY_DAG) as airflow:
        pipeline = Pipeline(url, airflow, layout)
        for _ in range(1 if smoke else 3):  # every worker process has imported what it needs
            pipeline.documents(2 if smoke else 8)
        before = [pipeline.documents(1) for _ in range(documents_each)]
        with waiting(url, count):
            beside = [pipeline.documents(1) for _ in range(documents_each)]
        after = [pipeline.documents(1) for _ in range(documents_each)]
    alone = [*before, *after]
    value, floor = statistics.median(beside), statistics.median(alone)
    return [
        Result(
            "P10",
            f"latency of one document (P5) beside {count:,} workflows that wait",
            "s",
            "P5 without them, before and after",
            value,
            floor,
            value / floor,
            1.1,
            1.0,
            runs=tuple(map(Run, beside, _means(before, after))),
            note=f"without them before {spread(before)} s, after {spread(after)} s",
        )
    ]


def _means(before: list[float], after: list[float]) -> list[float]:
    """The floor beside each run: the mean of the two without."""
    return [(one + other) / 2 for one, other in zip(before, after, strict=True)]


@contextmanager
def waiting(url: MysqlUrl, count: int) -> Iterator[None]:
    """So many documents WAITING for a person; cancelled at the end."""
    with closing(store.connect(url)) as conn, store.transaction(conn), conn.cursor() as cursor:
        cursor.execute(
            "INSERT INTO gudang (gudang_kode, nama) VALUES (%s, 'Benchmark') ON DUPLICATE KEY UPDATE aktif = 1",
            (WAREHOUSE,),
        )
        cursor.execute(
            "INSERT INTO kebijakan_selisih (gudang_kode, batas_dokumen) VALUES (%s, 0)"
            " ON DUPLICATE KEY UPDATE batas_dokumen = 0",
            (WAREHOUSE,),
        )
    units = database(url)
    runs: list[int] = []
    try:
        session = f"{datetime.now(UTC):%y%m%d%H%M%S}"
        for number in range(count):
            nota = f"BENCH-TUNGGU-{session}-{number}"
            line = documents.lines(1, number, prefix=nota)[0]._replace(gudang_kode=WAREHOUSE)
            document = replace(documents.submission(nota, [line]), gudang_kode=WAREHOUSE)
            with units.transaction() as tx:
                job = submit(tx, document, documents.AUTHORITY)
                if not isinstance(job, Submitted):
                    raise RuntimeError(f"{nota} was there already")
                ticket = engine.take_over(tx, POST_OPNAME, job.shadow_id)
            runs.append(ticket.workflow_id or 0)
            runner.run_to_end(POST_OPNAME, ticket, units.transaction)
        _check(url, runs)
        yield
        _check(url, runs)
    finally:
        for run_id in runs:
            with units.transaction() as tx:
                control.cancel(tx, POST_OPNAME, run_id, "bench")
        units.close()


def _check(url: MysqlUrl, runs: list[int]) -> None:
    with closing(store.connect(url)) as conn, conn.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM rabbit_publish_shadow WHERE workflow_id IN %s AND worker_status = 'WAITING'",
            (tuple(runs),),
        )
        (found,) = cursor.fetchone()
    if found != len(runs):
        raise RuntimeError(f"{found} of {len(runs)} documents wait")
