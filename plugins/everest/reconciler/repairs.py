"""One repair = one transaction: lock the run's row, see that nothing was committed since the round looked, change.

So a late commit and a failure from outside cannot both win: whichever gets the run's lock first makes the other find
a changed row. Locks: run row, then shadow row, then outbox. A run that somebody holds just now is left for the next
round. Every function returns whether it changed anything.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from everest.errors import DocumentRefused
from everest.reconciler.rows import QUERIES, Job
from everest.reconciler.verdict import BeginAgain, MarkedByHand
from everest.store.unit_of_work import Database, UnitOfWork
from everest.words import say
from everest.workflow import deployment, engine, pointer
from everest.workflow.definition import Definition
from everest.workflow.deployment import Deployed
from everest.workflow.engine import Ticket
from everest.workflow.records import WAITING, Run
from ingest_consumer import shadow as jobs
from ingest_consumer.metrics import REPAIRS, Meter

log = logging.getLogger(__name__)

AWAKE = frozenset({"running", *WAITING})
AT_WORK = AWAKE | {"paused"}


class Changed(Exception):
    """Somebody was quicker; nothing of this repair may stay."""


class Repairs:
    """`deployed`: for the failure handlers of a run. `current`: workflows by name, for the runs of foreign rows, which
    begin now. `recoveries`: DAG runs begun again for a workflow before it is FAILED 503."""

    def __init__(
        self,
        database: Database,
        deployed: Deployed,
        current: Mapping[str, Definition],
        recoveries: int,
        meter: Meter | None = None,
    ) -> None:
        self._database = database
        self._deployed, self._current = deployed, current
        self._recoveries = recoveries
        self._meter = meter or Meter()

    def end_run(self, job: Job, verdict: BeginAgain | MarkedByHand) -> bool:
        """The DAG run of a job at work is over: begin again, or record why it failed."""
        try:
            with self._database.transaction() as tx:
                return self._end_run(tx, job, verdict)
        except Changed:
            return False

    def _end_run(self, tx: UnitOfWork, job: Job, verdict: BeginAgain | MarkedByHand) -> bool:
        run = self._claim(tx, job, AT_WORK) if job.workflow_id is not None else self._adopt(tx, job)
        if run is None:
            return False
        definition = deployment.of_run(self._deployed, run)
        if run.carrier_shadow_id != job.shadow_id:
            leave = engine.second_row(tx, run, _ticket(job))
            self._say("linked", job, leave.reason)
        elif isinstance(verdict, MarkedByHand):
            text = say("id", "engine.marked", state=verdict.state, who=verdict.who, run=job.dag_run_id)
            detail = {"dag_run_id": job.dag_run_id, "error_code": 499}
            tx.runs.audit(verdict.who, f"mark_{verdict.state}", run, "ditandai di Airflow", detail)
            engine.fail_run(tx, definition, run, DocumentRefused(text, code=499), None)
            self._say("failed-499", job, f"marked {verdict.state} in Airflow by {verdict.who}")
        elif run.status == "paused":
            pointer.park(tx, run, pointer.paused())
            self._say("parked", job, f"{verdict.reason}, while paused; a resume begins {run.dag_run_id}")
        elif engine.recover(
            tx, definition, run, self._recoveries, say("id", "engine.run_is", run=job.dag_run_id, what=verdict.reason)
        ):
            self._say("began-again", job, f"{verdict.reason}; now {run.dag_run_id}, time {run.recovered}")
        else:
            self._say("failed-503", job, f"{verdict.reason}; gave up after {run.recovered} times")
        return True

    def respell(self, job: Job) -> bool:
        """The status in our spelling, so that everybody who reads it finds what is meant."""
        with self._database.transaction() as tx:
            row = jobs.get(tx.conn, job.shadow_id)
            if row is None or jobs.respelled(tx.conn, row) is row:
                return False
        self._say("respelled", job, f"its status was written {job.worker_status!a}")
        return True

    def write_dead_letter(self, job: Job) -> bool:
        """The letter that no rejection wrote, and the mark that it is written, in one transaction."""
        with self._database.transaction() as tx:
            if not jobs.mark_dead_lettered(tx.conn, job.shadow_id, job.dag_run_id):
                return False
            jobs.enqueue(
                tx.conn,
                shadow_id=job.shadow_id,
                workflow_id=job.workflow_id,
                body=job.handed_over_body or job.message(),
                headers={jobs.OUR_LETTER: True},
                exchange=jobs.DEAD_LETTER_EXCHANGE,
            )
        self._say("dead-lettered", job, "FAILED, and no consumer rejected its message")
        return True

    def send_again(self, job: Job) -> bool:
        """A new outbox row for the same DAG run. A second copy, should the first turn up, can start nothing new."""
        with self._database.transaction() as tx:
            run = None if job.workflow_id is None else self._claim(tx, job)
            if job.workflow_id is not None and run is None:
                return False
            if QUERIES.has_unsent(tx.conn, shadow_id=job.shadow_id) or not QUERIES.count_requeue(
                tx.conn,
                shadow_id=job.shadow_id,
                worker_at=job.worker_at,
                dag_run_id=job.dag_run_id,
                requeued_at=job.requeued_at,
            ):
                return False
            jobs.enqueue(tx.conn, shadow_id=job.shadow_id, workflow_id=job.workflow_id, body=job.message())
            if run is not None:
                tx.runs.add_event(run, "requeued", run.current_step, None, {"n": run.n})
        self._say("sent-again", job, "PENDING for long, not in the queue, and Airflow has no such run")
        return True

    def wake(self, job: Job) -> bool:
        """A delay or a timeout that is over and that no outbox row will end: DAG run n+1 at the pointer."""
        with self._database.transaction() as tx:
            run = self._claim(tx, job)
            if run is None or QUERIES.has_unsent(tx.conn, shadow_id=job.shadow_id):
                return False
            run.wakes_at = None
            engine.announce_next(tx, run)
        self._say("woke", job, f"its time is over; now {run.dag_run_id}")
        return True

    def _claim(self, tx: UnitOfWork, job: Job, statuses: frozenset[str] = AWAKE) -> Run | None:
        """The locked run, if the job is still as it was seen and nobody else holds the run."""
        if QUERIES.claim_run(tx.conn, workflow_id=job.workflow_id) is None or not _is_as_seen(tx, job):
            return None
        assert job.workflow_id is not None
        run = tx.runs.get(job.workflow_id)
        return run if run is not None and run.status in statuses and run.dag_run_id == job.dag_run_id else None

    def _adopt(self, tx: UnitOfWork, job: Job) -> Run:
        """The run of a foreign job whose first task never came, made or found. Raises Changed."""
        definition = self._current.get(job.workflow_name)
        if definition is None:
            raise DocumentRefused(f"workflow {job.workflow_name} is not known here")
        run, _ = engine.find_run(tx, definition, _ticket(job))
        if not _is_as_seen(tx, job):
            raise Changed
        return run

    def _say(self, action: str, job: Job, why: str) -> None:
        self._meter.count(REPAIRS, action=action)
        log.warning("action=%s %s: %s", action, job.log_context, why)


def _is_as_seen(tx: UnitOfWork, job: Job) -> bool:
    seen = QUERIES.is_as_seen(
        tx.conn,
        shadow_id=job.shadow_id,
        worker_status=job.worker_status,
        worker_at=job.worker_at,
        dag_run_id=job.dag_run_id,
    )
    return seen is not None


def _ticket(job: Job) -> Ticket:
    assert job.dag_run_id is not None
    return Ticket(job.dag_run_id, job.shadow_id, job.n or 1, job.workflow_id, job.transaksi_id)
