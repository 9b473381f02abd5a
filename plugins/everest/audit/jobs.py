"""Invariants about jobs: each PENDING moves, each PROCESSING has a live DAG run, each fault has its dead letter.

The reconciler repairs these within seconds; a job that still stands there after the grace is one that it could not
repair, or the reconciler is not running.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from everest.audit.finding import QUERIES, Auditor, Finding, NotChecked, finding, paged
from everest.errors import EverestError
from everest.words import say
from ingest_consumer.airflow_api import DagRun
from ingest_consumer.errors import AirflowRefused, AirflowUnavailable

LIVE = frozenset({"queued", "running"})
MAX_THEIRS = 300
"""Of a server's own words in a note."""


def processing_without_run(auditor: Auditor) -> Iterator[Finding]:
    """Asks Airflow about every job at work. Raises NotChecked when Airflow cannot be asked: silence is no proof."""
    if auditor.airflow is None:
        raise NotChecked(say("en", "audit_note.airflow_unknown"))
    for job in paged(auditor, "jobs_at_work", grace_s=_seconds(auditor.settings.grace)):
        state = _state(auditor, job)
        if state in LIVE or not _is_still_at_work(auditor, job):
            continue
        yield finding("jobs_at_work", {**job, "state": state}, ("shadow_id", "dag_run_id"))


def _state(auditor: Auditor, job: dict[str, Any]) -> str:
    if job["dag_run_id"] is None or auditor.airflow is None:
        return say("id", "audit_state.unnamed")
    try:
        run: DagRun | None = auditor.airflow.dag_run(job["dag_id"] or "opname_posting", job["dag_run_id"])
    except (AirflowUnavailable, AirflowRefused) as error:
        raise NotChecked(say("en", "audit_note.airflow_silent", why=_theirs(error))) from error
    if run is None:
        return say("id", "audit_state.unknown")
    return run.state if run.state in LIVE else say("id", "audit_state.ended", state=run.state)


def _theirs(error: Exception) -> dict[str, Any]:
    """The words of a server, as they came."""
    return {"message": str(error)[:MAX_THEIRS], "lang": "en"}


def _is_still_at_work(auditor: Auditor, job: dict[str, Any]) -> bool:
    """It may have ended between our look at the row and Airflow's answer."""
    with auditor.open() as tx:
        found = QUERIES.is_still_at_work(
            tx.conn, shadow_id=job["shadow_id"], dag_run_id=job["dag_run_id"], sejak=job["sejak"]
        )
    return bool(found)


def overdue(auditor: Auditor) -> Iterator[Finding]:
    grace = auditor.settings.grace
    with auditor.open() as tx:
        foreign_now = tx.now.astimezone(tx.settings.foreign_zone).replace(tzinfo=None)
    rows = paged(auditor, "overdue_jobs", grace_s=_seconds(grace), foreign_before=foreign_now - grace)
    for job in rows:
        yield finding("overdue_jobs", job, ("shadow_id",))


def without_letter(auditor: Auditor) -> Iterator[Finding]:
    """The mark of the row, which is set in the commit, or with the rejection, that writes the letter."""
    for job in paged(auditor, "failed_without_letter", grace_s=_seconds(auditor.settings.grace)):
        yield finding("failed_without_letter", job, ("shadow_id",))


def letters_lost(auditor: Auditor) -> Iterator[Finding]:
    """Fewer letters than marked documents: somebody purged the queue. Which ones are missing cannot be told without
    taking them out, and an audit takes nothing out."""
    if auditor.count_letters is None:
        auditor.notes.append(say("en", "audit_note.broker_unknown"))
        return
    try:
        letters = auditor.count_letters()
    except EverestError as error:
        raise NotChecked(say("en", "audit_note.broker_silent", why=_theirs(error))) from error
    with auditor.open() as tx:
        owed = QUERIES.letters_owed(tx.conn, grace_s=_seconds(auditor.settings.grace))
    if letters + owed["di_jalan"] < owed["dokumen"]:
        yield finding("letters_owed", {"surat": letters, **owed}, ())


def _seconds(grace: timedelta) -> int:
    return int(grace.total_seconds())
