"""What a round finds: jobs as they were when it looked. A repair names this picture again, under the lock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from everest.reconciler.settings import Limits
from everest.settings import Settings
from everest.store.database import Connection, load_queries
from everest.workflow import clock
from ingest_consumer import shadow as jobs

QUERIES = load_queries("reconciler")


@dataclass(frozen=True)
class Page:
    """Which rows of a kind a round looks at: `batch` of them, behind the first `skip`."""

    batch: int
    skip: int = 0


@dataclass(frozen=True)
class Job:
    """A shadow row and its workflow's name (None while nobody linked it). Instants are naive UTC.

    is_overdue: at work for longer than anybody holds a delivery. handed_over_body: the message a consumer left here.
    """

    shadow_id: int
    transaksi_id: int | None
    nomer_nota: str | None
    workflow_id: int | None
    workflow: str | None
    worker_status: str
    worker_at: datetime | None
    dag_id: str | None
    dag_run_id: str | None
    n: int | None
    is_overdue: bool = False
    handed_over_body: str | None = None
    requeued_at: datetime | None = None

    @property
    def workflow_name(self) -> str:
        return self.workflow or jobs.OPNAME_POSTING

    @property
    def dag(self) -> str:
        return self.dag_id or self.workflow_name

    @property
    def run_id(self) -> str:
        """The announced or owning DAG run; for a foreign row the one its message means."""
        return self.dag_run_id or jobs.dag_run_id(
            self.workflow_name, self.transaksi_id, self.workflow_id, self.shadow_id, self.n or 1
        )

    @property
    def ids(self) -> dict[str, Any]:
        """For the log: what every line about this job carries."""
        return {
            "shadow_id": self.shadow_id,
            "transaksi_id": self.transaksi_id,
            "nota": self.nomer_nota,
            "workflow_id": self.workflow_id,
            "dag_run_id": self.dag_run_id,
            "n": self.n,
        }

    @property
    def log_context(self) -> str:
        """The same fields in every log line about a job."""
        return (
            f"nota={self.nomer_nota} transaksi_id={self.transaksi_id} shadow_id={self.shadow_id}"
            f" workflow={self.workflow_name} workflow_id={self.workflow_id} dag_run_id={self.dag_run_id}"
        )

    def message(self) -> str:
        """Its message, rebuilt: the foreign form where no DAG run was ever announced for it."""
        if self.dag_run_id is None:
            foreign = {"transaksi_id": self.transaksi_id, "shadow_id": self.shadow_id, "nota": self.nomer_nota}
            return json.dumps(foreign, ensure_ascii=False)
        return jobs.outbox_body(
            shadow_id=self.shadow_id,
            workflow=self.workflow_name,
            workflow_id=self.workflow_id,
            dag_id=self.dag,
            dag_run_id=self.dag_run_id,
            n=self.n or 1,
            transaksi_id=self.transaksi_id,
            nota=self.nomer_nota,
        )


@dataclass(frozen=True)
class Workflow:
    """A run that needs something which is not about its job."""

    workflow_id: int
    workflow: str
    version: str
    definition_hash: str

    @property
    def ids(self) -> dict[str, Any]:
        return {"workflow_id": self.workflow_id}

    @property
    def log_context(self) -> str:
        return f"workflow={self.workflow} workflow_id={self.workflow_id}"


def at_work(conn: Connection, limits: Limits, page: Page) -> list[Job]:
    """PROCESSING without news for a while."""
    quiet_s, hold_limit_s = limits.quiet.total_seconds(), limits.hold_limit.total_seconds()
    return _found(QUERIES.at_work(conn, quiet_s=quiet_s, hold_limit_s=hold_limit_s, **vars(page)))


def without_dead_letter(conn: Connection, limits: Limits, page: Page) -> list[Job]:
    after_s = limits.dead_letter_after.total_seconds()
    return _found(QUERIES.without_dead_letter(conn, after_s=after_s, **vars(page)))


def lost_messages(conn: Connection, limits: Limits, site: Settings, now: datetime, page: Page) -> list[Job]:
    """PENDING for long without a message on its way; whether one lies in the queue is not known here."""

    def theirs(instant: datetime) -> datetime:
        return instant.astimezone(site.foreign_zone).replace(tzinfo=None)

    return _found(
        QUERIES.lost_messages(
            conn,
            lost_after_s=limits.lost_after.total_seconds(),
            requeue_every_s=limits.requeue_every.total_seconds(),
            foreign_before=theirs(now - limits.lost_after),
            foreign_after=theirs(now + limits.lost_after),
            **vars(page),
        )
    )


def spelled_by_hand(conn: Connection, page: Page) -> list[Job]:
    return _found(QUERIES.spelled_by_hand(conn, **vars(page)))


def overslept(conn: Connection, limits: Limits, page: Page) -> list[Job]:
    return _found(QUERIES.overslept(conn, grace_s=limits.wake_grace.total_seconds(), **vars(page)))


def decided_waits(conn: Connection, page: Page) -> list[Workflow]:
    return [Workflow(**row) for row in QUERIES.decided_waits(conn, **vars(page))]


def told_by_a_clock_ahead(conn: Connection, page: Page) -> list[Workflow]:
    ahead_s = int(clock.AHEAD.total_seconds())
    return [Workflow(**row) for row in QUERIES.told_by_a_clock_ahead(conn, ahead_s=ahead_s, **vars(page))]


def passed_deadlines(conn: Connection, page: Page) -> list[Workflow]:
    return [Workflow(**row) for row in QUERIES.passed_deadlines(conn, **vars(page))]


def unfinished_compensations(conn: Connection, page: Page) -> list[Workflow]:
    return [Workflow(**row) for row in QUERIES.unfinished_compensations(conn, **vars(page))]


def _found(rows: Any) -> list[Job]:
    return [Job(**row) for row in rows]
