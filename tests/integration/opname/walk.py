"""A document through its three steps without Airflow and the broker: the consumer's claim, then one try per step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from everest import bootstrap
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl, Settings
from everest.store import database as store
from everest.workflow import runner
from everest.workflow.definition import Definition
from everest.workflow.engine import Forward, Leave, Replay, Ticket
from ingest_consumer import shadow as jobs
from tests.fake_airflow import FakeAirflow

TASKS_AT_ONCE = 2


class Walker:
    """Plays consumer and Airflow for one database and one workflow."""

    def __init__(
        self,
        url: MysqlUrl,
        settings: Settings | None = None,
        definition: Definition = POST_OPNAME,
        older: Definition | None = None,
    ) -> None:
        """older: a version that is deployed beside it."""
        self.definition, self._older = definition, older
        self.database = bootstrap.database(url, settings or Settings())
        self._conn = store.connect(url)

    def close(self) -> None:
        self.database.close()
        self._conn.close()

    def claim(self, shadow_id: int) -> Ticket:
        """PENDING -> PROCESSING for the announced run, or run 1 of a foreign row."""
        row = jobs.get(self._conn, shadow_id)
        assert row is not None
        n = row.n or 1
        run_id = row.dag_run_id or jobs.dag_run_id("opname_posting", row.transaksi_id, None, shadow_id, n)
        dag_id = row.dag_id or self.definition.dag_id
        assert jobs.claim(self._conn, shadow_id, row.dag_run_id, dag_id, run_id, n), row
        self._conn.commit()
        return Ticket(run_id, shadow_id, n, row.workflow_id, row.transaksi_id)

    def step(self, ticket: Ticket, step: str, is_last_try: bool = True) -> Forward | Replay | Leave:
        def deployed(name: str, version: str, definition_hash: str) -> Definition | None:
            return self._older if self._older and (self._older.name, self._older.version) == (name, version) else None

        return runner.run_step(self.definition, ticket, step, self.database.transaction, is_last_try, deployed=deployed)

    def dag_run(self, ticket: Ticket, before: Callable[[str], Any] = lambda step: None) -> None:
        """One DAG run: its tasks in order until one leaves or fails. `before` is called ahead of each task."""
        for step in (one.name for one in self.definition.steps):
            before(step)
            try:
                if isinstance(self.step(ticket, step), Leave):
                    return
            except Exception as error:
                if not runner.is_recorded(error):
                    raise
                return

    def post(self, shadow_id: int, before: Callable[[str], Any] = lambda step: None) -> str:
        """DAG runs until nobody announces another one; returns the worker_status."""
        for _ in range(10):
            self.dag_run(self.claim(shadow_id), before)
            row = jobs.get(self._conn, shadow_id)
            self._conn.commit()
            assert row is not None
            if row.worker_status != "PENDING":
                return row.worker_status
        raise AssertionError("the document keeps jumping back")


@contextmanager
def running_tasks(airflow: FakeAirflow, url: MysqlUrl) -> Iterator[None]:
    """Inside, the real tasks run behind the stand-in for Airflow; at the end those that were begun have ended."""
    mine = threading.local()
    walkers: list[Walker] = []

    def dag_run(run_id: str, conf: dict[str, Any]) -> None:
        if not hasattr(mine, "walker"):
            mine.walker = Walker(url)
            walkers.append(mine.walker)
        mine.walker.dag_run(Ticket.from_conf(run_id, conf))
        airflow.runs[run_id]["state"] = "success"

    with ThreadPoolExecutor(TASKS_AT_ONCE) as pool:

        def trigger(run_id: str, conf: dict[str, Any]) -> None:
            pool.submit(dag_run, run_id, conf)

        airflow.on_trigger = trigger
        yield
    airflow.on_trigger = lambda run_id, conf: None
    for walker in walkers:
        walker.close()
