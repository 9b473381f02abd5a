"""The workflows of `listed_workflows` on the running stack: started together, looked at one by one.

What a line of the lists needs no help for is started at once, at the beginning, and goes its way while the tests of
other lines hold, kill, pause and cancel theirs. A second relay and a second reconciler stand by the stack's own; the
reconciler knows these workflows by name, so it has to take over before the first test.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from everest import bootstrap
from everest.store.unit_of_work import Database
from everest.workflow import codec, control, starts
from everest.workflow.definition import Definition
from everest.workflow.ticket import Ticket
from stack.layout import Layout
from stack.programs import Stack
from tests.acceptance import guest
from tests.acceptance import listed_workflows as w
from tests.acceptance.listed_workflows import LISTED
from tests.acceptance.live import ROOT, Live, owner_of_port, until

FILE = "test_listed.py"
OVER = ("completed", "failed", "cancelled")
OWN_WORKFLOWS = "everest.opname.workflow,closing_example.workflow,tests.acceptance.listed_workflows"
BEGINNINGS: dict[str, tuple[Definition, dict[str, Any]]] = {
    "overdue": (w.OVERDUE, {}),  # first: it has to come to its wait before its deadline
    "chain": (w.CHAIN, {"given": 7}),
    "killed": (w.KILLED, {"items": [1, 2, 3], "dies": True}),
    "fused": (w.FUSED, {}),
    "early": (w.EARLY, {}),
    "waits": (w.WAITS, {}),
    "timed out": (w.TIMED_OUT, {}),
    "loop": (w.LOOP, {"items": [1, 2]}),
    "loops": (w.LOOPS, {}),
    "no items": (w.FIRST_OF, {"items": []}),
    "no list": (w.FIRST_OF, {"items": "text"}),
    "too many items": (w.FIRST_OF, {"items": [1, 2]}),
    "quorum above the count": (w.QUORUM, {"items": [1]}),
    "one of three fails": (w.ITEMS, {"items": [1, 2, 3], "refuses": True}),
    "cleared": (w.CLEARED, {}),
    "parent of a failing child": (w.PARENT, {"refuses": True}),
    "tight": (w.TIGHT, {}),
    "strays": (w.STRAYS, {}),
    "undone": (w.UNDONE, {}),
    "held": (w.HELD, {}),
}
"""What goes its way while other tests hold and kill theirs: a name for each run, its workflow and its payload."""

QUICK = {"EVEREST_RECONCILER_PERIOD_S": "1", "EVEREST_RECONCILER_QUIET_S": "2"}


@dataclass
class Listed:
    """live: the stack; database: its books, for what the control functions do."""

    live: Live
    database: Database
    started: dict[str, int] = field(default_factory=dict)

    # --------------------------------------------------------------------------------------------------- people

    def start(self, definition: Definition, **payload: Any) -> int:
        with self.database.transaction() as tx:
            return int(starts.dispatch(tx, definition, payload).workflow_id)

    def begin_what_needs_no_help(self) -> None:
        for name, (definition, payload) in BEGINNINGS.items():
            self.started[name] = self.start(definition, **payload)
        self.signal(self.started["early"], "early", n=1)
        for n in (1, 2):
            self.signal(self.started["loop"], "pass", n=n)

    def do(self, run: int, action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """A function of `control`, as commands and pages call it."""
        with self.database.transaction() as tx:
            found = tx.runs.get(run)
            assert found is not None
            return action(tx, LISTED[found.workflow], run, *arguments, **named)

    def signal(self, run: int, name: str, **payload: Any) -> None:
        self.do(run, control.signal, name, payload)

    # ----------------------------------------------------------------------------------------------------- looks

    def run(self, run: int) -> dict[str, Any]:
        (row,) = self.live.rows("SELECT * FROM workflow_runs WHERE id = %s", run)
        return row | {name: codec.loads(row[name]) for name in ("state", "waiting", "error", "counters")}

    def until(self, run: int, *statuses: str) -> dict[str, Any]:
        """The run, once it has one of these; at once with a reason when it ends otherwise."""

        def look() -> dict[str, Any] | None:
            row = self.run(run)
            return row if row["status"] in (*statuses, "cancelled", "completed") else None

        row: dict[str, Any] = until(f"workflow {run} to be {' or '.join(statuses)}", look)
        assert row["status"] in statuses, (row["status"], row["error"])
        return row

    def completed(self, run: int) -> dict[str, Any]:
        """At its end, every job with it."""
        row: dict[str, Any] = self.until(run, "completed", "failed")
        assert row["status"] == "completed", row["error"]
        assert self.job(run)["worker_status"] == "COMPLETED"
        return row

    def failed(self, run: int) -> dict[str, Any]:
        row = self.until(run, "failed")
        assert self.job(run)["worker_status"] == "FAILED"
        return row

    def at(self, run: int, step: str) -> dict[str, Any]:
        """Waiting at this step, its DAG run over."""

        def look() -> dict[str, Any] | None:
            row = self.run(run)
            assert row["status"] not in OVER, (row["status"], row["error"])
            waits = (row["current_step"], self.job(run)["worker_status"]) == (step, "WAITING")
            return row if waits and row["waiting"] else None

        row: dict[str, Any] = until(f"workflow {run} to wait at {step}", look)
        return row

    def job(self, run: int) -> dict[str, Any]:
        (row,) = self.live.rows(
            "SELECT s.* FROM rabbit_publish_shadow s JOIN workflow_runs r ON r.carrier_shadow_id = s.id"
            " WHERE r.id = %s",
            run,
        )
        return row

    def did(self, run: int, action: str = "did") -> list[str]:
        """The business rows that its handlers left, in the order in which they were written."""
        rows = self.live.rows(
            "SELECT reason FROM audit_log WHERE actor = 'guest' AND workflow_id = %s AND action = %s ORDER BY id",
            run,
            action,
        )
        return [row["reason"] for row in rows]

    def times(self, run: int) -> Counter[str]:
        return Counter(self.did(run))

    def events(self, run: int, *names: str) -> list[tuple[str, str | None]]:
        rows = self.live.rows("SELECT event, step FROM workflow_events WHERE workflow_id = %s ORDER BY id", run)
        return [(row["event"], row["step"]) for row in rows if row["event"] in names]

    def attempts(self, run: int) -> dict[tuple[str, int, str], int]:
        rows = self.live.rows("SELECT step, visit, branch, attempt FROM workflow_steps WHERE workflow_id = %s", run)
        return {(row["step"], row["visit"], row["branch"]): row["attempt"] for row in rows}

    def children(self, run: int) -> list[int]:
        rows = self.live.rows("SELECT id FROM workflow_runs WHERE parent_id = %s ORDER BY id", run)
        return [row["id"] for row in rows]

    def ticket(self, run: int) -> Ticket:
        """As the tasks of the current DAG run have it."""
        row = self.run(run)
        return Ticket(row["dag_run_id"], row["carrier_shadow_id"], row["n"], run)

    # --------------------------------------------------------------------------------------------------- Airflow

    def name(self, run: int, n: int) -> tuple[str, str]:
        """DAG and id of its n-th DAG run."""
        row = self.run(run)
        return row["dag_id"], row["dag_run_id"].rpartition("__")[0] + f"__{n}"

    def dag_run(self, run: int, n: int) -> str:
        """The state of its n-th DAG run, once that has ended."""
        dag_id, dag_run_id = self.name(run, n)
        with self.live.airflow() as airflow:
            path = f"/dags/{dag_id}/dagRuns/{dag_run_id}"

            def look() -> str | None:
                state = airflow.get(path).raise_for_status().json()["state"]
                return state if state in ("success", "failed") else None

            return str(until(f"the end of DAG run {dag_run_id}", look))

    def linked(self, run: int, n: int, relation: str) -> list[tuple[str, str]]:
        """Where the note on its n-th DAG run leads: DAG and run of each link, which Airflow must know."""
        dag_id, dag_run_id = self.name(run, n)
        with self.live.airflow() as airflow:

            def look() -> list[tuple[str, str]]:
                path = f"/dags/{dag_id}/dagRuns/{dag_run_id}"
                note = airflow.get(path).raise_for_status().json()["note"] or ""
                (part,) = [part for part in note.split("; ") if part.startswith(f"{relation} [")]
                links = re.findall(r"\]\(/dags/([^/)]+)/runs/([^/)]+)\)", part)
                return [(unquote(dag), unquote(other)) for dag, other in links]

            found: list[tuple[str, str]] = until(f"the note on {dag_run_id} to say what it {relation}", look)
            for other_dag, other in found:
                airflow.get(f"/dags/{other_dag}/dagRuns/{quote(other)}").raise_for_status()
        return found

    def mark(self, run: int, state: str) -> None:
        """A person sets the state of the current DAG run."""
        row = self.run(run)
        with self.live.airflow() as airflow:
            path = f"/dags/{row['dag_id']}/dagRuns/{row['dag_run_id']}"
            airflow.patch(path, json={"state": state}).raise_for_status()

    def clear(self, run: int, n: int, only_failed: bool) -> None:
        """A person clears tasks of its n-th DAG run, which has ended."""
        self.dag_run(run, n)
        dag_id, dag_run_id = self.name(run, n)
        body = {"dry_run": False, "dag_run_id": dag_run_id, "only_failed": only_failed, "reset_dag_runs": True}
        with self.live.airflow() as airflow:
            cleared = airflow.post(f"/dags/{dag_id}/clearTaskInstances", json=body).raise_for_status().json()
        assert cleared["total_entries"] >= 1

    # ----------------------------------------------------------------------------------------------------- gates

    @contextmanager
    def gate(self, *names: str) -> Iterator[None]:
        """Whoever comes to one of these gates waits in its transaction until the `with` is left."""
        with self.live.connection() as conn:
            with conn.cursor() as cursor:
                for name in names:
                    cursor.execute("SELECT GET_LOCK(%s, 10)", (name,))
            yield

    def arrived(self, gate: str) -> int:
        """The pid of the task process that waits there."""
        return self.live.task_process(f"SELECT GET_LOCK('{gate}'%")


# ------------------------------------------------------------------------------------------------------ beginning


@contextmanager
def listed_dags(live: Live) -> Iterator[Listed]:
    """One file in Airflow's second DAG folder holds them all, only as long as this lasts."""
    file = Layout.here().bench_dags / FILE
    file.write_text(
        "from everest.workflow.airflow_dag import to_dag\n"
        "from tests.acceptance.listed_workflows import LISTED\n\n"
        "globals().update({name: to_dag(one) for name, one in LISTED.items()})\n"
    )
    with ExitStack() as stack:
        stack.callback(_forget, live, file)
        stack.enter_context(_known_to_the_pages(live))
        for name in LISTED:
            until(f"Airflow to load {name}", lambda name=name: guest.is_loaded(live, name), every=1)
        stack.enter_context(_standby(live, "ingest_consumer", "relay"))
        own = stack.enter_context(_standby(live, "everest.reconciler"))
        _hand_over(live, own.pid)
        database = bootstrap.database(live.mysql)
        stack.callback(database.close)
        yield Listed(live, database)


@contextmanager
def _known_to_the_pages(live: Live) -> Iterator[None]:
    """The API server dies, and comes back as one that knows these workflows too, while the DAG processor reads them.
    What it is to be started with is put back afterwards; it stays as it is until then."""
    stack = Stack.open(Layout.here())
    overrides = {name: dict(variables) for name, variables in stack.overrides.items()}
    overrides.setdefault("airflow-api-server", {})["EVEREST_WORKFLOWS"] = OWN_WORKFLOWS
    replace(stack, overrides=overrides).save()
    try:
        live.wait_until_back("airflow-api-server", live.kill("airflow-api-server"))
        yield
    finally:
        stack.save()


def _forget(live: Live, file: Path) -> None:
    file.unlink(missing_ok=True)
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
    with live.airflow() as airflow:
        for name in LISTED:
            guest.abandon(live, name)
            airflow.delete(f"/dags/{name}")


@contextmanager
def _standby(live: Live, *module_and_arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A second process of a kind of which one is active; it takes over when that one dies."""
    environment: Mapping[str, str] = {**os.environ, **live.env, **QUICK, "EVEREST_WORKFLOWS": OWN_WORKFLOWS}
    log = Layout.here().logs / f"second-{module_and_arguments[-1]}.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", *module_and_arguments], env=environment, cwd=ROOT, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def _hand_over(live: Live, pid: int) -> None:
    """The stack's reconciler dies until the other one is the active one."""

    def is_ours() -> bool:
        found = live.rows(
            "SELECT p.HOST AS host FROM information_schema.PROCESSLIST p"
            " WHERE p.ID = IS_USED_LOCK(CONCAT('everest.reconciler.', DATABASE()))"
        )
        return bool(found) and owner_of_port(int(found[0]["host"].rpartition(":")[2])) == pid

    def look() -> bool:
        if is_ours():
            return True
        old = live.kill("reconciler")
        live.wait_until_back("reconciler", old)
        return is_ours()

    until("the second reconciler to take over", look, every=0.5)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
