"""Closing and opening accounting months: by a person, with a reason, and with a look at what has not posted yet.

A posting holds the row of its month shared and looks whether it is open (`books.lock_period`); closing holds the same
row alone. So whoever comes second sees what the first one did: a month that is closed takes nothing more, whatever is
run again, sent again or cleared. Used by command line and pages.

Called `close`, `open` and `list` because that is what is said about a month: `periods.close(...)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from everest.errors import Conflict, DocumentRefused, Problem
from everest.intake.submit import audit
from everest.opname.document import period_of, posting_instant, wib
from everest.opname.workflow import REVERSE_OPNAME
from everest.store.database import load_queries
from everest.store.headers import header_of
from everest.store.unit_of_work import UnitOfWork
from everest.words import say, some, together

_QUERIES = load_queries("periods")
_MONTH = re.compile(r"[1-9][0-9]{3}-(?:0[1-9]|1[0-2])")

OPEN, CLOSED = "OPEN", "CLOSED"
MAX_REASON = 500
"""Characters of audit_log.reason; a longer reason is refused, not cut."""
MAX_NAMED = 10
"""Documents named in a sentence; all of them are handed out beside it."""
MAX_AUDITED = 200
"""Notas that the audit trail keeps of one closing; the rest are counted."""


@dataclass(frozen=True)
class Unposted:
    """A count or a reversal that is meant for a month and does not stand in it yet. tanggal_wib: when it would post,
    naive WIB; for a reversal that is now."""

    shadow_id: int
    transaksi_id: int
    nomer_nota: str
    worker_status: str
    error_code: int | None
    is_reversal: bool
    tanggal_wib: datetime

    @property
    def periode(self) -> str:
        return period_of(self.tanggal_wib)

    @property
    def is_open(self) -> bool:
        """On its way by itself; a FAILED one waits for a person."""
        return self.worker_status != "FAILED"

    def as_problem(self) -> Problem:
        key = "period.reversal" if self.is_reversal else "period.document"
        about = {"nota": self.nomer_nota, "state": self.worker_status, "at": f"{self.tanggal_wib:%Y-%m-%d %H:%M:%S}"}
        return Problem(None, "nomer_nota", say("id", key, **about))


class PeriodInUse(Conflict):
    """Documents are on their way into the month; `documents` holds all of them."""

    def __init__(self, periode: str, documents: tuple[Unposted, ...]) -> None:
        self.documents = documents
        self.problems = tuple(document.as_problem() for document in documents)
        super().__init__(say("id", "period.in_use", month=periode, n=len(documents), documents=_named(documents)))


@dataclass(frozen=True)
class Change:
    """What closing or opening did. is_changed: False when the month was like that already, and nothing was written.

    documents: on their way into it all the same (a forced close). failed: FAILED ones of that month, as a hint: they
    can't post any more until the month is opened, or they get another posting date.
    """

    periode: str
    status: str
    is_changed: bool
    documents: tuple[Unposted, ...] = ()
    failed: tuple[Unposted, ...] = ()


@dataclass(frozen=True)
class Period:
    """A month: OPEN or CLOSED, how many postings it holds, and how many documents are on their way or FAILED."""

    periode: str
    status: str
    postings: int
    open_documents: int
    failed_documents: int


def close(tx: UnitOfWork, periode: str, who: str, reason: str, force: bool = False) -> Change:
    """Closes a month; the caller commits. Waits for postings that hold it.

    Raises PeriodInUse while documents or reversals of that month are PENDING, PROCESSING or WAITING, unless `force`;
    DocumentRefused for a month that is not 'YYYY-MM' or an empty reason.
    """
    reason = _checked(periode, reason)
    was = _hold(tx, periode)
    found = tuple(document for document in unposted(tx) if document.periode == periode)
    documents = tuple(document for document in found if document.is_open)
    failed = tuple(document for document in found if not document.is_open)
    if was == CLOSED:
        return Change(periode, CLOSED, False, documents, failed)
    if documents and not force:
        raise PeriodInUse(periode, documents)
    _set(tx, periode, who, reason, "period_close", was, CLOSED, documents)
    return Change(periode, CLOSED, True, documents, failed)


def open(tx: UnitOfWork, periode: str, who: str, reason: str) -> Change:
    """Opens a month again; the caller commits. Raises DocumentRefused as `close` does."""
    reason = _checked(periode, reason)
    was = _hold(tx, periode)
    failed = tuple(document for document in unposted(tx) if document.periode == periode and not document.is_open)
    if was == OPEN:
        return Change(periode, OPEN, False, failed=failed)
    _set(tx, periode, who, reason, "period_open", was, OPEN, ())
    return Change(periode, OPEN, True, failed=failed)


def list(tx: UnitOfWork) -> tuple[Period, ...]:
    """Every month that has a row, a posting or a document on its way or FAILED, and the present one; oldest first."""
    status = {row["periode"]: row["status"] for row in _QUERIES.periods(tx.conn)}
    postings = {row["periode"]: row["postings"] for row in _QUERIES.postings_by_period(tx.conn)}
    waiting, failed = Counter[str](), Counter[str]()
    for document in unposted(tx):
        (waiting if document.is_open else failed)[document.periode] += 1
    months = {*status, *postings, *waiting, *failed, period_of(wib(tx.now))}
    return tuple(
        Period(month, status.get(month, OPEN), postings.get(month, 0), waiting[month], failed[month])
        for month in sorted(months)
    )


def is_month(periode: str) -> bool:
    """Whether it is written as postings look for it. A row that somebody wrote as '2026-8' closes nothing."""
    return _MONTH.fullmatch(periode) is not None


def unposted(tx: UnitOfWork) -> Iterator[Unposted]:
    """Every count and reversal that has not posted and may still do so, once each. A count without a posting instant
    (nobody authorised it) or without a header belongs to no month."""
    seen: set[int] = set()
    for row in _QUERIES.unposted(tx.conn):
        if row["transaksi_id"] in seen:
            continue
        is_reversal = row["workflow"] == REVERSE_OPNAME.name
        instant = wib(tx.now).replace(microsecond=0) if is_reversal else _instant(tx, row)
        if instant is None:
            continue
        seen.add(row["transaksi_id"])
        yield Unposted(
            row["shadow_id"],
            row["transaksi_id"],
            row["nomer_nota"] or row["job_nota"] or "",
            row["worker_status"],
            row["error_code"],
            is_reversal,
            instant,
        )


def _instant(tx: UnitOfWork, row: dict[str, object]) -> datetime | None:
    if row["id"] is None:
        return None
    try:
        return posting_instant(header_of(row, tx.settings.foreign_zone))
    except ValueError:
        return None


def _checked(periode: str, reason: str) -> str:
    reason = reason.strip()
    problems = []
    if not is_month(periode):
        problems.append(Problem(None, "periode", say("id", "period.no_month", value=repr(periode))))
    if not reason:
        problems.append(Problem(None, "alasan", say("id", "period.no_reason")))
    elif len(reason) > MAX_REASON:
        problems.append(Problem(None, "alasan", say("id", "period.long_reason", most=MAX_REASON)))
    if problems:
        raise DocumentRefused(together(problem.pesan for problem in problems), problems)
    return reason


def _hold(tx: UnitOfWork, periode: str) -> str:
    status = _QUERIES.hold_period(tx.conn, periode=periode)
    if status is None:
        _QUERIES.insert_period(tx.conn, periode=periode)
        status = _QUERIES.hold_period(tx.conn, periode=periode)
    return str(status)


def _set(
    tx: UnitOfWork,
    periode: str,
    who: str,
    reason: str,
    action: str,
    was: str,
    status: str,
    documents: tuple[Unposted, ...],
) -> None:
    if not _QUERIES.set_status(tx.conn, periode=periode, expected=was, status=status):
        raise Conflict(say("id", "period.changed", month=periode))
    left: dict[str, object] = {}
    if documents:
        left = {"dokumen": len(documents), "nota": [one.nomer_nota for one in documents[:MAX_AUDITED]]}
    audit(
        tx.conn,
        actor=who,
        action=action,
        transaksi_id=None,
        nomer_nota=None,
        shadow_id=None,
        workflow_id=None,
        reason=reason,
        before={"periode": periode, "status": was},
        after={"periode": periode, "status": status, **left},
    )


def _named(documents: Iterable[Unposted]) -> Sequence[str]:
    return some([f"{document.nomer_nota} ({document.worker_status})" for document in documents], MAX_NAMED)
