"""P4 and P5: documents through queue, consumer and Airflow, against an empty DAG of as many tasks.

Our side begins with messages in the queue and ends with their acknowledgement, as the consumer logs it: by then the
books are posted and the job says COMPLETED. The floor begins with a POST to Airflow and ends with the end of the run.
Both go through the stack as it is: its DAG processor, scheduler, API server, executor and settings. The documents are
posted into the stack's own books, where they stay; each item is counted once, in one document.
"""

from __future__ import annotations

import re
import statistics
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bench import documents
from bench.airflow import EMPTY_DAG, POSTING_DAG, RUN_SECONDS, Airflow, burst, with_dags
from bench.measure import Result, Run, against_floor, side_by_side, spread
from everest.bootstrap import database
from everest.intake.submit import Submitted, submit
from everest.settings import MysqlUrl
from everest.store import database as store
from stack.layout import Layout

BURST, BURST_PAIRS, LINES = 60, 5, 5
SINGLE_PAIRS = 9
ACKED = re.compile(r"^(\S+ \S+) .*acked: shadow row (\d+) is COMPLETED")
REFUSED = re.compile(r"dead-lettered: shadow row (\d+) ")


class ConsumerLog:
    """The consumer's log from now on: when each of our jobs was acknowledged."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._position = file.stat().st_size

    def acked(self, shadow_ids: set[int]) -> datetime:
        """Waits for all of them and returns when the last one was. Raises RuntimeError if one was refused."""
        waiting, last = set(shadow_ids), datetime.min.replace(tzinfo=UTC)
        deadline = time.monotonic() + RUN_SECONDS
        while waiting:
            for line in self._new_lines():
                refused = REFUSED.search(line)
                if refused and int(refused[1]) in shadow_ids:
                    raise RuntimeError(f"a document of the benchmark was refused: {line}")
                found = ACKED.match(line)
                if found and int(found[2]) in waiting:
                    waiting.discard(int(found[2]))
                    last = max(last, datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").astimezone(UTC))
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(waiting)} documents were not acknowledged after {RUN_SECONDS} s")
            time.sleep(0.1)
        return last

    def _new_lines(self) -> list[str]:
        if self._file.stat().st_size < self._position:
            self._position = 0  # the manager began a new file
        with self._file.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._position)
            text = log.read()
        whole, newline, _ = text.rpartition("\n")
        self._position += len((whole + newline).encode())
        return whole.splitlines()


class Pipeline:
    """The running stack and its empty DAG."""

    def __init__(self, url: MysqlUrl, airflow: Airflow, layout: Layout) -> None:
        self._url = url
        self._airflow = airflow
        self._log_file = layout.logs / "consumer.log"
        self._session = f"{datetime.now(UTC):%y%m%d%H%M%S}"
        self._next = 0
        self.from_commit: list[float] = []
        documents.add_warehouses(url)

    def documents(self, count: int, lines: int = LINES, dag: str = POSTING_DAG, apart: bool = False) -> float:
        """Seconds from the first message in the queue to the last acknowledgement. dag: which of the DAGs of the
        posting the documents go through. apart: each is counted in a warehouse of its own, up to twelve."""
        self._airflow.wait_until_idle()
        log = ConsumerLog(self._log_file)
        submissions = []
        for number in range(count):
            self._next += 1
            nota = f"BENCH-{self._session}-{self._next}"
            where = (documents.APART[number % len(documents.APART)],) if apart else documents.WAREHOUSES
            counted = documents.lines(lines, self._next, prefix=nota, warehouses=where)
            submissions.append(documents.submission(nota, counted))
        units = database(self._url)
        try:
            # One commit: the messages are due at once, and the submitting does not overlap what is measured.
            with units.transaction() as tx:
                jobs = [submit(tx, each, documents.AUTHORITY) for each in submissions]
                shadow_ids = {job.shadow_id for job in jobs if isinstance(job, Submitted)}
                if dag != POSTING_DAG:
                    _send_through(tx.conn, dag, shadow_ids)
            committed = datetime.now(UTC)
        finally:
            units.close()
        last = log.acked(shadow_ids)
        self.from_commit.append((last - committed).total_seconds())
        return (last - self._check(shadow_ids, lines, dag)).total_seconds()

    def _check(self, shadow_ids: set[int], lines: int, dag: str) -> datetime:
        """All are posted, each in one run of that DAG; returns when the first message was published."""
        ids = tuple(shadow_ids)
        with closing(store.connect(self._url)) as conn, conn.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM posting_sets p JOIN rabbit_publish_shadow s ON s.id = p.shadow_id"
                " WHERE p.shadow_id IN %s AND p.baris_selisih = %s AND s.dag_id = %s AND s.n = 1",
                (ids, lines, dag),
            )
            (posted,) = cursor.fetchone()
            cursor.execute("SELECT MIN(published_at) FROM outbox WHERE shadow_id IN %s", (ids,))
            (published,) = cursor.fetchone()
        if posted != len(ids):
            raise RuntimeError(f"{posted} of {len(ids)} documents stand in the books")
        return published.replace(tzinfo=UTC)  # type: ignore[no-any-return]

    def empty_runs(self, count: int) -> float:
        """Seconds from the first POST to the end of the last run."""
        self._next += 1
        return burst(self._airflow, EMPTY_DAG, f"bench_{self._session}_{self._next}_", count)


def _send_through(conn: store.Connection, dag: str, shadow_ids: set[int]) -> None:
    """The announced runs are runs of that DAG: of the same workflow and version, so it takes them."""
    with conn.cursor() as cursor:
        for statement in (
            "UPDATE workflow_runs SET dag_id = %s WHERE carrier_shadow_id IN %s",
            "UPDATE rabbit_publish_shadow SET dag_id = %s WHERE id IN %s",
            "UPDATE outbox SET body = JSON_SET(body, '$.dag_id', %s) WHERE shadow_id IN %s",
        ):
            if cursor.execute(statement, (dag, tuple(shadow_ids))) != len(shadow_ids):
                raise RuntimeError(f"not one row for each document: {statement}")


def p4_and_p5(url: MysqlUrl, layout: Layout, smoke: bool, wanted: set[str]) -> list[Result]:
    with with_dags(layout, EMPTY_DAG) as airflow:
        pipeline = Pipeline(url, airflow, layout)
        for _ in range(1 if smoke else 3):  # every worker process has imported what it needs
            pipeline.documents(2 if smoke else 8)
            pipeline.empty_runs(2 if smoke else 8)
        results = []
        if "P4" in wanted:
            results.append(_p4(pipeline, *((4, 1) if smoke else (BURST, BURST_PAIRS))))
        if "P5" in wanted:
            results.append(_p5(pipeline, 1 if smoke else SINGLE_PAIRS))
        return results


def _p4(pipeline: Pipeline, burst: int, pairs: int) -> Result:
    seconds = side_by_side(pairs, lambda _: pipeline.documents(burst), lambda _: pipeline.empty_runs(burst))
    runs = [Run(burst / ours, burst / floor) for ours, floor in seconds]
    return against_floor(
        "P4",
        f"pipeline throughput: {burst} documents of {LINES} lines through queue, consumer, Airflow",
        "documents/s",
        "an empty DAG of 3 tasks, all runs triggered by REST at once",
        runs,
        must=0.80,
        aim=0.95,
        larger_is_better=True,
        note=f"seconds per burst {spread([ours for ours, _ in seconds])} against {spread([low for _, low in seconds])}",
    )


def _p5(pipeline: Pipeline, pairs: int) -> Result:
    pipeline.from_commit.clear()
    runs = [
        Run(ours, floor)
        for ours, floor in side_by_side(pairs, lambda _: pipeline.documents(1), lambda _: pipeline.empty_runs(1))
    ]
    return against_floor(
        "P5",
        f"pipeline latency: one document of {LINES} lines, message in the queue to acknowledgement",
        "s",
        "an empty DAG of 3 tasks, POST to end of run",
        runs,
        must=1.3,
        aim=1.1,
        note=f"from the commit of the submit {statistics.median(pipeline.from_commit):.2f} s",
    )
