"""P11: durable steps of a fused chain, against bare commits on one connection.

A chain of three steps that only return a key runs as an Airflow task of a fused workflow runs it (`run_task`), one run
after another on one connection, without Airflow and the broker. The floor does the least that a durable step could do:
one UPDATE of a run's state, one INSERT of a step's output, COMMIT.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Any

from bench.measure import Result, Run, against_floor, side_by_side
from bench.server import BenchServer
from everest.bootstrap import database
from everest.settings import MysqlUrl
from everest.store import database as store
from everest.workflow import control, runner
from everest.workflow.builder import workflow
from everest.workflow.ticket import Ticket

PAIRS = 9
CHAINS = 100
SMOKE_CHAINS = 2
FLOOR_TABLES = (
    "CREATE TABLE IF NOT EXISTS bench_runs (id INT PRIMARY KEY, state JSON NOT NULL, steps INT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS bench_steps (id BIGINT AUTO_INCREMENT PRIMARY KEY, run INT, step TEXT, output JSON)",
    "INSERT IGNORE INTO bench_runs VALUES (1, '{}', 0)",
)


def first(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"first": state["number"] + 1}


def second(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"second": state["first"] + 1}


def third(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"third": state["second"] + 1}


CHAIN = workflow("bench_chain").tasks("fused").then(first).then(second).then(third).build()
STEPS = [step.name for step in CHAIN.steps]


class Chains:
    """Runs on one server."""

    def __init__(self, server: BenchServer, chains: int) -> None:
        self.server, self.chains = server, chains
        self.units = database(server.url)

    def close(self) -> None:
        self.units.close()

    def ours(self, number: int) -> float:
        """Steps per second; dispatching is not measured, and every run is looked at afterwards."""
        tickets = [self._dispatch(number * self.chains + chain) for chain in range(self.chains)]
        before = time.perf_counter()
        for ticket in tickets:
            runner.run_task(CHAIN, ticket, STEPS, self.units.transaction, is_last_try=True)
        seconds = time.perf_counter() - before
        for ticket in tickets:
            self._check(ticket)
        return len(STEPS) * self.chains / seconds

    def _dispatch(self, number: int) -> Ticket:
        with self.units.transaction() as tx:
            run = tx.runs.lock(control.dispatch(tx, CHAIN, {"number": number}).workflow_id)
            return Ticket(run.dag_run_id, run.carrier_shadow_id or 0, run.n, run.id)

    def _check(self, ticket: Ticket) -> None:
        with self.units.transaction() as tx:
            run = tx.runs.lock(ticket.workflow_id or 0)
        if run.status != "completed" or run.state["third"] != run.state["number"] + 3:
            raise RuntimeError(f"workflow {run.id} is {run.status} with {run.state}")

    def floor(self, number: int) -> float:
        return commits_per_second(self.server.url, len(STEPS) * self.chains)


def commits_per_second(url: MysqlUrl, count: int) -> float:
    """The floor: the least a durable step could do, on one connection."""
    with closing(store.connect(url)) as conn, conn.cursor() as cursor:
        for statement in FLOOR_TABLES:
            cursor.execute(statement)
        conn.commit()
        before = time.perf_counter()
        for commit in range(count):
            state = json.dumps({"number": count, "commit": commit})
            cursor.execute("UPDATE bench_runs SET state = %s, steps = steps + 1 WHERE id = 1", (state,))
            cursor.execute("INSERT INTO bench_steps (run, step, output) VALUES (1, 'first', %s)", (state,))
            conn.commit()
        return count / (time.perf_counter() - before)


def p11(server: BenchServer, smoke: bool) -> list[Result]:
    chains = Chains(server, SMOKE_CHAINS if smoke else CHAINS)
    try:
        pairs = side_by_side(1 if smoke else PAIRS, chains.ours, chains.floor)
    finally:
        chains.close()
    return [
        against_floor(
            "P11",
            f"durable steps per second, fused chains of {len(STEPS)}",
            "/s",
            "one UPDATE, one INSERT, COMMIT on one connection",
            [Run(value, floor) for value, floor in pairs],
            must=0.25,
            aim=0.5,
            larger_is_better=True,
        )
    ]
