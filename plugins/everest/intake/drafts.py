"""Drafts: what a person submits on the pages stays one until another person authorises it; only then is there a job.

The first authorisation is the submission itself (level 1), the second one makes the document postable (level 2). Level
and names come from whoever is logged in. A draft lies in the staging tables without job and run, so nothing picks it
up; authorising it writes run, job and message in the same transaction.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from everest import people
from everest.errors import Conflict, DocumentMissing, DocumentRefused, Forbidden
from everest.intake.numbers import next_number
from everest.intake.submission import Authority, Submission
from everest.intake.submit import (
    AlreadySubmitted,
    Submitted,
    Transactions,
    audit,
    find_earlier,
    insert_lines,
    line_chunks,
    naive,
    until_won,
)
from everest.opname.count import OPNAME
from everest.opname.header import Header
from everest.opname.rules import MIN_AUTHORISATION_LEVEL
from everest.opname.workflow import POST_OPNAME
from everest.store.database import last_insert_id, load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.words import say
from everest.workflow import engine

QUERIES = load_queries("drafts")

FIRST_LEVEL = 1


def authorised(header: Header, who: str, now: datetime) -> Header:
    """As it would stand if this person authorised it now. Who that is decides nothing about what is posted."""
    level = MIN_AUTHORISATION_LEVEL
    return replace(header, otorisasi_level=level, diotorisasi_oleh=who[:100], diotorisasi_at=now)


def authority_of(who: str) -> Authority:
    """With whom a draft is checked: as if somebody authorised it now."""
    return Authority(who, who, MIN_AUTHORISATION_LEVEL)


def keep(open_transaction: Transactions, submission: Submission, who: str) -> int:
    """Stores a draft and returns its transaksi_id; the same submission again is the same draft.

    Raises Conflict when this token brought other content before, TransientDatabaseError when the database stays away.
    """
    return until_won(open_transaction, lambda tx: _keep(tx, submission, who))


def _keep(tx: UnitOfWork, submission: Submission, who: str) -> int:
    earlier = find_earlier(tx.conn, submission, tx.settings)
    if isinstance(earlier, AlreadySubmitted):
        if not earlier.same_content:
            raise Conflict(say("id", "refused.sent_otherwise", nota=earlier.nomer_nota))
        return earlier.transaksi_id
    if submission.gudang_kode is None or submission.tanggal_opname is None or submission.transaksi_id is not None:
        raise DocumentRefused(say("id", "refused.draft_header"))
    chunks = list(line_chunks(submission))
    transaksi_id = next_number(tx.conn, submission.nomer_nota, OPNAME, submission.gudang_kode)
    QUERIES.insert_draft(
        tx.conn,
        transaksi_id=transaksi_id,
        nomer_nota=submission.nomer_nota,
        gudang_kode=submission.gudang_kode,
        tanggal_opname=submission.tanggal_opname,
        tanggal_posting=submission.tanggal_posting,
        snapshot_at=naive(submission.snapshot_at, UTC),
        dibuat_oleh=who,
        submit_token=submission.token,
    )
    insert_lines(tx.conn, last_insert_id(tx.conn), chunks)
    after = {"baris": len(submission.lines), "otorisasi_level": FIRST_LEVEL}
    _audit(tx, "draft", transaksi_id, submission.nomer_nota, who, after)
    return transaksi_id


def authorise(tx: UnitOfWork, transaksi_id: int, who: str) -> Submitted:
    """The second authorisation: the draft becomes a document on its way to the books; the caller commits.

    Raises DocumentMissing, Conflict when it waits no more or its nota was posted meanwhile, Forbidden for whoever
    submitted it.
    """
    draft = _waiting(tx, transaksi_id)
    if not tx.settings.allow_self_approval and people.is_same(draft["dibuat_oleh"], who):
        raise Forbidden(say("id", "refused.own_draft", who=who, nota=draft["nomer_nota"]))
    posted = tx.books.posting_of(draft["nomer_nota"], transaksi_id)
    if posted is not None:
        told = {"nota": posted.nomer_nota, "posting": posted.id, "transaksi": posted.transaksi_id}
        raise Conflict(say("id", "refused.draft_posted", **told))
    QUERIES.authorise_draft(
        tx.conn, header_id=draft["id"], otorisasi_level=MIN_AUTHORISATION_LEVEL, diotorisasi_oleh=who[:100]
    )
    job = engine.dispatch(tx, POST_OPNAME, {"transaksi_id": transaksi_id}, None, transaksi_id, draft["nomer_nota"])
    after = {"otorisasi_level": MIN_AUTHORISATION_LEVEL, "shadow_id": job.shadow_id}
    _audit(tx, "authorise", transaksi_id, draft["nomer_nota"], who, after)
    return Submitted(job.shadow_id, transaksi_id, draft["nomer_nota"], 0)


def withdraw(tx: UnitOfWork, transaksi_id: int, who: str, reason: str) -> None:
    """It is never posted; its rows stay. Raises DocumentMissing, Conflict, DocumentRefused without a reason."""
    if not reason.strip():
        raise DocumentRefused(say("id", "refused.reason"))
    draft = _waiting(tx, transaksi_id)
    QUERIES.withdraw_draft(tx.conn, header_id=draft["id"])
    _audit(tx, "discard", transaksi_id, draft["nomer_nota"], who, {"otorisasi_level": 0}, reason.strip())


def _waiting(tx: UnitOfWork, transaksi_id: int) -> dict[str, Any]:
    draft: dict[str, Any] | None = QUERIES.lock_draft(tx.conn, transaksi_id=transaksi_id)
    if draft is None:
        raise DocumentMissing(say("id", "refused.no_draft", transaksi=transaksi_id))
    if draft["otorisasi_level"] != FIRST_LEVEL or draft["has_job"]:
        raise Conflict(say("id", "refused.not_waiting", nota=draft["nomer_nota"]))
    return draft


def _audit(
    tx: UnitOfWork,
    action: str,
    transaksi_id: int,
    nota: str,
    who: str,
    after: dict[str, Any],
    reason: str | None = None,
) -> None:
    audit(
        tx.conn,
        actor=who,
        action=action,
        transaksi_id=transaksi_id,
        nomer_nota=nota,
        shadow_id=None,
        workflow_id=None,
        reason=reason,
        after=after,
    )
