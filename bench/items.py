"""P11-items: a for_each over 5,000 items, against bare commits on one connection.

The slots run as Airflow runs them, each in a process with a connection of its own (`run_step`), without Airflow. The
items' handler returns one key, so what is measured is the engine: claim, record and commit of each item, and the end,
which puts all results into the state. Time runs from the first slot's start to the end of the last; starting the
processes is not in it.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from typing import Any

from bench.measure import Result, Run, against_floor
from bench.server import BenchServer
from bench.steps import commits_per_second
from everest.bootstrap import database
from everest.settings import MysqlUrl
from everest.workflow import codec, control, runner
from everest.workflow.builder import workflow
from everest.workflow.ticket import Ticket

ITEMS = 5_000
SMOKE_ITEMS = 20
SLOTS = (2, 8)
PATIENCE_S = 600


def look(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"length": len(step.item)}


EACH = workflow("bench_items").for_each("items", look, result_key="looked").build()


def p11_items(server: BenchServer, smoke: bool) -> list[Result]:
    results = []
    for slots in SLOTS:
        items = SMOKE_ITEMS if smoke else ITEMS
        floor = commits_per_second(server.url, items)
        seconds, state_bytes = _run(server, items, slots)
        results.append(
            against_floor(
                f"P11-items-{slots}",
                f"items per second, a for_each of {items} in {slots} slots: {seconds:.1f} s, state {state_bytes} bytes",
                "/s",
                "one UPDATE, one INSERT, COMMIT on one connection",
                [Run(items / seconds, floor)],
                must=None,
                aim=None,
                larger_is_better=True,
            )
        )
    return results


def _run(server: BenchServer, items: int, slots: int) -> tuple[float, int]:
    units = database(server.url)
    try:
        with units.transaction() as tx:
            payload = {"items": [f"GD-{number:05}" for number in range(items)], "slots": slots}
            run = tx.runs.lock(control.dispatch(tx, EACH, payload).workflow_id)
        ticket = Ticket(run.dag_run_id, run.carrier_shadow_id or 0, run.n, run.id)
        seconds = _in_slots(server.url, ticket, slots)
        with units.transaction() as tx:
            run = tx.runs.lock(run.id)
    finally:
        units.close()
    if run.status != "completed" or run.state["looked"]["succeeded"] != items:
        raise RuntimeError(f"the for_each is {run.status} after {seconds:.0f} s: {run.error}")
    return seconds, len(codec.dumps(run.state).encode())


def _in_slots(url: MysqlUrl, ticket: Ticket, slots: int) -> float:
    """Seconds from the first slot's start to the end of the last. None of its processes outlives this."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(slots + 1)
    workers = [context.Process(target=_slot, args=(url, ticket, str(slot), start)) for slot in range(slots)]
    try:
        for worker in workers:
            worker.start()
        start.wait(PATIENCE_S)
        before = time.perf_counter()
        for worker in workers:
            worker.join(max(0.0, before + PATIENCE_S - time.perf_counter()))
        return time.perf_counter() - before
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.kill()
            if worker.pid is not None:
                worker.join()


def _slot(url: MysqlUrl, ticket: Ticket, slot: str, start: Barrier) -> None:
    units = database(url)
    start.wait(PATIENCE_S)
    runner.run_step(EACH, ticket, EACH.steps[0].name, units.transaction, is_last_try=True, branch=slot)
    units.close()
