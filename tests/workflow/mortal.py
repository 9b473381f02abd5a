"""A process that carries one rich workflow on as far as it goes, and can be killed at any commit it makes.

It plays everybody: relay and consumer (with their own statements), tasks, the people who answer, the reconciler. It
keeps nothing in memory that matters, so that another process can take over at any point.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import timedelta
from typing import Any, Literal

from everest import bootstrap
from everest.reconciler import rows
from everest.reconciler.workflows import WorkflowRepairs
from everest.settings import MysqlUrl, Settings
from everest.workflow import control, engine
from everest.workflow.builder import workflow
from everest.workflow.inline import Inline
from everest.workflow.records import FINAL
from tests.workflow.world import MysqlWorld, UnitOfWorkWithEffects

Moment = Literal["before", "after"]

PATIENCE_S = 90
SHORT = timedelta(milliseconds=20)


def note(step: Any, *about: Any) -> None:
    """A business row."""
    words = [step.step, step.visit, step.branch if step.index is None else step.index, *about]
    with step.tx.conn.cursor() as cursor:
        cursor.execute("INSERT INTO audit_log (actor, action) VALUES ('test', %s)", (":".join(map(str, words)),))


def does(state: dict[str, Any], step: Any) -> dict[str, Any]:
    note(step)
    return {step.branch or step.step: step.visit}


def counts(state: dict[str, Any], step: Any) -> dict[str, Any]:
    note(step)
    return {"passes": state.get("passes", 0) + 1}


def doubles(state: dict[str, Any], step: Any) -> dict[str, Any]:
    note(step, step.item)
    return {"twice": step.item * 2}


def adds(state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {"sum": sum(one["twice"] for one in state["doubled"]["results"].values())}


def numbers(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
    yield from range(len(chunks), 3)


def joins(chunks: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    return {"chunks": chunks}


def agent_work(state: dict[str, Any], step: Any) -> dict[str, Any]:
    note(step, state["item"])
    return {"done": state["item"]}


def undo(state: dict[str, Any], step: Any) -> None:
    with step.tx.conn.cursor() as cursor:
        cursor.execute("INSERT INTO audit_log (actor, action) VALUES ('test', %s)", (f"undo:{len(state)}",))


def cleans(state: dict[str, Any], step: Any) -> None:
    with step.tx.conn.cursor() as cursor:
        cursor.execute("INSERT INTO audit_log (actor, action) VALUES ('test', 'cleaned')")


CHILD = workflow("child").then(does, name="in_child", compensate_with=undo).wait_for_approval(result_key="ok").build()
AGENT = workflow("agent").then(agent_work).build()
RICH = (
    workflow("rich")
    .then(does, name="first", compensate_with=undo)
    .parallel({"left": does, "right": does}, name="both", compensate_with=undo)
    .then(counts, name="again")
    .for_each("items", doubles, "doubled", reducer=adds, name="each", compensate_with=undo)
    .wait_for_signal("red", result_key="red")
    .repeat_until("again", "passes", 2)
    .stream(numbers, joins)
    .run_workflow(CHILD, compensate_with=undo)
    .start_workflows("items", AGENT, result_key="ids")
    .wait_for_agents("ids", result_key="agents")
    .delay(seconds=SHORT.total_seconds())
    .wait_for_signal("never", name="late", timeout=SHORT, on_timeout={"late": True})
    .wait_for_decision(result_key="decision")
    .then(does, name="last", compensate_with=undo)
    .wait_for_signal("end", name="gate")
    .on_cancel(cleans)
    .build()
)


WRITES = "SHOW SESSION STATUS WHERE Variable_name IN ('Com_insert', 'Com_insert_select', 'Com_update', 'Com_delete')"


class MortalDatabase:
    """Units of work of a process that ends, as by a power cut, right before or right after its commit number so and
    so. A transaction that only reads has no number."""

    def __init__(self, url: MysqlUrl, death: tuple[int, Moment] | None) -> None:
        self._database = bootstrap.database(url, Settings())
        self._death, self.commits = death, 0

    @contextmanager
    def transaction(self) -> Iterator[UnitOfWorkWithEffects]:
        with self._database.transaction() as tx:
            before = _writes(tx.conn)
            yield UnitOfWorkWithEffects(**{one.name: getattr(tx, one.name) for one in fields(tx)})
            has_written = _writes(tx.conn) > before
            self.commits += has_written
            self._die_at("before", has_written)
        self._die_at("after", has_written)

    def _die_at(self, moment: Moment, has_written: bool) -> None:
        if has_written and self._death == (self.commits, moment):
            os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        self._database.close()


def _writes(conn: Any) -> int:
    with conn.cursor() as cursor:
        cursor.execute(WRITES)
        return sum(int(count) for _, count in cursor.fetchall())


class Mortal(MysqlWorld):
    """The same rows for every process; no clock but the server's."""

    def __init__(self, url: MysqlUrl, death: tuple[int, Moment] | None = None) -> None:
        self.url = url
        Inline.__init__(self, RICH, database=MortalDatabase(url, death))  # type: ignore[arg-type]
        self._repairs = WorkflowRepairs(self.database, self.deployed, lambda: False)  # type: ignore[arg-type]

    def close(self) -> None:
        self.database.close()  # type: ignore[attr-defined]

    def carry_on(self) -> int:
        """Until the workflow has nothing left to do. Returns the number of commits."""
        end = time.monotonic() + PATIENCE_S
        self.dispatch(RICH, {"items": [1, 2]}, key="one")
        while not self._is_over():
            assert time.monotonic() < end, "it does not come to its end"
            message = self._due()
            if message is not None:
                self.dag_run(message)
            elif not self._serve() and not self._reconcile():
                time.sleep(SHORT.total_seconds() / 2)
        return self.database.commits  # type: ignore[attr-defined,no-any-return]

    def _is_over(self) -> bool:
        found = self.rows("SELECT status, compensation FROM workflow_runs")
        return all(row["status"] in FINAL and row["compensation"] in (None, "done") for row in found)

    def _serve(self) -> bool:
        """What people do when they look at the runs that wait for them."""
        waiting = self.rows(
            "SELECT r.id, r.current_step AS step FROM workflow_runs r"
            " JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id"
            " WHERE r.status = 'waiting_for_signal' AND s.worker_status = 'WAITING'"
        )
        for row in waiting:
            run_id = row["id"]
            match row["step"]:
                case "wait_for_red":
                    self.do(run_id, control.signal, "red", {"n": len(self.signals(run_id)) + 1})
                case "wait_for_approval":
                    self.do(run_id, control.approve, "ann")
                case "wait_for_decision":
                    self.do(run_id, control.reject, "ann", "no")
                case "gate":
                    self.do(run_id, control.cancel, "ann", "enough")
                case _:
                    continue
            return True
        return False

    def _reconcile(self) -> bool:
        """Nothing is at work here now: a job at work has a dead DAG run, and a sent message that no task answered is
        lost."""
        lost = self.rows(
            "SELECT r.id, s.worker_status FROM workflow_runs r"
            " JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id"
            " WHERE s.worker_status IN ('PENDING', 'PROCESSING')"
            " AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.shadow_id = s.id AND o.published_at IS NULL)"
        )
        for row in lost:
            with self.transaction() as tx:
                run = tx.runs.lock(row["id"])
                if row["worker_status"] == "PROCESSING":
                    engine.recover(tx, self.definitions[run.workflow], run, 3, "died")
                else:
                    tx.runs.enqueue(run)
        with self.transaction() as tx:
            decided = rows.decided_waits(tx.conn, rows.Page(100))
            undone = rows.unfinished_compensations(tx.conn, rows.Page(100))
        woken = [self._repairs.wake_waiter(one) for one in decided]
        return bool(lost) or any([*woken, *(self._repairs.compensate(one) for one in undone)])

    def end_state(self) -> dict[str, Any]:
        """What every history must end in; ids by what they stand for."""
        (root,) = [self.run(one) for one in self.all_runs() if self.run(one).workflow == "rich"]
        state = dict(root.state)
        items = {str(one): self.run(one).state["item"] for one in state.pop("ids")}
        state["agents"] = {items[key]: value for key, value in state["agents"].items()}
        for value in (state, *state["agents"].values()):
            value.pop("ids", None)
            for answer in ("ok", "decision"):
                value.get(answer, {}).pop("at", None)
        return {
            "statuses": sorted((self.run(one).workflow, self.run(one).status) for one in self.all_runs()),
            "state": state,
            "business": [
                row["action"] for row in self.rows("SELECT action FROM audit_log WHERE actor = 'test' ORDER BY id")
            ],
            "signals": self.signals(root.id),
            "jobs": self.rows("SELECT worker_status, COUNT(*) AS n FROM rabbit_publish_shadow GROUP BY worker_status"),
            "unsent": self.rows("SELECT COUNT(*) AS n FROM outbox WHERE published_at IS NULL"),
            "chunks": self.rows("SELECT COUNT(*) AS n FROM workflow_chunks"),
        }


__all__ = ["PATIENCE_S", "RICH", "Moment", "Mortal"]
