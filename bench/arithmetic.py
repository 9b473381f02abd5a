"""P3: the variance alone, exact decimals, against the same arithmetic in float64.

Both have their data in memory in the form they work on: ours the frame that a posting computes with, made by the same
function out of the texts that the driver hands over, the floor numpy arrays. The same lines as a frame of Decimal
objects, which is how a document with a number beyond 63 bits is computed, are reported beside it (P3-objects).

The floor subtracts, multiplies, rounds to cents and splits surplus from shortage, and is wrong about some of the cents;
that is why it is not what we do.
"""

from __future__ import annotations

import time
from decimal import Decimal

import numpy as np
from pandas import DataFrame

from bench import documents
from bench.measure import Result, Run, against_floor, side_by_side
from everest.opname import variance
from everest.opname.lines import POSTED_COLUMNS
from everest.store.frames import stored_lines

LINES = 100_000
PAIRS = 15


def p3(smoke: bool) -> list[Result]:
    count, pairs = (500, 1) if smoke else (LINES, PAIRS)
    counted = documents.lines(count, seed=3)
    rows = [(number, *line) for number, line in enumerate(counted, start=1)]
    objects = DataFrame(rows, columns=["baris", *type(counted[0])._fields], dtype=object)[list(POSTED_COLUMNS)]
    texts = [tuple(str(value) if isinstance(value, Decimal) else value for value in row) for row in objects.to_numpy()]
    stored = stored_lines(texts, POSTED_COLUMNS)
    what = f"variance alone, {count:,} lines, exact decimals"
    return [
        _result("P3", what, stored, count, pairs, (60, 20)),
        _result("P3-objects", f"{what}, as Decimal objects", objects, count, pairs, (None, None)),
    ]


def _result(
    id: str, what: str, frame: DataFrame, count: int, pairs: int, bounds: tuple[float | None, float | None]
) -> Result:
    sistem, fisik, harga = (
        np.array(frame[name].tolist(), dtype=np.float64) for name in ("qty_sistem", "qty_fisik", "harga_pokok")
    )

    def ours(_: int) -> float:
        began = time.perf_counter()
        result = variance.compute_variance(frame)
        took = time.perf_counter() - began
        if result.problems or len(result.frame) != count:
            raise RuntimeError("the variance of a valid document has problems")
        return took

    def floor(_: int) -> float:
        began = time.perf_counter()
        selisih = fisik - sistem
        nilai = np.round(selisih * harga, 2)
        debet, kredit = np.maximum(nilai, 0.0), np.maximum(-nilai, 0.0)
        total = debet.sum() + kredit.sum()
        took = time.perf_counter() - began
        exact = sum(variance.totals(variance.compute_variance(frame).frame)) if pairs == 1 else None
        if exact is not None and abs(float(exact) - total) > 1:
            raise RuntimeError(f"the floor computes something else: {total} against {exact}")
        return took

    ours(0)
    floor(0)
    runs = [Run(value, bottom) for value, bottom in side_by_side(pairs, ours, floor)]
    return against_floor(id, what, "s", "the same in float64 numpy, in memory", runs, must=bounds[0], aim=bounds[1])
