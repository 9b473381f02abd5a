"""What a workflow needs that is not about its job: a wake-up that was missed, a deadline, the next compensation.

The engine does each of these in the commit that makes it due, where it can. What is left for here: a waiter that came
in between, a process that died, and whatever only the clock brings. Every repair asks the engine again under the run's
lock, so that two at once do it once. Every function returns whether it changed anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from everest.reconciler.rows import QUERIES, Workflow
from everest.store.unit_of_work import Database
from everest.workflow import clock, control, parking, pointer, waits
from everest.workflow.deployment import Deployed
from ingest_consumer.metrics import REPAIRS, Meter

log = logging.getLogger(__name__)

COMPENSATE_S = 10.0
"""What one run gets of a round: it may have thousands of steps to undo, and the repairs of all others wait."""


class WorkflowRepairs:
    """`deployed`: for the handlers of a run, which are those of the definition it began under."""

    def __init__(
        self,
        database: Database,
        deployed: Deployed,
        is_stopping: Callable[[], bool],
        meter: Meter | None = None,
    ) -> None:
        self._meter = meter or Meter()
        self._database = database
        self._deployed = deployed
        self._is_stopping = is_stopping

    def wake_waiter(self, found: Workflow) -> bool:
        """The workflows it waited for have ended, and nobody woke it."""
        with self._database.transaction() as tx:
            if QUERIES.claim_run(tx.conn, workflow_id=found.workflow_id) is None:
                return False
            run = tx.runs.get(found.workflow_id)
            job = None if run is None else tx.runs.shadow(pointer.carrier(run))
            if run is None or job is None or job.worker_status != "WAITING" or not waits.wake_if_decided(tx, run):
                return False
        self._say("woke", found, f"what it waited for is decided; now {run.dag_run_id}")
        return True

    def set_clock_right(self, found: Workflow) -> bool:
        """The database's clock was ahead when this run was changed last, and has gone back."""
        with self._database.transaction() as tx:
            if QUERIES.claim_run(tx.conn, workflow_id=found.workflow_id) is None:
                return False
            run = tx.runs.lock(found.workflow_id)
            if run.updated_at is None or run.updated_at <= tx.now + clock.AHEAD:
                return False
            ahead = run.updated_at - tx.now
            parking.set_right(tx, run)
        self._say("clock-set-right", found, f"the clock that told its times was {ahead} ahead; they count from now")
        return True

    def expire(self, found: Workflow) -> bool:
        """Its deadline has passed. One whose definition is not deployed any more fails without its handlers."""
        definition = self._deployed(found.workflow, found.version, found.definition_hash)
        with self._database.transaction() as tx:
            if not control.expire(tx, definition, found.workflow_id):
                return False
        self._say("failed-504", found, "its deadline has passed")
        return True

    def compensate(self, found: Workflow) -> bool:
        """One after another until one fails, time is up (both: again in the next round), or nothing is left."""
        definition = self._deployed(found.workflow, found.version, found.definition_hash)
        done, enough = 0, time.monotonic() + COMPENSATE_S
        while control.compensate_next(self._database.transaction, found.workflow_id, definition):
            done += 1
            if self._is_stopping() or time.monotonic() >= enough:
                break
        if done:
            self._say("compensated", found, f"{done} steps undone")
        return done > 0

    def _say(self, action: str, found: Workflow, why: str) -> None:
        self._meter.count(REPAIRS, action=action)
        log.warning("action=%s %s: %s", action, found.log_context, why)
