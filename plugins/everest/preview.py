"""What posting a document would do, found by doing it: its steps run in one transaction that is rolled back.

Between submitting and posting. There is no second computation that could disagree with the posting: the journal and
the stock card shown here were written by the steps and read back before the rollback. Nothing stays, not an attempt,
not a status; numbers that the tables' own counters gave out meanwhile are not given out again.

While it runs it holds the document's and its warehouses' locks as a posting does, so a posting of the same warehouse
waits for it (seconds for the largest documents); it waits itself for LOCK_WAIT_SECONDS at most.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from everest.errors import Conflict, DocumentRefused, Problem
from everest.intake import lookup
from everest.intake.lookup import Job
from everest.opname import steps
from everest.opname.reversal import reverse_posting
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.store.database import LOCK_WAIT_SECONDS as USUAL_LOCK_WAIT_SECONDS
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.workflow.questions import Question, decision_of
from everest.workflow.ticket import Decision

_QUERIES = load_queries("preview")

LOCK_WAIT_SECONDS = 3
MAX_PASSES = 5
"""Of the three steps. Under one lock the document cannot change, so one pass is enough; a bug must not loop."""

NO_RUN = "preview"
"""Stands where a posting names its DAG run; never committed."""

WAITS = 202
"""The code of a document that a person has to decide about."""


class Outcome(StrEnum):
    """What a posting would end as."""

    POSTS = "posts"
    NEEDS_DECISION = "needs_decision"
    """A person has to decide first; the journal is what an approval would post, where that can be computed."""
    REFUSED = "refused"
    POSTED_ALREADY = "posted_already"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class JournalLine:
    """A journal row, in rupiah; one side is zero."""

    urutan: int
    kode_akun: str
    nama_akun: str
    keterangan: str
    debet: Decimal
    kredit: Decimal


@dataclass(frozen=True)
class CardLine:
    """A stock movement: quantities in the item's unit, nilai signed, in rupiah."""

    kode_barang: str
    lot: str
    gudang_kode: str
    masuk: Decimal
    keluar: Decimal
    harga_pokok: Decimal
    nilai: Decimal


@dataclass(frozen=True)
class Preview:
    """What posting `nomer_nota` would do now.

    code, message: as the document's response would have them (Indonesian). problems: what refuses it; reasons: what a
    person has to decide; warnings: what is said and posted all the same. tanggal_wib: the posting instant, naive WIB,
    None where nothing is posted. journal, stock_card: what would stand in the books, or stands there already.
    rows_changed: rows of the books that would be added or taken out (posting set, journal, stock card).
    """

    nomer_nota: str
    transaksi_id: int
    shadow_id: int
    worker_status: str
    outcome: Outcome
    code: int
    message: str
    problems: tuple[Problem, ...] = ()
    reasons: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    posting_id: int | None = None
    tanggal_wib: datetime | None = None
    journal: tuple[JournalLine, ...] = ()
    stock_card: tuple[CardLine, ...] = ()
    rows_changed: int = 0

    @property
    def total_debet(self) -> Decimal:
        return sum((row.debet for row in self.journal), Decimal("0.00"))

    @property
    def total_kredit(self) -> Decimal:
        return sum((row.kredit for row in self.journal), Decimal("0.00"))

    def as_json(self) -> dict[str, Any]:
        """Everything by its name: decimals as text, the posting instant as WIB text."""
        plain = {
            **vars(self),
            "problems": [problem.as_json() for problem in self.problems],
            "reasons": [reason.as_json() for reason in self.reasons],
            "warnings": list(self.warnings),
            "tanggal_wib": None if self.tanggal_wib is None else self.tanggal_wib.isoformat(sep=" "),
            "journal": [_texts(row) for row in self.journal],
            "stock_card": [_texts(row) for row in self.stock_card],
            "total_debet": str(self.total_debet),
            "total_kredit": str(self.total_kredit),
            "baris_selisih": len(self.stock_card),
        }
        return {"status": "success" if self.outcome is not Outcome.REFUSED else "error", **plain}


@dataclass(frozen=True)
class _Rehearsal:
    """What the steps see instead of a task's context (`everest.opname.steps.Step`)."""

    tx: UnitOfWork
    now: datetime
    shadow_id: int
    dag_run_id: str
    n: int
    workflow_id: int | None
    decision: Decision | None = None


class _RollBack(Exception):
    """Leaves the transaction; whatever the steps wrote goes with it."""


def preview(open_transaction: Callable[[], AbstractContextManager[UnitOfWork]], target: str) -> Preview:
    """What posting the document of a nota (or `#JOB`) would do now; nothing is changed.

    Raises DocumentMissing when there is none, Conflict when `target` means several documents or a job that posts no
    count, TransientDatabaseError when a posting at work holds the document for longer than LOCK_WAIT_SECONDS.
    """
    found: Preview | None = None
    try:
        with open_transaction() as tx:
            _QUERIES.bound_lock_waits(tx.conn, seconds=LOCK_WAIT_SECONDS)
            try:
                found = _found(tx, target)
            finally:
                _QUERIES.bound_lock_waits(tx.conn, seconds=USUAL_LOCK_WAIT_SECONDS)
            raise _RollBack
    except _RollBack:
        pass
    assert found is not None
    return found


def _found(tx: UnitOfWork, target: str) -> Preview:
    job = lookup.find_job(tx.conn, target, frozenset({"PENDING", "PROCESSING", "WAITING", "FAILED"}))
    if job.transaksi_id is None or job.workflow not in (None, POST_OPNAME.name, REVERSE_OPNAME.name):
        raise Conflict(f"job #{job.shadow_id} posts no stock count; a preview is of a document")
    if job.worker_status == "CANCELLED":
        return _answer(job, Outcome.CANCELLED, 499, "dokumen dibatalkan dan tidak akan diposting; 0 baris akan berubah")
    try:
        return _reversal(tx, job) if job.membalik_id is not None else _rehearsed(tx, job)
    except DocumentRefused as refusal:
        return _answer(job, Outcome.REFUSED, refusal.code, refusal.message, problems=refusal.problems)


def _rehearsed(tx: UnitOfWork, job: Job) -> Preview:
    run = None if job.workflow_id is None else tx.runs.get(job.workflow_id)
    given = None if run is None else run.state.get(steps.APPROVAL)
    # An answer that no task has read yet is one that posting would find; a failed document asks anew.
    answer_given = None if run is None or job.worker_status == "FAILED" else decision_of(run, tx.now)
    rehearsal = _Rehearsal(tx, tx.now, job.shadow_id, NO_RUN, job.n or 1, job.workflow_id, answer_given)
    state: dict[str, Any] = {"transaksi_id": job.transaksi_id, steps.APPROVAL: given}
    asked: Question | None = None
    before = tx.books.posting_of(job.nomer_nota or "", job.transaksi_id or 0)
    for _ in range(MAX_PASSES):
        computed = steps.compute_variance(dict(state), rehearsal)
        asked = Question.of(steps.compute_variance.__name__, computed)
        if asked is not None:
            yes = Decision("approved", NO_RUN, tx.now, None, asked.evidence, 0)
            computed = steps.compute_variance(dict(state), replace(rehearsal, decision=yes))
        state |= computed
        state |= steps.clean_duplicate_notas(dict(state), rehearsal)
        outcome = steps.post_jurnal(dict(state), rehearsal)
        if "_next_step" not in outcome:
            break
    else:
        raise Conflict(f"nota {job.nomer_nota} keeps changing while it is looked at; ask again")
    answer = outcome["_response"]
    posting_id = outcome["posting_id"]
    if before is not None or posting_id is None:
        message = f"{answer['message']}; 0 baris akan berubah"
        return _with_books(tx, _answer(job, Outcome.POSTED_ALREADY, 200, message), posting_id)
    posts = _answer(job, Outcome.POSTS, 200, f"akan {answer['message']}")
    posts = _with_books(tx, replace(posts, warnings=tuple(state.get("peringatan", ()))), posting_id)
    replaced = len(state.get("sisa_jurnal", ())) + len(state.get("sisa_kartu_stok", ()))
    changed = 1 + len(posts.journal) + len(posts.stock_card) + replaced
    posts = replace(posts, posting_id=None, rows_changed=changed)
    if asked is None:
        return posts
    reasons = tuple(Problem(**reason) for reason in asked.reasons)
    return replace(posts, outcome=Outcome.NEEDS_DECISION, code=WAITS, message=asked.message, reasons=reasons)


def _reversal(tx: UnitOfWork, job: Job) -> Preview:
    """The one step of a reversal, on what was asked for."""
    run = None if job.workflow_id is None else tx.runs.get(job.workflow_id)
    state = {"transaksi_id": job.transaksi_id, "nomer_nota": job.nomer_nota, "posting_id": job.membalik_id}
    state |= {"alasan": ""} if run is None else run.payload
    rehearsal = _Rehearsal(tx, tx.now, job.shadow_id, NO_RUN, job.n or 1, job.workflow_id)
    outcome = reverse_posting(state, rehearsal)
    message = outcome["_response"]["message"]
    if job.posting_id is not None:
        done = _answer(job, Outcome.POSTED_ALREADY, 200, f"{message}; 0 baris akan berubah")
        return _with_books(tx, done, job.posting_id)
    posts = _with_books(tx, _answer(job, Outcome.POSTS, 200, f"akan {message}"), outcome["posting_id"])
    return replace(posts, posting_id=None, rows_changed=1 + len(posts.journal) + len(posts.stock_card))


def _answer(
    job: Job,
    outcome: Outcome,
    code: int,
    message: str,
    problems: tuple[Problem, ...] = (),
    reasons: tuple[Problem, ...] = (),
) -> Preview:
    return Preview(
        nomer_nota=job.nomer_nota or "",
        transaksi_id=job.transaksi_id or 0,
        shadow_id=job.shadow_id,
        worker_status=job.worker_status,
        outcome=outcome,
        code=code,
        message=message,
        problems=problems,
        reasons=reasons,
    )


def _with_books(tx: UnitOfWork, answer: Preview, posting_id: int | None) -> Preview:
    """With what stands in the books for this posting, as the transaction sees it."""
    if posting_id is None:
        return answer
    journal = list(_QUERIES.journal_of_posting(tx.conn, posting_id=posting_id))
    card = list(_QUERIES.stock_card_of_posting(tx.conn, posting_id=posting_id))
    dated = [row.pop("tanggal_wib") for row in [*journal, *card]]
    return replace(
        answer,
        posting_id=posting_id,
        tanggal_wib=dated[0] if dated else None,
        journal=tuple(JournalLine(**row) for row in journal),
        stock_card=tuple(CardLine(**row) for row in card),
    )


def _texts(row: JournalLine | CardLine) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in vars(row).items()}
