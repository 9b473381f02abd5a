"""Asking for the reversal of a posted document: a new document, its run, its job and its message, in one transaction.

The other end of the story: what a submit puts into the books, a reversal takes back. It goes the same way (outbox,
queue, DAG `opname_reversal`), so it can fail, wait and be run again like any document. Used by command line and pages.

The workflow's key is `<posting>-<number>`: one posting has one reversal on its way, and a further one only after the
one before was cancelled. Two requests at once come one after the other on the row of the posting, and so do those of
long notas whose reversals could get the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from everest import people
from everest.errors import Conflict, DocumentMissing, DocumentRefused, Forbidden, Problem
from everest.intake import lookup
from everest.intake.numbers import next_number
from everest.intake.submit import audit
from everest.opname.approval import own_people
from everest.opname.document import period_of, wib
from everest.opname.ports import PostingSet
from everest.opname.reversal import PEMBALIKAN, closed_problem, nota_candidates, reversed_already
from everest.opname.workflow import REVERSE_OPNAME
from everest.store.reversals import Request
from everest.store.unit_of_work import UnitOfWork
from everest.words import say
from everest.workflow import engine

MAX_REASON = 500
"""Characters of audit_log.reason; a longer reason is refused, not cut."""


@dataclass(frozen=True)
class Requested:
    """A reversal on its way: its own document and job, and the posting that it reverses. is_new: False when the same
    person had asked for it with the same words before (a second click); then nothing was written."""

    workflow_id: int
    shadow_id: int
    dag_run_id: str
    transaksi_id: int
    nomer_nota: str
    membalik_nota: str
    membalik_id: int
    is_new: bool


def request(tx: UnitOfWork, nota: str, who: str, reason: str) -> Requested:
    """Sends the reversal of the posted document `nota` (or '#job') on its way; the caller commits.

    who: whoever is logged in. Raises DocumentMissing; Conflict when it is not posted, is a reversal, is reversed
    already or has a reversal on its way; Forbidden for one's own document; DocumentRefused for an empty reason or
    (423) while the present month is closed.
    """
    reason = _reason(reason)
    original = _posting(tx, nota)
    tx.reversals.lock_namesakes(original.nomer_nota)
    earlier = tx.reversals.requests(original.id)
    if (again := _again(tx, original, _open(earlier), who, reason)) is not None:
        return again
    _check(tx, original, _open(earlier), who)
    nomer_nota = next(one for one in nota_candidates(original.nomer_nota) if not tx.reversals.nota_is_taken(one))
    warehouse = tx.reversals.warehouse_of(original.transaksi_id)
    transaksi_id = next_number(tx.conn, nomer_nota, PEMBALIKAN, warehouse)
    payload = {
        "transaksi_id": transaksi_id,
        "nomer_nota": nomer_nota,
        "posting_id": original.id,
        "alasan": reason,
        "oleh": who,
    }
    job = engine.dispatch(tx, REVERSE_OPNAME, payload, _next_key(original, earlier), transaksi_id, nomer_nota)
    audit(
        tx.conn,
        actor=who,
        action="reverse",
        transaksi_id=original.transaksi_id,
        nomer_nota=original.nomer_nota,
        shadow_id=job.shadow_id,
        workflow_id=job.workflow_id,
        reason=reason,
        before={"posting_id": original.id, "total_debet": original.total_debet},
        after={"transaksi_id": transaksi_id, "nomer_nota": nomer_nota},
    )
    return Requested(
        job.workflow_id,
        job.shadow_id,
        job.dag_run_id,
        transaksi_id,
        nomer_nota,
        original.nomer_nota,
        original.id,
        is_new=True,
    )


def objection(tx: UnitOfWork, target: str, who: str) -> str | None:
    """Why `who` can't have the document of a nota (or '#job') reversed now, in the words of the refusal; None:
    `request` would send it on its way. Locks nothing."""
    try:
        original = _posting(tx, target)
        _check(tx, original, _open(tx.reversals.requests(original.id)), who)
    except (Conflict, DocumentMissing, DocumentRefused, Forbidden) as refusal:
        return refusal.message
    return None


def standing(tx: UnitOfWork, posting_id: int) -> Request | None:
    """The reversal of a posting that somebody asked for and nobody cancelled, wherever it is by now."""
    return _open(tx.reversals.requests(posting_id))


def _open(requests: list[Request]) -> Request | None:
    return next((one for one in requests if one.status != "cancelled"), None)


def _check(tx: UnitOfWork, original: PostingSet, open_one: Request | None, who: str) -> None:
    """Everything that refuses a new reversal but its reason. Raises Conflict, Forbidden, DocumentRefused 423."""
    _refuse_reversed(tx, original)
    _refuse_second(original, open_one)
    _refuse_own(tx, original, who)
    instant = wib(tx.now).replace(microsecond=0)
    if tx.books.closed_periods([period_of(instant)]):
        raise closed_problem(period_of(instant), instant)


def _reason(reason: str) -> str:
    text = reason.strip()
    if not text or len(text) > MAX_REASON:
        wrong = say("id", "period.long_reason", most=MAX_REASON) if text else say("id", "reversal.no_reason")
        raise DocumentRefused(wrong, [Problem(None, "alasan", wrong)])
    return text


def _posting(tx: UnitOfWork, target: str) -> PostingSet:
    """The posting that `target` means. Of several documents of one nota at most one is posted."""
    jobs = lookup.find_jobs(tx.conn, target)
    posted = [job.posting_id for job in jobs if job.posting_id is not None]
    if not posted:
        job = jobs[-1]
        if job.workflow == REVERSE_OPNAME.name:
            raise Conflict(say("id", "reversal.of_reversal", nota=job.nomer_nota))
        raise Conflict(say("id", "reversal.not_posted", nota=job.nomer_nota or target, state=job.worker_status))
    original = tx.reversals.posting(posted[0])
    if original is None:
        raise DocumentMissing(say("id", "reversal.no_posting", posting=posted[0]))
    if original.jenis == PEMBALIKAN:
        raise Conflict(say("id", "reversal.of_posted_reversal", nota=original.nomer_nota))
    return original


def _refuse_reversed(tx: UnitOfWork, original: PostingSet) -> None:
    done = tx.reversals.reversal_of(original.id)
    if done is not None:
        raise Conflict(reversed_already(original, done))


def _refuse_second(original: PostingSet, one: Request | None) -> None:
    """While another reversal stands."""
    if one is None:
        return
    about = {"nota": original.nomer_nota, "reversal": one.nomer_nota, "job": one.shadow_id}
    if one.status == "failed":
        raise Conflict(say("id", "reversal.failed", code=one.error_code, **about))
    raise Conflict(say("id", "reversal.under_way", state=one.worker_status, **about))


def _again(tx: UnitOfWork, original: PostingSet, one: Request | None, who: str, reason: str) -> Requested | None:
    """The answer to a second click: the same person, the same words, and the reversal still on its way."""
    _refuse_reversed(tx, original)
    if one is None or one.status == "failed" or (one.oleh, one.alasan) != (who, reason):
        return None
    return Requested(
        one.workflow_id,
        one.shadow_id,
        one.dag_run_id,
        one.transaksi_id,
        one.nomer_nota,
        original.nomer_nota,
        original.id,
        is_new=False,
    )


def _refuse_own(tx: UnitOfWork, original: PostingSet, who: str) -> None:
    """Four eyes: nobody takes their own document back alone, unless the site allows it. Whose it is, is the same as
    where a person decides about it."""
    header = tx.books.document(original.transaksi_id)
    own = own_people(header, tx.books.correctors(original.transaksi_id)) if header else ()
    theirs = next((name for name in own if people.is_same(name, who)), None)
    if tx.settings.allow_self_approval or theirs is None:
        return
    raise Forbidden(say("id", "reversal.own", nota=original.nomer_nota, who=theirs))


def _next_key(original: PostingSet, earlier: list[Request]) -> str:
    used = [int(one.idempotency_key.rpartition("-")[2]) for one in earlier]
    return f"{original.id}-{max(used, default=0) + 1}"
