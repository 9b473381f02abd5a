"""A document through its steps without a trace, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from everest.errors import Conflict, DocumentMissing, DocumentRefused, Problem
from everest.intake import corrections, drafts, lookup
from everest.intake.lookup import Job
from everest.opname import steps
from everest.opname.header import Header
from everest.opname.journal import JournalRow
from everest.opname.reversal import reverse_posting
from everest.opname.stock_card import CardRow
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.preview.values import JournalLine, Outcome, Preview
from everest.store.database import load_queries
from everest.store.rehearsal import Rehearsal
from everest.store.unit_of_work import UnitOfWork
from everest.words import say, together
from everest.workflow.questions import Question, decision_of
from everest.workflow.ticket import Decision

_QUERIES = load_queries("preview")

MAX_PASSES = 5
"""Of the three steps. In one snapshot the document cannot change, so one pass is enough; a bug must not loop."""

NO_RUN = "preview"
"""Stands where a posting names its DAG run, and whoever answered; never stored."""

WAITS = 202
"""The code of a document that a person has to decide about."""

DRAFT = "DRAFT"
"""The status of what has no job yet."""


@dataclass(frozen=True)
class _Step:
    """What the steps see instead of a task's context (`everest.opname.ports.Step`)."""

    tx: Rehearsal
    now: datetime
    shadow_id: int
    dag_run_id: str
    n: int
    decision: Decision | None = None


@dataclass(frozen=True)
class _Asked:
    """The document that somebody asked about. given: the approval that its run holds; answer: one that no task has
    read yet."""

    nomer_nota: str
    transaksi_id: int
    shadow_id: int | None
    worker_status: str
    n: int = 1
    given: dict[str, Any] | None = None
    answer: Decision | None = None
    as_if: Header | None = None


def preview(tx: UnitOfWork, target: str) -> Preview:
    """What posting the document of a nota (or `#JOB`) would do now. `tx`: one snapshot (`Database.snapshot`).

    Lines that were corrected and wait for another person are judged as if that person authorised them at this moment.
    Raises DocumentMissing when there is none, Conflict when `target` means several documents or a job that posts no
    count.
    """
    job = lookup.find_job(tx.conn, target, frozenset({"PENDING", "PROCESSING", "WAITING", "FAILED"}))
    if job.transaksi_id is None or job.workflow not in (None, POST_OPNAME.name, REVERSE_OPNAME.name):
        raise Conflict(say("en", "refused.no_count", job=job.shadow_id))
    asked = _asked(tx, job, job.transaksi_id)
    if job.worker_status == "CANCELLED":
        return _answer(asked, Outcome.CANCELLED, 499, say("id", "foreseen.cancelled"))
    return _rehearsed(tx, asked, None if job.membalik_id is None else job)


def of_draft(tx: UnitOfWork, transaksi_id: int) -> Preview:
    """The same for a count without a job, as if a second person authorised it at this moment.

    Raises DocumentMissing; Conflict when it waits for no authorisation (any more).
    """
    header = Rehearsal(tx.conn, tx.settings).books.document(transaksi_id)
    if header is None:
        raise DocumentMissing(say("id", "refused.no_draft", transaksi=transaksi_id))
    if header.otorisasi_level != drafts.FIRST_LEVEL:
        raise Conflict(say("id", "refused.not_waiting", nota=header.nomer_nota))
    as_if = drafts.authorised(header, NO_RUN, tx.now)
    return _rehearsed(tx, _Asked(header.nomer_nota, transaksi_id, None, DRAFT, as_if=as_if))


def _rehearsed(tx: UnitOfWork, asked: _Asked, reversal: Job | None = None) -> Preview:
    """What its steps come to; what they refuse is an answer, too."""
    try:
        return _count(tx, asked) if reversal is None else _reversal(tx, asked, reversal)
    except DocumentRefused as refusal:
        return _answer(asked, Outcome.REFUSED, refusal.code, refusal.message, problems=refusal.problems)


def _asked(tx: UnitOfWork, job: Job, transaksi_id: int) -> _Asked:
    run = None if job.workflow_id is None else tx.runs.get(job.workflow_id)
    header = None
    if job.worker_status == "FAILED" and corrections.waiting(tx, transaksi_id) is not None:
        header = Rehearsal(tx.conn, tx.settings).books.document(transaksi_id)
    return _Asked(
        nomer_nota=job.nomer_nota or "",
        transaksi_id=transaksi_id,
        shadow_id=job.shadow_id,
        worker_status=job.worker_status,
        n=job.n or 1,
        given=None if run is None else run.state.get(steps.APPROVAL),
        # An answer that no task has read yet is one that posting would find; a failed document asks anew.
        answer=None if run is None or job.worker_status == "FAILED" else decision_of(run, tx.now),
        as_if=None if header is None else drafts.authorised(header, NO_RUN, tx.now),
    )


def _count(tx: UnitOfWork, asked: _Asked) -> Preview:
    """The three steps of a posting."""
    books = Rehearsal(tx.conn, tx.settings, asked.as_if)
    step = _Step(books, tx.now, asked.shadow_id or 0, NO_RUN, asked.n, asked.answer)
    state: dict[str, Any] = {"transaksi_id": asked.transaksi_id, steps.APPROVAL: asked.given}
    question: Question | None = None
    before = books.books.posting_of(asked.nomer_nota, asked.transaksi_id)
    for _ in range(MAX_PASSES):
        computed, question = _computed(steps.judge(dict(state), step), step)
        state |= computed
        state |= steps.clean_duplicate_notas(dict(state), step)
        outcome = steps.post_jurnal(dict(state), step)
        if "_next_step" not in outcome:
            break
    else:
        raise Conflict(say("en", "refused.keeps_changing", nota=asked.nomer_nota))
    message = outcome["_response"]["message"]
    if before is not None or outcome["posting_id"] is None:
        return _posted_already(tx, asked, message, outcome["posting_id"])
    posts = replace(_posts(tx, asked, message, books), warnings=tuple(state.get("peringatan", ())))
    if question is None:
        return posts
    reasons = Problem.all_of(question.reasons)
    return replace(posts, outcome=Outcome.NEEDS_DECISION, code=WAITS, message=question.message, reasons=reasons)


def _computed(judged: steps.Judged | dict[str, Any], step: _Step) -> tuple[dict[str, Any], Question | None]:
    """What the first step returns, and the question that it asks before; then it is answered with yes."""
    if not isinstance(judged, steps.Judged):
        return judged, None
    computed = judged.concluded(step.decision)
    question = Question.of(steps.compute_variance.__name__, computed)
    if question is None:
        return computed, None
    return judged.concluded(Decision("approved", NO_RUN, step.now, None, question.evidence, 0)), question


def _reversal(tx: UnitOfWork, asked: _Asked, job: Job) -> Preview:
    """The one step of a reversal, on what was asked for."""
    run = None if job.workflow_id is None else tx.runs.get(job.workflow_id)
    state = {"transaksi_id": job.transaksi_id, "nomer_nota": job.nomer_nota, "posting_id": job.membalik_id}
    state |= {"alasan": ""} if run is None else run.payload
    books = Rehearsal(tx.conn, tx.settings)
    outcome = reverse_posting(state, _Step(books, tx.now, job.shadow_id, NO_RUN, asked.n))
    message = outcome["_response"]["message"]
    if job.posting_id is not None:
        return _posted_already(tx, asked, message, job.posting_id)
    return _posts(tx, asked, message, books)


def _posts(tx: UnitOfWork, asked: _Asked, message: str, books: Rehearsal) -> Preview:
    """With what the steps have written."""
    written = books.written
    instant = written.instant if written.journal or written.stock_card else None
    answer = _answer(asked, Outcome.POSTS, 200, say("id", "foreseen.posts", what=message))
    answer = _with_rows(tx, answer, instant, written.journal, written.stock_card)
    changed = 1 + len(answer.journal) + len(answer.stock_card) + written.rows_replaced
    return replace(answer, rows_changed=changed)


def _posted_already(tx: UnitOfWork, asked: _Asked, message: str, posting_id: int | None) -> Preview:
    """With what stands in the books."""
    answer = _answer(asked, Outcome.POSTED_ALREADY, 200, together((message, say("id", "foreseen.no_change"))))
    if posting_id is None:
        return answer
    stored, instant = tx.reversals, _QUERIES.posted_at(tx.conn, posting_id=posting_id)
    answer = replace(answer, posting_id=posting_id)
    return _with_rows(tx, answer, instant, stored.journal(posting_id), stored.stock_card(posting_id))


def _answer(asked: _Asked, outcome: Outcome, code: int, message: str, problems: Sequence[Problem] = ()) -> Preview:
    return Preview(
        nomer_nota=asked.nomer_nota,
        transaksi_id=asked.transaksi_id,
        shadow_id=asked.shadow_id,
        worker_status=asked.worker_status,
        outcome=outcome,
        code=code,
        message=message,
        problems=tuple(problems),
        is_authorised_first=asked.as_if is not None,
    )


def _with_rows(
    tx: UnitOfWork, answer: Preview, instant: datetime | None, rows: Sequence[JournalRow], card: Sequence[CardRow]
) -> Preview:
    codes = sorted({row.kode_akun for row in rows})
    found = _QUERIES.account_names(tx.conn, codes=codes) if codes else ()
    names = {row["kode_akun"]: row["nama"] or "" for row in found}
    lines = tuple(JournalLine(**vars(row), nama_akun=names.get(row.kode_akun, "")) for row in rows)
    return replace(answer, tanggal_wib=instant, journal=lines, stock_card=tuple(card))
