"""P2 and P9: the posting core, read, validate, compute and post, against LOAD DATA of the rows that it wrote.

The three steps run as a task runs them (`run_step`, a transaction each), without Airflow and the broker. The floor
loads the very rows a posting left in transaksi_values and kartu_stok, under another number and nota, from files in the
page cache into the same tables: same indexes, same checks, same session, one transaction, one commit.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bench import documents
from bench.measure import Result, Run, against_floor, exponent, show, side_by_side, spread
from bench.server import BenchServer
from everest.bootstrap import database
from everest.opname.workflow import POST_OPNAME
from everest.store import database as store
from everest.workflow import engine, runner

LINES = 20_000
PAIRS = 7
GROWTH_SIZES = (1_000, 10_000, 100_000)
GROWTH_RUNS = {1_000: 9, 10_000: 7, 100_000: 5}
SMOKE_LINES = 50
SMOKE_SIZES = (10, 40, 160)
FLOOR_OFFSET = 1_000_000_000
"""Added to the numbers of a floor's rows, so that they are nobody's."""

VALUES = (
    "transaksi_id, baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet,"
    " nilai_kredit"
)
CARDS = (
    "posting_id, transaksi_id, nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar,"
    " harga_pokok, nilai, created_at"
)


class Cost(NamedTuple):
    """What something took: on the wall, and of CPU in this process and the server together. A busy neighbour
    stretches the first."""

    seconds: float
    cpu: float

    def __add__(self, other: tuple[Any, ...]) -> Cost:
        return Cost(self.seconds + other[0], self.cpu + other[1])

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.seconds - other.seconds, self.cpu - other.cpu)


class Core:
    """Documents on one server: posted by the product, or their rows loaded by the floor. Times in seconds."""

    def __init__(self, server: BenchServer) -> None:
        self.server = server
        self.units = database(server.url)
        self._next = 0
        self.step_seconds: dict[str, list[float]] = {step.name: [] for step in POST_OPNAME.steps}
        self.posted: list[tuple[int, int]] = []  # transaksi_id and rows of its values and stock card
        documents.add_warehouses(server.url)

    def close(self) -> None:
        self.units.close()

    def post(self, lines: int, share: float = documents.VARIANCE_SHARE) -> Cost:
        """Submits a document (not measured), posts it (measured) and checks that it was posted."""
        self._next += 1
        nota = f"BENCH-{lines}-{self._next}"
        stored = documents.store_document(
            self.server.url, documents.submission(nota, documents.lines(lines, self._next, share))
        )
        with self.units.transaction() as tx:
            ticket = engine.take_over(tx, POST_OPNAME, stored.shadow_id)
        whole = Cost(0, 0)
        for step in POST_OPNAME.steps:
            before = self._now()
            runner.run_step(POST_OPNAME, ticket, step.name, self.units.transaction, is_last_try=True)
            cost = self._now() - before
            self.step_seconds[step.name].append(cost.seconds)
            whole += cost
        self.posted.append((stored.transaksi_id, self._check(stored.transaksi_id, lines)))
        return whole

    def _now(self) -> Cost:
        return Cost(time.perf_counter(), time.process_time() + self.server.cpu_seconds())

    def _check(self, transaksi_id: int, lines: int) -> int:
        with closing(store.connect(self.server.url)) as conn, conn.cursor() as cursor:
            cursor.execute(
                # By the posting, which has an index: a scan of a long history would push out of the buffer pool what
                # the next posting needs.
                "SELECT (SELECT COUNT(*) FROM transaksi_values WHERE transaksi_id = p.transaksi_id),"
                " (SELECT COUNT(*) FROM kartu_stok WHERE posting_id = p.id), p.baris_selisih"
                " FROM posting_sets p WHERE p.transaksi_id = %s",
                (transaksi_id,),
            )
            values, cards, varying = cursor.fetchone()
        if values != lines or cards != varying:
            raise RuntimeError(f"transaksi {transaksi_id}: {values} values of {lines}, {cards} cards of {varying}")
        return int(values) + int(cards)

    def load_rows(self) -> int:
        """How many rows `load` loads."""
        return self.posted[-1][1]

    def load(self) -> Cost:
        """LOAD DATA of the newest posted document's rows."""
        transaksi_id, expected = self.posted[-1]
        self._next += 1
        with closing(self.server.loader()) as conn, conn.cursor() as cursor, tempfile.TemporaryDirectory() as folder:
            values, cards = Path(folder, "values.tsv"), Path(folder, "cards.tsv")
            shift = FLOOR_OFFSET + self._next * 1_000
            _write(
                cursor, values, f"SELECT {VALUES} FROM transaksi_values WHERE transaksi_id = %s", transaksi_id, shift
            )
            _write(cursor, cards, f"SELECT {CARDS} FROM kartu_stok WHERE transaksi_id = %s", transaksi_id, shift)
            conn.commit()
            before = self._now()
            cursor.execute(f"LOAD DATA LOCAL INFILE '{values}' INTO TABLE transaksi_values ({VALUES})")
            loaded = cursor.rowcount
            cursor.execute(f"LOAD DATA LOCAL INFILE '{cards}' INTO TABLE kartu_stok ({CARDS})")
            loaded += cursor.rowcount
            conn.commit()
            took = self._now() - before
        if loaded != expected:
            raise RuntimeError(f"LOAD DATA loaded {loaded} rows, not the {expected} that were posted")
        return took


def _write(cursor: store.Connection, file: Path, query: str, transaksi_id: int, shift: int) -> None:
    cursor.execute(query, (transaksi_id,))
    columns = [part.strip() for part in query.removeprefix("SELECT ").partition(" FROM ")[0].split(",")]
    moved = {columns.index("transaksi_id"), *([columns.index("posting_id")] if "posting_id" in columns else [])}
    nota = columns.index("nomer_nota") if "nomer_nota" in columns else None
    with file.open("w", encoding="utf-8") as out:
        for row in cursor.fetchall():
            texts = [
                str(value + shift) if place in moved else f"{value}-F{shift}" if place == nota else str(value)
                for place, value in enumerate(row)
            ]
            out.write("\t".join(texts) + "\n")


def p2(server: BenchServer, smoke: bool) -> list[Result]:
    """The posting core with every line posted (judged), and with half and a tenth of them (reported)."""
    lines, pairs = (SMOKE_LINES, 1) if smoke else (LINES, PAIRS)
    results = []
    core = Core(server)
    try:
        for id, share, bounds in (
            ("P2", 1.0, (2.5, 1.5)),
            ("P2-half", 0.5, (None, None)),
            ("P2-few", 0.1, (None, None)),
        ):
            core.post(lines, share)  # imports, first connections, a buffer pool that has seen these tables
            core.load()
            results.append(_p2(core, id, lines, share, pairs, bounds))
    finally:
        core.close()
    return results


def _p2(core: Core, id: str, lines: int, share: float, pairs: int, bounds: tuple[float | None, float | None]) -> Result:
    for seconds in core.step_seconds.values():
        seconds.clear()
    costs = side_by_side(pairs, lambda index: core.post(lines, share), lambda index: core.load())
    runs = [Run(ours.seconds, floor.seconds) for ours, floor in costs]
    cpu = [statistics.median(side) for side in zip(*((ours.cpu, floor.cpu) for ours, floor in costs), strict=True)]
    steps = ", ".join(f"{name} {statistics.median(seconds):.3f} s" for name, seconds in core.step_seconds.items())
    return against_floor(
        id,
        f"posting core, {lines:,} lines, {share:.0%} of them with a variance, three steps",
        "s",
        f"LOAD DATA of its {core.posted[-1][1]:,} rows in one transaction",
        runs,
        must=bounds[0],
        aim=bounds[1],
        note=(
            f"{lines / statistics.median(run.value for run in runs):,.0f} lines/s; by step {steps}; CPU of client and"
            f" server together {cpu[0]:.2f} s against {cpu[1]:.2f} s: {cpu[0] / max(cpu[1], 0.01):.2f}x"
        ),
    )


def p9(server: BenchServer, smoke: bool) -> list[Result]:
    """How the posting core grows with the document."""
    sizes: Sequence[int] = SMOKE_SIZES if smoke else GROWTH_SIZES
    medians, cpu, spreads, runs = [], [], [], []
    core = Core(server)
    try:
        core.post(sizes[0])
        for size in sizes:
            costs = [core.post(size) for _ in range(1 if smoke else GROWTH_RUNS[size])]
            seconds = [cost.seconds for cost in costs]
            medians.append(statistics.median(seconds))
            cpu.append(statistics.median(cost.cpu for cost in costs))
            spreads.append(f"{size:,}: {show(medians[-1])} s ({spread(seconds)}), {show(cpu[-1])} CPU-s")
            runs += [Run(value) for value in seconds]
    finally:
        core.close()
    slope = exponent(sizes, medians)
    what = f"growth of the posting core over {', '.join(f'{size:,}' for size in sizes)} lines: exponent"
    note = (
        f"{'; '.join(spreads)}; exponent of the last step alone {exponent(sizes[-2:], medians[-2:]):.2f},"
        f" of its CPU {exponent(sizes[-2:], cpu[-2:]):.2f}"
    )
    return [Result("P9", what, "", "itself: 1 is linear", slope, None, slope, 1.1, 1.02, runs=tuple(runs), note=note)]
