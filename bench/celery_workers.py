"""P14: the same burst of large documents with two Celery workers and with one, on the running stack.

The stack is switched to Celery and two workers and, at the end, back to what it was. Both sides are the same stack: for
one of them the second worker is stopped, so a worker always runs as many tasks at once. What the second one adds on
one machine is bounded by its cores, which the database, the scheduler and the API server use as well.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from bench.airflow import with_dags
from bench.measure import Result, Run, against_floor, side_by_side, spread
from bench.pipeline import Pipeline
from everest.settings import MysqlUrl
from stack import machine, manager, servers
from stack.layout import Layout
from stack.programs import Stack
from stack.shape import CELERY, Shape
from stack.up import up

WORKERS = 2
SECOND = f"airflow-worker-{WORKERS}"
BURST, LINES, PAIRS = 12, 20_000, 3
LISTENING_SECONDS = 120


def p14(url: MysqlUrl, layout: Layout, smoke: bool) -> list[Result]:
    burst, lines, pairs = (2, 50, 1) if smoke else (BURST, LINES, PAIRS)
    with _celery(layout), with_dags(layout) as airflow:
        pipeline = Pipeline(url, airflow, layout)

        def seconds(workers: int) -> float:
            _have(layout, workers)
            return pipeline.documents(burst, lines)

        pipeline.documents(burst, min(lines, 1000))  # every worker process has imported what it needs
        both = side_by_side(pairs, lambda _: seconds(WORKERS), lambda _: seconds(1))
        _have(layout, WORKERS)
    at_once = -(-machine.parallelism() // WORKERS)
    return [
        against_floor(
            "P14",
            f"two Celery workers, {at_once} tasks each: {burst} documents of {lines} lines",
            "documents/s",
            f"one of them: {at_once} tasks at once",
            [Run(burst / two, burst / one) for two, one in both],
            must=None,
            aim=None,
            larger_is_better=True,
            note=f"seconds per burst {spread([two for two, _ in both])} against {spread([one for _, one in both])}",
        )
    ]


@contextmanager
def _celery(layout: Layout) -> Iterator[None]:
    before = Stack.open(layout).shape
    with redirect_stdout(io.StringIO()):
        # One consumer: its log is what the pipeline reads.
        up(layout, shape=Shape(CELERY, workers=WORKERS, consumers=1, standby=before.standby))
    try:
        yield
    finally:
        with redirect_stdout(io.StringIO()):
            up(layout, shape=before)


def _have(layout: Layout, workers: int) -> None:
    """The second worker runs, or does not, and is listened to."""
    stack = Stack.open(layout)
    program = stack.program(SECOND)
    if workers < WORKERS:
        manager.stop_program(layout, program)
        return
    manager.start_program(layout, program)
    deadline = time.monotonic() + LISTENING_SECONDS
    while (problem := servers.workers_listen(stack)) is not None:
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {LISTENING_SECONDS} s only {problem}")
        time.sleep(0.5)
