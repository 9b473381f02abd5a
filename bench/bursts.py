"""P12 and P13: what a site with many small documents gains by fused tasks, and how fast large documents are.

P12 sends the same burst through the posting's two shapes in turn: a task for each step, and one task for all three
(EVEREST_POSTING_TASKS=fused, here as a DAG beside the stack's own). P13 sends large documents through the stack as it
is, and measures beside it what LOAD DATA brings into the same tables, on the server that P2 uses, with the stack's
settings; P13-fused sends the same through one task, P13-warehouses documents that share no warehouse (so none waits for
another's lock), in turn with it. Everything is posted into the stack's own books,
where it stays.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from bench.airflow import FUSED_DAG, POSTING_DAG, with_dags
from bench.measure import Result, Run, against_floor, show, side_by_side, spread
from bench.pipeline import BURST, LINES, Pipeline
from bench.posting import Core
from bench.server import BenchServer
from everest.settings import MysqlUrl
from stack.layout import Layout

PAIRS = 5
DOCUMENTS, DOCUMENT_LINES = 12, 10_000


def p12(url: MysqlUrl, layout: Layout, smoke: bool) -> list[Result]:
    burst, pairs = (3, 1) if smoke else (BURST, PAIRS)
    with with_dags(layout, FUSED_DAG) as airflow:
        pipeline = Pipeline(url, airflow, layout)
        for _ in range(1 if smoke else 3):  # every worker process has imported what it needs
            pipeline.documents(2 if smoke else 8)
            pipeline.documents(2 if smoke else 8, dag=FUSED_DAG)
        seconds = side_by_side(
            pairs, lambda _: pipeline.documents(burst, dag=FUSED_DAG), lambda _: pipeline.documents(burst)
        )
    return [
        against_floor(
            "P12",
            f"pipeline throughput with one task for all steps: {burst} documents of {LINES} lines",
            "documents/s",
            "P4: the same with one task for each step",
            [Run(burst / fused, burst / each) for fused, each in seconds],
            must=2,
            aim=3,
            larger_is_better=True,
            note="seconds per burst " + " against ".join(spread(side) for side in zip(*seconds, strict=True)),
        )
    ]


def p13(url: MysqlUrl, layout: Layout, server: BenchServer, smoke: bool) -> list[Result]:
    documents, lines, pairs = (2, 300, 1) if smoke else (DOCUMENTS, DOCUMENT_LINES, PAIRS)
    shapes = (
        ("P13", POSTING_DAG, False),
        ("P13-fused", FUSED_DAG, False),
        ("P13-warehouses", POSTING_DAG, True),
    )
    core = Core(server)
    try:
        core.post(lines)  # the rows that are loaded
        rows = core.load_rows()
        with with_dags(layout, FUSED_DAG) as airflow:
            pipeline = Pipeline(url, airflow, layout)
            for _ in range(1 if smoke else 2):
                for dag in (POSTING_DAG, FUSED_DAG):
                    pipeline.documents(4, dag=dag)

            def each_shape(index: int) -> dict[str, float]:
                """Seconds of the burst in every shape; each is first in turn."""
                first = index % len(shapes)
                return {
                    id: pipeline.documents(documents, lines, dag, apart)
                    for id, dag, apart in (*shapes[first:], *shapes[:first])
                }

            seconds = side_by_side(pairs, each_shape, lambda _: core.load().seconds)
    finally:
        core.close()
    loads = [rows / floor for _, floor in seconds]
    each, fused, apart = ([ours[id] for ours, _ in seconds] for id, _, _ in shapes)
    result = _large("P13", "a task for each step", documents, lines, each, loads, rows)
    further = (
        (_large("P13-fused", "one task for all steps", documents, lines, fused, loads, rows), fused),
        (_large("P13-warehouses", "a warehouse for each document", documents, lines, apart, loads, rows), apart),
    )
    return [
        replace(result, must=0.3, aim=0.6),
        *(replace(one, note=f"{_gain(each, its)} times P13, in turn with it; {one.note}") for one, its in further),
    ]


def _gain(before: Sequence[float], after: Sequence[float]) -> str:
    return show(statistics.median(before) / statistics.median(after))


def _large(
    id: str,
    shape: str,
    documents: int,
    lines: int,
    seconds: Sequence[float],
    loads: Sequence[float],
    rows: int,
) -> Result:
    """seconds: of each burst. loads: the floor beside each, in rows/s as it is defined; how it reads in lines of a
    document, of `rows` rows, stands in the note."""
    result = against_floor(
        id,
        f"large documents through the pipeline with {shape}: {documents} of {lines:,} lines",
        "lines/s",
        "LOAD DATA of one document's rows, two for each line, in rows/s",
        [Run(documents * lines / ours, floor) for ours, floor in zip(seconds, loads, strict=True)],
        must=None,
        aim=None,
        larger_is_better=True,
    )
    note = (
        f"{show(result.ratio * rows / lines)} with the floor counted in lines of {rows / lines:g} rows; seconds per"
        f" burst {spread(seconds)}, {show(documents / statistics.median(seconds))} documents/s"
    )
    return replace(result, note=note)
