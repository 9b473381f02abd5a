"""A workflow without Airflow and without servers: `run_inline` walks it in memory under the engine's own rules.

run = run_inline(report, {"user_id": 42})
assert run.status == "waiting_for_signal"
run.approve("budi")
assert run.status == "completed"
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from everest.workflow import again, control, deployment, state
from everest.workflow.definition import Definition
from everest.workflow.memory import MemoryDatabase
from everest.workflow.memory_tables import Message
from everest.workflow.records import Outcome, Run
from everest.workflow.runner import is_recorded, run_task, tasks_of
from everest.workflow.ticket import Fenced, Leave, Ticket


class Inline:
    """A small world: a store, a relay and an Airflow that run one DAG run after another, children included."""

    def __init__(self, *definitions: Definition, database: MemoryDatabase | None = None) -> None:
        self.database = database or MemoryDatabase()
        self.definitions: dict[str, Definition] = {}
        for one in definitions:
            self.definitions |= {known.name: known for known in (one, *one.children())}

    def deployed(self, workflow: str, version: str, definition_hash: str) -> Definition | None:
        return deployment.among(self.definitions.values(), workflow, version, definition_hash)

    def dispatch(self, definition: Definition, payload: Mapping[str, Any], key: str | None = None) -> int:
        """Starts a run; returns its id. Raises Conflict for a key that another payload holds."""
        with self.database.transaction() as tx:
            return control.dispatch(tx, definition, dict(payload), key).workflow_id

    def run(self, run_id: int) -> Run:
        with self.database.transaction() as tx:
            return tx.runs.lock(run_id)

    def walk(self, limit: int = 10_000) -> None:
        """DAG runs until no message is due. Raises RuntimeError when that never ends."""
        for _ in range(limit):
            message = self._due()
            if message is None:
                return self.compensate()
            self.dag_run(message)
        raise RuntimeError(f"still at work after {limit} DAG runs")

    def compensate(self) -> None:
        """What the reconciler does: undoes what ended runs, nested ones too, have to undo."""
        for run_id in self._owing():
            control.compensate_all(self.database.transaction, run_id, self.deployed, again.at_once)

    def _owing(self) -> list[int]:
        return sorted(
            (one.id for one in self.database.tables.runs.values() if one.compensation == "pending"), reverse=True
        )

    def _due(self) -> Message | None:
        for message in self.database.tables.outbox:
            if not message.sent and message.due_at <= self.database.now:
                message.sent = True
                return message
        return None

    def dag_run(self, message: Message) -> None:
        """One delivery: the consumer's claim, then the tasks of the DAG run in order, each until its last try."""
        if not self._claim(message):
            return
        ticket = Ticket(message.dag_run_id, message.shadow_id, message.n, message.run_id)
        definition = self.definitions[self.run(message.run_id).workflow]
        for steps, branch in tasks_of(definition):
            if not self._task(definition, ticket, steps, branch):
                return

    def _claim(self, message: Message) -> bool:
        with self.database.transaction() as tx:
            shadow = tx.runs.shadow(message.shadow_id)
            if shadow is None or shadow.dag_run_id != message.dag_run_id:
                return False
            if shadow.worker_status in ("COMPLETED", "CANCELLED", "FAILED"):
                return False
            tx.runs.set_shadow(shadow.id, Outcome("PROCESSING"), None)
        return True

    def _task(self, definition: Definition, ticket: Ticket, steps: list[str], branch: str) -> bool:
        """Whether the DAG run goes on behind this task."""
        for attempt in range(1, definition.options.max_attempts + 1):
            try:
                result = run_task(
                    definition,
                    ticket,
                    steps,
                    self.database.transaction,
                    is_last_try=attempt == definition.options.max_attempts,
                    branch=branch,
                    rest=again.at_once,
                )
            except Fenced:
                return False
            except Exception as error:
                if is_recorded(error):
                    return False
                if attempt == definition.options.max_attempts:
                    raise
            else:
                return not isinstance(result, Leave)
        return False


class InlineRun:
    """One run in a world of its own, with what a person can do to it. Every action walks on as far as it goes."""

    def __init__(self, world: Inline, run_id: int) -> None:
        self.world, self.id = world, run_id
        world.walk()

    @property
    def row(self) -> Run:
        return self.world.run(self.id)

    @property
    def status(self) -> str:
        return self.row.status

    @property
    def state(self) -> dict[str, Any]:
        """The public state."""
        return state.public_part(self.row.state)

    @property
    def effects(self) -> list[Any]:
        """What handlers wrote with `step.tx.write`, in commit order."""
        return list(self.world.database.tables.effects)

    def do(self, action: Any, *arguments: Any, **named: Any) -> Any:
        """Any function of `control` on this run: `run.do(control.pause, "budi")`."""
        with self.world.database.transaction() as tx:
            definition = self.world.definitions[self.row.workflow]
            result = action(tx, definition, self.id, *arguments, **named)
        self.world.walk()
        return result

    def signal(self, name: str, payload: Mapping[str, Any] | None = None, **named: Any) -> None:
        self.do(control.signal, name, dict(payload or {}), **named)

    def approve(self, who: str, **named: Any) -> None:
        self.do(control.approve, who, **named)

    def reject(self, who: str, reason: str, **named: Any) -> None:
        self.do(control.reject, who, reason, **named)

    def pass_time(self, by: timedelta) -> datetime:
        """Moves the clock, and wakes what is due."""
        self.world.database.move_clock(by)
        self.world.walk()
        return self.world.database.now


def run_inline(definition: Definition, payload: Mapping[str, Any] | None = None, key: str | None = None) -> InlineRun:
    """Runs a workflow in memory until it ends or waits."""
    world = Inline(definition)
    return InlineRun(world, world.dispatch(definition, payload or {}, key))


__all__ = ["Inline", "InlineRun", "run_inline"]
