"""One invariant looked at: what it found is stored, so that a finding is known as old, new or gone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from everest.audit.acknowledge import Standing
from everest.audit.finding import QUERIES, Auditor, Finding, NotChecked
from everest.audit.invariants import Invariant
from everest.audit.settings import AuditSettings
from everest.reconciler.management import Management
from everest.store.database import last_insert_id
from everest.store.unit_of_work import Database
from everest.words import said_of, say
from ingest_consumer.airflow_api import AirflowApi
from ingest_consumer.plurals import count

HTTP_TIMEOUT = timedelta(seconds=10)
MAX_NOTE = 1000


@dataclass(frozen=True)
class Report:
    """What an audit of one invariant came to. findings: the first of them, `found` counts all. new: never seen before.
    standing: their numbers and what people said about them, by key. resolved: stood before and are gone. not_checked:
    why it, or a part of it, could not be looked at. notes: what was left out. started_at: aware UTC."""

    invariant: Invariant
    started_at: datetime
    found: int
    findings: tuple[Finding, ...]
    new: int
    resolved: int
    not_checked: str | None
    notes: tuple[str, ...] = ()
    standing: Mapping[str, Standing] = field(default_factory=dict)

    @property
    def acknowledged(self) -> int:
        """How many of them a person knows about."""
        return sum(one.is_acknowledged for one in self.standing.values())

    @property
    def unknown(self) -> int:
        """Findings that nobody has acknowledged: what makes a night red."""
        return self.found - self.acknowledged

    @property
    def outcome(self) -> str:
        if self.found:
            return "FINDINGS"
        return "NOT_CHECKED" if self.not_checked else "CLEAN"

    def sentence(self, named: int) -> str:
        """The first findings and how many there are, for a log or an error."""
        known = f", {self.acknowledged} acknowledged" if self.acknowledged else ""
        head = f"{self.invariant.key}: {count(self.found, 'finding')}, {self.new} of them new{known}"
        # What nobody has acknowledged comes first; nothing is left out.
        ordered = sorted(
            self.findings, key=lambda one: one.key in self.standing and self.standing[one.key].is_acknowledged
        )
        lines = [f"  {finding.pesan} {self._note(finding)}".rstrip() for finding in ordered[:named]]
        if self.found > named:
            lines.append(f"  and {self.found - named} more; python -m everest audit --only {self.invariant.key}")
        return "\n".join([head, *lines, *([f"  not checked: {self.not_checked}"] if self.not_checked else [])])

    def _note(self, finding: Finding) -> str:
        standing = self.standing.get(finding.key)
        return standing.note if standing else ""


@contextmanager
def auditor_of(database: Database, settings: AuditSettings, since: datetime | None = None) -> Iterator[Auditor]:
    """What the checks have at hand, as far as the settings say where it is."""
    with ExitStack() as stack:
        airflow, count_letters = None, None
        if (service := settings.airflow) is not None:
            airflow = AirflowApi(service.url, service.user, service.password, HTTP_TIMEOUT)
            stack.enter_context(closing(airflow))
        if (service := settings.management) is not None:
            management = stack.enter_context(closing(Management(service, settings.vhost, HTTP_TIMEOUT)))
            count_letters = management.dead_letters
        yield Auditor(database.transaction, settings, since, airflow, count_letters)


def audit(auditor: Auditor, invariant: Invariant, actor: str, dag_run_id: str | None = None) -> Report:
    """Looks at one invariant and stores what it finds. Raises what the database raises; the run is stored as
    NOT_CHECKED then, as far as that can be written.

    A finding counts as resolved only by a run that looked at everything: without `since`, without a part that could
    not be checked, and without more findings than are stored.
    """
    with auditor.open() as tx:
        started_at = tx.now
        since = None if auditor.since is None else auditor.since.astimezone(UTC).replace(tzinfo=None)
        QUERIES.begin_run(tx.conn, invariant=invariant.key, actor=actor[:100], dag_run_id=dag_run_id, since_at=since)
        run_id = last_insert_id(tx.conn)
    try:
        kept, found, missed = _collected(auditor, invariant)
    except Exception as error:
        why = {"message": str(error)[: MAX_NOTE // 3], "lang": "en"}
        _end(
            auditor,
            run_id,
            "NOT_CHECKED",
            note=_kept([say("en", "audit_note.failed", type=type(error).__name__, why=why)]),
        )
        raise
    is_whole = auditor.since is None and not missed and found == len(kept)
    with auditor.open() as tx:
        if kept:
            rows = [(one.key, one.pesan, json.dumps(_detail(one), ensure_ascii=False)) for one in kept]
            text = json.dumps(rows, ensure_ascii=False)
            QUERIES.put_findings(tx.conn, run_id=run_id, invariant=invariant.key, rows=text)
        new = int(QUERIES.new_findings(tx.conn, run_id=run_id, invariant=invariant.key))
        resolved = int(QUERIES.resolve_findings(tx.conn, run_id=run_id, invariant=invariant.key)) if is_whole else 0
        standing = {
            row["finding_key"]: Standing(row["id"], row["diakui_oleh"], row["diakui_at"], row["diakui_alasan"])
            for row in QUERIES.standing(tx.conn, run_id=run_id, invariant=invariant.key)
        }
    notes = tuple(dict.fromkeys(auditor.notes))
    not_checked = "; ".join(missed) or None
    report = Report(invariant, started_at, found, tuple(kept), new, resolved, not_checked, notes, standing)
    _end(auditor, run_id, report.outcome, found, new, resolved, _kept([*missed, *notes]))
    return report


def _collected(auditor: Auditor, invariant: Invariant) -> tuple[list[Finding], int, list[str]]:
    """The findings that are kept, how many there are in all, and what could not be checked."""
    kept: dict[str, Finding] = {}
    found = 0
    not_checked: list[str] = []
    auditor.notes.clear()
    for check in invariant.checks:
        try:
            for finding in check(auditor):
                if finding.key in kept:
                    continue
                found += 1
                if len(kept) < auditor.settings.stored:
                    kept[finding.key] = finding
        except NotChecked as reason:
            not_checked.append(reason.args[0])
    return list(kept.values()), found, not_checked


def _detail(finding: Finding) -> dict[str, Any]:
    """A sentence among its values with what makes it anew."""
    return {name: said_of(value) or value for name, value in finding.detail.items()}


def _kept(notes: list[str]) -> str | None:
    """Notes as a row keeps them: as JSON, by which a page tells them in its reader's language; as one text where that
    would be too long."""
    told = json.dumps([said_of(note) or {"message": note} for note in notes], ensure_ascii=False) if notes else None
    return told if told is None or len(told) <= MAX_NOTE else "; ".join(notes)


def _end(
    auditor: Auditor,
    run_id: int,
    outcome: str,
    found: int = 0,
    new: int = 0,
    resolved: int = 0,
    note: str | None = None,
) -> None:
    with auditor.open() as tx:
        QUERIES.end_run(
            tx.conn,
            run_id=run_id,
            outcome=outcome,
            found=found,
            new_found=new,
            resolved=resolved,
            note=note and note[:MAX_NOTE],
        )
