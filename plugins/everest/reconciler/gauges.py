"""What the rows say of the whole installation, for Prometheus: how many jobs stand where, and for how long.

One process looks, the active reconciler, on a thread and a connection of its own, so that neither a long round nor a
busy Airflow makes the numbers old. Every look is bounded (`sql/queries/metrics.sql`). Without a look there are no
numbers: on standby, and while the database is away.
"""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from typing import Any

from everest.errors import EverestError
from everest.settings import Settings
from everest.store.database import load_queries
from everest.store.unit_of_work import Database, UnitOfWork
from ingest_consumer import metrics
from ingest_consumer.metrics import Metric, Values
from ingest_consumer.pauses import Complaints
from ingest_consumer.vitals import Vitals

log = logging.getLogger(__name__)

QUERIES = load_queries("metrics")
LOOK_EVERY_S = 15.0
OPEN = ("PENDING", "PROCESSING", "WAITING", "FAILED")
ENDED = ("COMPLETED", "FAILED", "CANCELLED")


class Gauges:
    """Looks and tells the meter; remembers only up to which event it has counted."""

    def __init__(self, database: Database, site: Settings, vitals: Vitals) -> None:
        self._database = database
        self._site = site
        self._vitals = vitals
        self._complaints = Complaints(log, "metrics")
        self._counted: int | None = None

    def run(self, stop: threading.Event, every_s: float = LOOK_EVERY_S) -> None:
        while not stop.is_set():
            self.look()
            stop.wait(every_s)

    def look(self) -> None:
        """Raises nothing: numbers are no reason to end anything."""
        meter = self._vitals.meter
        if not self._vitals.is_active:
            meter.forget()
            return
        try:
            with self._database.transaction() as tx:
                meter.tell(found(tx, self._site))
                self._count_retries(tx)
        except EverestError as problem:
            meter.forget()
            meter.set(metrics.DATABASE_UP, 0)
            self._complaints.say("rows", f"the rows could not be read: {problem.message}")
            return
        except Exception as bug:  # a thread that ended would leave the last numbers standing for ever
            meter.forget()
            meter.set(metrics.DATABASE_UP, 0)
            self._complaints.say("bug", f"OUR BUG in reading the rows: {bug!r}", logging.ERROR)
            return
        meter.set(metrics.DATABASE_UP, 1)
        self._complaints.over("rows")
        self._complaints.over("bug")

    def _count_retries(self, tx: UnitOfWork) -> None:
        """What happened since the last look; what happened before the first is nobody's to count."""
        if self._counted is None:
            self._counted = int(QUERIES.newest_event(tx.conn))
            return
        upto = int(QUERIES.events_up_to(tx.conn, after_id=self._counted, cap=metrics.CAP))
        for row in QUERIES.retried_steps(tx.conn, after_id=self._counted, upto_id=upto):
            self._vitals.meter.count(metrics.STEP_RETRIES, int(row["tries"]), error=str(row["error"]))
        self._counted = upto


def found(tx: UnitOfWork, site: Settings) -> dict[Metric, Values]:
    """All looked-up values of this moment."""
    conn, cap = tx.conn, metrics.CAP
    due = QUERIES.outbox_due(conn, cap=cap)
    beats = list(QUERIES.heartbeats(conn))
    return {
        metrics.JOBS: _by_status()
        | {(row["kind"], row["worker_status"]): row["jobs"] for row in QUERIES.open_jobs(conn, cap=cap)},
        metrics.JOBS_OLDEST: {(status,): _oldest_s(tx, site, status) for status in OPEN},
        metrics.JOBS_ENDED: {(one,): QUERIES.ended_jobs(conn, worker_status=one, cap=cap) for one in ENDED},
        metrics.JOBS_FAILED: {(str(row["code"]),): row["jobs"] for row in QUERIES.failed_jobs(conn, cap=cap)},
        metrics.LETTERS_OWED: {(): QUERIES.letters_owed(conn, cap=cap)},
        metrics.OUTBOX_DUE: {(): due["messages"]},
        metrics.OUTBOX_OLDEST: {(): max(0.0, float(due["oldest_s"]))},
        metrics.OUTBOX_LATER: {(): QUERIES.outbox_later(conn, cap=cap)},
        metrics.HEARTBEAT_AGE: {(row["name"],): float(row["age_s"]) for row in beats},
        metrics.PROCESSES: {(row["name"],): float(row["instances"]) for row in beats},
        metrics.AUDIT_FINDINGS: {(row["invariant"],): row["findings"] for row in QUERIES.audit_findings(conn, cap=cap)},
        metrics.AUDIT_AGE: _audit_age(conn),
    }


def _audit_age(conn: Any) -> dict[tuple[str, ...], float]:
    """Where nothing was ever audited there is one value, of the invariant "none"."""
    ages: dict[tuple[str, ...], float] = {
        (row["invariant"],): max(0.0, float(row["age_s"])) for row in QUERIES.audits(conn, cap=metrics.CAP)
    }
    return ages or {("none",): max(0.0, float(QUERIES.installed_since(conn)))}


def _by_status() -> dict[tuple[str, ...], float]:
    """A status that nobody is in is 0 and not missing: alerts compare with it."""
    return {(kind, status): 0 for kind in ("document", "workflow") for status in OPEN}


def _oldest_s(tx: UnitOfWork, site: Settings, status: str) -> float:
    """0 when there is none."""
    news: list[datetime] = []
    at: Any = QUERIES.oldest_job(tx.conn, worker_status=status)
    if at is not None:
        news.append(at.replace(tzinfo=UTC))
    if status == "PENDING" and (at := QUERIES.oldest_foreign_job(tx.conn, cap=metrics.CAP)) is not None:
        news.append(at.replace(tzinfo=site.foreign_zone))
    return max([0.0, *((tx.now - one).total_seconds() for one in news)])
