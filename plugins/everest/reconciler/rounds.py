"""One round: every kind of row in turn, bounded, and what to do while a server is away.

A server that is away ends what needs it in this round, is said once a minute, and fails no document. Trouble with one
row (Airflow cannot answer for its run, somebody holds its lock, a bug of ours) is said and holds up no other row; nor
do rows that stay as they are hide those behind them, because the next round begins where this one ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from everest.errors import HandlerHangs, SettingsError, TransientDatabaseError
from everest.reconciler import rows
from everest.reconciler.management import Management, ManagementUnavailable
from everest.reconciler.repairs import Repairs
from everest.reconciler.rows import Job, Page, Workflow
from everest.reconciler.settings import ReconcilerSettings
from everest.reconciler.verdict import ENDED, judge
from everest.reconciler.workflows import WorkflowRepairs
from everest.store.database import LOCKED
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import patience
from everest.workflow.definition import Definition
from everest.workflow.deployment import Deployed
from ingest_consumer import logs, metrics
from ingest_consumer.airflow_api import AirflowApi, DagState
from ingest_consumer.errors import AirflowDown, AirflowUnavailable
from ingest_consumer.pauses import Complaints
from ingest_consumer.vitals import ACTIVE, STANDBY, Vitals

log = logging.getLogger(__name__)

Found = TypeVar("Found", Job, Workflow)

TROUBLES_MAX = 5
"""Rows in trouble, of one kind and in one round: each may cost what a server takes to say no. The rest is for the next
round."""


class Reconciler:
    """Level-triggered; what it keeps between two rounds is how far it came, and what it has complained about.

    `management` None: lost messages are not looked for. `is_stopping` ends a round between two rows.
    """

    def __init__(
        self,
        settings: ReconcilerSettings,
        database: Database,
        airflow: AirflowApi,
        management: Management | None,
        deployed: Deployed,
        current: Mapping[str, Definition],
        is_stopping: Callable[[], bool] = lambda: False,
        vitals: Vitals | None = None,
    ) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._database = database
        self._airflow = airflow
        self._management = management
        self._is_stopping = is_stopping
        self._vitals = vitals or Vitals("reconciler")
        self._complaints = Complaints(log, "reconciler", self._vitals)
        meter = self._vitals.meter
        self._repairs = Repairs(database, deployed, current, settings.limits.recoveries, meter)
        self._workflows = WorkflowRepairs(database, deployed, is_stopping, meter)
        self._skip: dict[str, int] = {}
        self._is_active: bool | None = None

    def round(self) -> int:
        """Looks at everything once, if this process is the active one. Returns how many rows it changed."""
        began = time.monotonic()
        changed = self._if_active(self._look)
        if self._vitals.is_active:
            self._vitals.meter.observe(metrics.ROUND_SECONDS, time.monotonic() - began)
        return changed

    def wake_waiters(self) -> int:
        """The part of a round that people feel and that costs one query: more often than the rest."""
        return self._if_active(lambda: self._unless_broken(self._decided_waits))

    def _if_active(self, look: Callable[[], int]) -> int:
        self._vitals.turn()
        try:
            active = self._take_turn()
            changed = look() if active else 0
        except TransientDatabaseError as trouble:
            self._complaints.say("database", f"no database: {trouble.message}")
            return 0
        except SettingsError:
            raise
        except Exception as bug:
            self._tell_bug("its turn", bug)
            return 0
        self._complaints.over("database")
        return changed

    def _tell_bug(self, what: str, bug: Exception) -> None:
        self._vitals.meter.count(metrics.CANNOT_REPAIR)
        self._complaints.say(f"bug in {what}", f"OUR BUG in {what}: {bug!r}; the rest goes on", logging.ERROR)
        log.debug("bug in %s", what, exc_info=True)

    def _look(self) -> int:
        kinds = (
            self._spelled_by_hand,
            self._clock_was_ahead,
            self._decided_waits,
            self._passed_deadlines,
            self._runs_at_work,
            self._missing_dead_letters,
            self._lost_messages,
            self._overslept_delays,
            self._unfinished_compensations,
        )
        return sum(self._unless_broken(kind) for kind in kinds)

    def _unless_broken(self, kind: Callable[[], int]) -> int:
        """A kind that cannot be looked for at all holds up none of the others."""
        try:
            return kind()
        except (TransientDatabaseError, SettingsError):
            raise
        except Exception as bug:
            self._tell_bug(kind.__name__.strip("_").replace("_", " "), bug)
            return 0

    def _take_turn(self) -> bool:
        """Whether the named lock is this session's. A lost connection loses the lock, so it is asked for each round."""
        name = self._settings.mysql.lock_name("reconciler")
        with self._database.transaction() as tx:
            active = bool(rows.QUERIES.owns_lock(tx.conn, name=name))
            if not active and rows.QUERIES.get_lock(tx.conn, name=name):
                active = True
                rows.QUERIES.end_when_silent(tx.conn, seconds=int(self._limits.standby_after.total_seconds()))
        if active != self._is_active:
            self._is_active = active
            log.info("active" if active else "another reconciler is active; standing by")
        self._vitals.know(state=ACTIVE if active else STANDBY)
        return active

    # -------------------------------------------------------------------------------------------- the kinds

    def _runs_at_work(self) -> int:
        def look(job: Job) -> bool:
            verdict = judge(self._airflow.dag_run(job.dag, job.run_id), bool(job.is_overdue))
            return verdict is not None and self._repairs.end_run(job, verdict)

        return self._look_at("runs at work", lambda tx, page: rows.at_work(tx.conn, self._limits, page), look)

    def _missing_dead_letters(self) -> int:
        def find(tx: UnitOfWork, page: Page) -> list[Job]:
            return rows.without_dead_letter(tx.conn, self._limits, page)

        return self._look_at("dead letters", find, self._repairs.write_dead_letter)

    def _lost_messages(self) -> int:
        """A foreign row counts whatever its publish_status says: many publishers never change it, one that died
        before it published cannot, and a message that comes twice starts nothing twice. Nothing is lost."""
        if self._management is None:
            self._complaints.say("management", "EVEREST_RABBIT_MANAGEMENT_URL is not set; lost messages stay lost")
            return 0
        dags: dict[str, DagState] = {}

        def find(tx: UnitOfWork, page: Page) -> list[Job]:
            return rows.lost_messages(tx.conn, self._limits, self._settings.site, tx.now, page)

        def look(job: Job) -> bool:
            if job.dag not in dags:
                dags[job.dag] = self._airflow.dag_state(job.dag)
            if dags[job.dag] is not DagState.READY:
                self._complaints.say(f"DAG {job.dag}", f"jobs wait, but DAG {job.dag} is {dags[job.dag].value}")
                return False
            # A run that has ended brings nothing any more: the rows went back in time (decision 0045).
            dag_run = self._airflow.dag_run(job.dag, job.run_id)
            if dag_run is not None and dag_run.state not in ENDED:
                self._complaints.say(f"job {job.shadow_id}", f"PENDING, but its run exists: {job.log_context}")
                return False
            return self._repairs.send_again(job)

        return self._look_at("lost messages", find, look, self._queue_is_empty)

    def _queue_is_empty(self) -> bool:
        assert self._management is not None
        try:
            empty = self._management.queue_is_empty()
        except ManagementUnavailable as trouble:
            self._complaints.say("management", f"RabbitMQ's management API: {trouble.message}")
            return False
        self._complaints.over("management")
        return empty

    def _overslept_delays(self) -> int:
        return self._look_at("delays", lambda tx, page: rows.overslept(tx.conn, self._limits, page), self._repairs.wake)

    def _decided_waits(self) -> int:
        return self._look_at("waits", lambda tx, page: rows.decided_waits(tx.conn, page), self._workflows.wake_waiter)

    def _clock_was_ahead(self) -> int:
        """Before what goes by the clock."""
        find = rows.told_by_a_clock_ahead
        return self._look_at("times", lambda tx, page: find(tx.conn, page), self._workflows.set_clock_right)

    def _spelled_by_hand(self) -> int:
        return self._look_at("spellings", lambda tx, page: rows.spelled_by_hand(tx.conn, page), self._repairs.respell)

    def _passed_deadlines(self) -> int:
        return self._look_at("deadlines", lambda tx, page: rows.passed_deadlines(tx.conn, page), self._workflows.expire)

    def _unfinished_compensations(self) -> int:
        def find(tx: UnitOfWork, page: Page) -> list[Workflow]:
            return rows.unfinished_compensations(tx.conn, page)

        return self._look_at("compensations", find, self._workflows.compensate)

    def _look_at(
        self,
        kind: str,
        find: Callable[[UnitOfWork, Page], list[Found]],
        repair: Callable[[Found], bool],
        may_repair: Callable[[], bool] = lambda: True,
    ) -> int:
        """One page of this kind. `may_repair` is asked once something is found. Returns how many were changed."""
        skip = self._skip.get(kind, 0)
        with self._database.transaction() as tx:
            found = find(tx, Page(self._limits.batch, skip))
            if not found and skip:
                skip = 0
                found = find(tx, Page(self._limits.batch, 0))
        if not found or not may_repair():
            return 0
        changed, seen = self._each(found, repair)
        # What was changed is not found any more; what was not still stands before the rows that nobody has seen.
        self._skip[kind] = 0 if seen == len(found) < self._limits.batch else skip + seen - changed
        return changed

    def _each(self, found: Iterable[Found], repair: Callable[[Found], bool]) -> tuple[int, int]:
        """How many were changed, and how many looked at: all, unless it is stopping, there is too much trouble, or it
        takes so long (an Airflow that answers slowly) that the database would take this silent session for dead."""
        changed = seen = troubles = 0
        enough = time.monotonic() + self._limits.standby_after.total_seconds() / 4
        for job in found:
            if self._is_stopping() or troubles == TROUBLES_MAX or time.monotonic() > enough:
                break
            seen += 1
            self._vitals.turn()
            try:
                with logs.about(**job.ids):
                    changed += self._repaired(job, repair)
            except TransientDatabaseError as trouble:
                is_held = trouble.number in LOCKED
                if not is_held:
                    self._look_for_database()
                what = "somebody holds" if is_held else "a database is away for"
                self._complaints.say(job.log_context, f"{what} {job.log_context}: {trouble.message}")
                troubles += 1
            except AirflowUnavailable as trouble:
                self._complaints.say("Airflow", trouble.message)
                if isinstance(trouble, AirflowDown):
                    break
                troubles += 1
            except Exception as error:
                self._vitals.meter.count(metrics.CANNOT_REPAIR)
                self._complaints.say(job.log_context, f"cannot repair {job.log_context}: {error!r}", logging.ERROR)
                log.debug("cannot repair %s", job.log_context, exc_info=True)
            else:
                self._complaints.over("Airflow")
        return changed, seen

    def _repaired(self, job: Found, repair: Callable[[Found], bool]) -> bool:
        """A handler that hangs is interrupted, and what it was called for is done without it."""

        def tell(what: str) -> None:
            self._vitals.meter.count(metrics.HANDLERS_HUNG)
            self._complaints.say(f"handler of {job.log_context}", what, logging.ERROR)

        try:
            with patience.bounded(self._limits.handler_timeout, tell):
                return repair(job)
        except HandlerHangs:
            with patience.left_out():
                return repair(job)

    def _look_for_database(self) -> None:
        """Raises TransientDatabaseError when it is away. Else the trouble was that of one row: a handler of its
        workflow may have asked another database."""
        with self._database.transaction() as tx:
            tx.conn.query("DO 0")
