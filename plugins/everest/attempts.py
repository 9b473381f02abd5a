"""The attempts at a document, and what changed from each to the next: which lines, which problem went away or came.

Whoever reruns a failed document wants to see that the correction met the problem, and an auditor wants to see what was
corrected. Both stand in `posting_attempts`: every failure with its problems, every correction with the lines that it
replaced. SELECTs only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from everest.errors import DocumentMissing, Problem
from everest.intake import lookup
from everest.opname.count import OPNAME
from everest.opname.document import LINE_COLUMNS, input_hash, wib, with_header_warehouse
from everest.opname.lines import columns
from everest.opname.ports import PostingSet
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.words import Said, say

_QUERIES = load_queries("attempts")

Lines = dict[int, dict[str, str | None]]
"""Counted lines by baris: every column as text in column scale, None for NULL."""


@dataclass(frozen=True)
class Change:
    """What a correction changed: one line, or the header (baris None). before, after: the columns that differ; the
    whole line where it was added or removed. kind: 'added', 'removed' or 'changed'."""

    baris: int | None
    kind: str
    before: dict[str, str | None]
    after: dict[str, str | None]


@dataclass(frozen=True)
class Act:
    """What somebody did, by the names of `audit_log`."""

    actor: str
    action: str
    reason: str | None


@dataclass(frozen=True)
class Attempt:
    """One attempt: COMPLETED, or FAILED with its code and problems.

    gone, new: problems compared with the attempt before (all are new in the first). is_other_content: the document
    said something else than at the attempt before. changes: how its lines differ from then, None where they were
    changed by another program, which keeps no old lines. asked_by: what people did since the attempt before.
    created_at is naive UTC.
    """

    number: int
    n: int
    dag_run_id: str | None
    outcome: str
    code: int | None
    created_at: datetime
    input_hash: str | None
    problems: tuple[Problem, ...]
    gone: tuple[Problem, ...]
    new: tuple[Problem, ...]
    is_other_content: bool
    changes: tuple[Change, ...] | None
    asked_by: tuple[Act, ...] = ()


@dataclass(frozen=True)
class History:
    """All attempts, oldest first; what was corrected since the last one; and what a rerun now would do.

    pending: line changes that no attempt has tried yet. rerun: the sentence (Indonesian); rows_changed: what a rerun
    would change in posted books, 0 always; None while nothing is posted. lines_purged_at: aware; then what the last
    correction changed is not known any more.
    """

    nomer_nota: str
    transaksi_id: int
    shadow_id: int
    worker_status: str
    attempts: tuple[Attempt, ...]
    pending: tuple[Change, ...]
    posting_id: int | None
    rows_changed: int | None
    rerun: str
    lines_purged_at: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "attempts": [
                {
                    **vars(attempt),
                    "created_at": f"{attempt.created_at.isoformat()}+00:00",
                    **{name: [one.as_json() for one in getattr(attempt, name)] for name in ("problems", "gone", "new")},
                    "changes": None if attempt.changes is None else [vars(change) for change in attempt.changes],
                    "asked_by": [vars(act) for act in attempt.asked_by],
                }
                for attempt in self.attempts
            ],
            "pending": [vars(change) for change in self.pending],
            "lines_purged_at": None if self.lines_purged_at is None else self.lines_purged_at.isoformat(),
        }


@dataclass
class _Correction:
    """The lines that one correction took away."""

    lines: Lines = field(default_factory=dict)


def history(tx: UnitOfWork, target: str) -> History:
    """The attempts at the document of a nota (or `#JOB`). Raises DocumentMissing, Conflict for several documents."""
    job = lookup.find_job(tx.conn, target, frozenset({"PENDING", "PROCESSING", "WAITING", "FAILED"}))
    if job.transaksi_id is None:
        raise DocumentMissing(f"job #{job.shadow_id} is of no document; see `python -m everest workflow show`")
    purged_at, now, current_hash = _standing(tx, job.transaksi_id)
    events = _events(list(_QUERIES.attempts_of(tx.conn, transaksi_id=job.transaksi_id)))
    people = list(_QUERIES.done_by_people(tx.conn, transaksi_id=job.transaksi_id))
    attempts, pending = _compared(events, now if purged_at is None else None, people)
    posted = tx.books.posting_of(job.nomer_nota or "", job.transaksi_id)
    return History(
        nomer_nota=job.nomer_nota or "",
        transaksi_id=job.transaksi_id,
        shadow_id=job.shadow_id,
        worker_status=job.worker_status,
        attempts=tuple(attempts),
        pending=pending,
        posting_id=None if posted is None else posted.id,
        rows_changed=0 if posted is not None or job.worker_status == "COMPLETED" else None,
        rerun=_rerun_sentence(job, posted, current_hash, purged_at),
        lines_purged_at=purged_at,
    )


def _standing(tx: UnitOfWork, transaksi_id: int) -> tuple[datetime | None, Lines, str | None]:
    """Since when the lines are gone, if they are; the lines as they stand; and the hash of the whole document, None
    where it has none."""
    header = tx.books.document(transaksi_id)
    if header is None:
        return None, {}, None
    gone = header.lines_purged_at
    frame = tx.books.whole_lines(header)
    rows = zip(*columns(frame, *LINE_COLUMNS), strict=True)
    lines = {int(row[0]): _line(dict(zip(LINE_COLUMNS, row, strict=True))) for row in rows}
    try:
        return gone, lines, input_hash(header, with_header_warehouse(header, frame), OPNAME)
    except ValueError:
        return gone, lines, None


def _events(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any] | _Correction]:
    """Attempts and corrections in order, the pieces of one correction put together."""
    events: list[dict[str, Any] | _Correction] = []
    for row in rows:
        if row["outcome"] != "REPLACED":
            events.append(row)
            continue
        before = events[-1] if events else None
        correction = before if isinstance(before, _Correction) and row["problems"] is None else _Correction()
        if correction is not before:
            events.append(correction)
        for line in json.loads(row["replaced_lines"] or "[]"):
            correction.lines[int(line["baris"])] = _line(line)
    return events


def _compared(
    events: Sequence[dict[str, Any] | _Correction], now: Lines | None, people: Sequence[dict[str, Any]]
) -> tuple[list[Attempt], tuple[Change, ...]]:
    """Each attempt beside the one before, and the changes that nobody has tried yet. What an attempt read is what the
    next correction took away, or what stands now (None: that was purged)."""
    found: list[Attempt] = []
    corrected_since: Lines | None = None
    for index, event in enumerate(events):
        if isinstance(event, _Correction):
            corrected_since = corrected_since or event.lines
            continue
        before = found[-1] if found else None
        problems = _problems(event["problems"])
        known = set(before.problems) if before else set()
        is_other = before is not None and before.input_hash != event["input_hash"]
        changes: tuple[Change, ...] | None = ()
        done = _between(people, before.created_at if before else None, event["created_at"])
        if corrected_since is not None:
            after = _lines_at(events, index, now)
            changes = (*_header_changes(done), *(() if after is None else _changes(corrected_since, after)))
        elif is_other:
            changes = None
        found.append(
            Attempt(
                number=len(found) + 1,
                n=event["n"],
                dag_run_id=event["dag_run_id"],
                outcome=event["outcome"],
                code=event["code"],
                created_at=event["created_at"],
                input_hash=event["input_hash"],
                problems=problems,
                gone=tuple(one for one in (before.problems if before else ()) if one not in set(problems)),
                new=tuple(one for one in problems if one not in known),
                is_other_content=is_other,
                changes=changes,
                asked_by=tuple(Act(row["actor"], row["action"], row["reason"]) for row in done),
            )
        )
        corrected_since = None
    if corrected_since is None:
        return found, ()
    done = _between(people, found[-1].created_at if found else None, None)
    return found, (*_header_changes(done), *(() if now is None else _changes(corrected_since, now)))


def _lines_at(events: Sequence[dict[str, Any] | _Correction], index: int, now: Lines | None) -> Lines | None:
    following = [event for event in events[index:] if isinstance(event, _Correction)]
    return following[0].lines if following else now


def _changes(before: Lines, after: Lines) -> tuple[Change, ...]:
    changes = [Change(baris, "removed", before[baris], {}) for baris in before.keys() - after.keys()]
    changes += [Change(baris, "added", {}, after[baris]) for baris in after.keys() - before.keys()]
    for baris in before.keys() & after.keys():
        old, new = before[baris], after[baris]
        names = [name for name in LINE_COLUMNS if old.get(name) != new.get(name)]
        if names:
            old, new = {name: old.get(name) for name in names}, {name: new.get(name) for name in names}
            changes.append(Change(baris, "changed", old, new))
    return tuple(sorted(changes, key=lambda change: change.baris or 0))


def _problems(text: str | None) -> tuple[Problem, ...]:
    return Problem.all_of(json.loads(text or "[]"))


def _between(people: Sequence[dict[str, Any]], since: datetime | None, until: datetime | None) -> list[dict[str, Any]]:
    return [
        row
        for row in people
        if (since is None or row["created_at"] > since) and (until is None or row["created_at"] <= until)
    ]


def _header_changes(people: Sequence[dict[str, Any]]) -> list[Change]:
    """What corrections changed above the lines, as the audit log kept it."""
    changes = []
    for row in people:
        if row["action"] != "replace":
            continue
        old, new = json.loads(row["before_value"] or "{}"), json.loads(row["after_value"] or "{}")
        # How many lines there are is told by the lines.
        names = [name for name in new if name != "baris" and old.get(name) != new[name]]
        if names:
            before, after = {name: _text(old.get(name)) for name in names}, {name: _text(new[name]) for name in names}
            changes.append(Change(None, "changed", before, after))
    return changes


def _rerun_sentence(
    job: lookup.Job, posted: PostingSet | None, current_hash: str | None, purged_at: datetime | None
) -> Said:
    if posted is None:
        if job.worker_status == "COMPLETED":
            return say("id", "rerun_now.older_posted")
        return say("id", "rerun_now.not_posted", state=job.worker_status)
    if purged_at is not None and posted.transaksi_id == job.transaksi_id:
        return say("id", "rerun_now.lines_purged", posting=posted.id, day=f"{wib(purged_at):%Y-%m-%d}")
    if posted.transaksi_id == job.transaksi_id and posted.input_hash == current_hash:
        return say("id", "rerun_now.posted", posting=posted.id)
    return say("id", "rerun_now.other_content", posting=posted.id)


def _line(values: dict[str, Any]) -> dict[str, str | None]:
    """NULL and '' are the same lot, so that no change is told that changes nothing."""
    return {name: _text(values.get(name)) for name in LINE_COLUMNS} | {"lot": values.get("lot") or ""}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
