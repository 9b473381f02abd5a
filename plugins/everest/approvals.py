"""Documents that wait for a person: which ones and why, and the answer that a person gives.

Between a posting that found a surprise (late movements, limits) and the one that goes on. Commands and pages call these
functions on a transaction of theirs; the answer is the workflow layer's (`control.approve`), which wakes the document
in the same transaction, audited with what the person was shown. What an answer means, the posting step decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from everest import bootstrap, people
from everest.errors import Conflict, DocumentMissing, DocumentRefused, Forbidden, Problem
from everest.intake import lookup
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.store.workflow_views import plain
from everest.words import Said, say
from everest.workflow import control, deployment, pointer, questions
from everest.workflow.records import Run

_QUERIES = load_queries("approvals")

MAX_PENDING = 1_000
MAX_REASON = 500
"""Characters; the column of the audit log."""
MAX_NAME = 100


@dataclass(frozen=True)
class Pending:
    """A document that waits for a decision.

    sequence: the number of the question; name it in the answer, so that only what was seen is answered. reasons: why,
    by line. details: the evidence, with nilai_lebih, nilai_kurang, batas_dokumen, batas_baris (rupiah), jumlah_mutasi
    and mutasi (id, baris, kode_barang, lot, gudang_kode, nomer_nota, sumber, tanggal_wib, created_at, masuk, keluar).
    not_by: who may not decide. Instants are aware UTC; until None = no limit. batas_dokumen_kini, batas_baris_kini: the
    limits (rupiah) of the warehouse as they are now, None = no limit.
    """

    shadow_id: int
    transaksi_id: int
    nomer_nota: str
    workflow_id: int
    gudang_kode: str | None
    tanggal_opname: date | None
    dibuat_oleh: str | None
    diotorisasi_oleh: str | None
    batas_dokumen_kini: Decimal | None
    batas_baris_kini: Decimal | None
    is_paused: bool
    step: str
    sequence: int
    asked_at: datetime
    until: datetime | None
    message: str
    reasons: tuple[Problem, ...]
    evidence: str
    details: dict[str, Any]
    not_by: tuple[str, ...]

    @property
    def nilai(self) -> Decimal:
        """Surplus and shortage together, in rupiah."""
        return Decimal(self.details["nilai_lebih"]) + Decimal(self.details["nilai_kurang"])

    @property
    def was_raised(self) -> bool:
        """Whether a limit that the document was found to exceed is higher by now, or gone. That decides nothing: a
        question once asked is a person's (decision 0061)."""
        asked_and_now = (
            (self.details["batas_dokumen"], self.batas_dokumen_kini),
            (self.details["batas_baris"], self.batas_baris_kini),
        )
        return any(asked is not None and (now is None or now > Decimal(asked)) for asked, now in asked_and_now)

    def bars(self, who: str) -> bool:
        """Whether this person may not decide about it."""
        return people.is_among(who, self.not_by)

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = plain(self)
        return answer


@dataclass(frozen=True)
class Answered:
    """An answer that was taken; the document goes on by itself. sequence, evidence: what was answered."""

    shadow_id: int
    nomer_nota: str
    workflow_id: int
    outcome: Literal["approved", "rejected"]
    by: str
    sequence: int
    evidence: str


def pending(tx: UnitOfWork) -> list[Pending]:
    """The documents with an open question, the oldest first. What was answered already, or waited too long, is not
    among them: nobody can decide it any more."""
    return page(tx, MAX_PENDING)[0]


def page(tx: UnitOfWork, size: int, after_id: int = 0) -> tuple[list[Pending], int | None]:
    """A page of them, and where the next one begins (None: this is the last). after_id: as the page before said."""
    rows = list(_QUERIES.waiting_documents(tx.conn, after_id=after_id, size=size + 1))
    found = [one for one in (_open(tx, row) for row in rows[:size]) if one is not None]
    return found, rows[size - 1]["workflow_id"] if len(rows) > size else None


def of_job(tx: UnitOfWork, shadow_id: int) -> Pending | None:
    """The open question of one document, None where nobody can decide anything about it."""
    row = _QUERIES.waiting_document(tx.conn, shadow_id=shadow_id)
    return None if row is None else _open(tx, row)


def _open(tx: UnitOfWork, row: dict[str, Any]) -> Pending | None:
    run = tx.runs.get(row["workflow_id"])
    return None if run is None or _why_closed(tx, run, row["nomer_nota"]) is not None else _pending(row, run)


def approve(tx: UnitOfWork, nota: str, who: str, reason: str, sequence: int | None = None) -> Answered:
    """Yes: the document posts as it is, if what it was asked about is still the same then.

    nota: or `#JOB`. who: the person, as logged in. sequence: the question that the person saw. Raises DocumentMissing;
    Conflict when the document waits for no decision, for another one than `sequence`, was decided already, or is one
    of several; Forbidden when this person may not decide; DocumentRefused without a name or a reason.
    """
    return _answer(tx, nota, who, reason, sequence, "approved")


def reject(tx: UnitOfWork, nota: str, who: str, reason: str, sequence: int | None = None) -> Answered:
    """No: the document fails with 403, who and why; running it again asks anew. Raises as `approve` does."""
    return _answer(tx, nota, who, reason, sequence, "rejected")


def objection(tx: UnitOfWork, nota: str, who: str) -> str | None:
    """Why `who` can't decide about this document now, in the words of the refusal; None: `approve` and `reject` would
    take an answer. Locks nothing."""
    job = lookup.find_job(tx.conn, nota, frozenset({"WAITING"}))
    named = job.nomer_nota or f"#{job.shadow_id}"
    run = None if job.workflow_id is None else tx.runs.get(job.workflow_id)
    if run is None:
        return _not_asked(named, job.worker_status)
    if (closed := _why_closed(tx, run, named)) is not None:
        return closed
    try:
        questions.check_may_answer(run.waiting or {}, who)
    except Forbidden as refusal:
        why: str = refusal.args[0]  # with its key, for the reader's language
        return why
    return None


def _answer(
    tx: UnitOfWork,
    nota: str,
    who: str,
    reason: str,
    sequence: int | None,
    outcome: Literal["approved", "rejected"],
) -> Answered:
    who, reason = _given("name_length", who, MAX_NAME), _given("reason_length", reason, MAX_REASON)
    job = lookup.find_job(tx.conn, nota, frozenset({"WAITING"}))
    named = job.nomer_nota or f"#{job.shadow_id}"
    if job.workflow_id is None:
        raise Conflict(_not_asked(named, job.worker_status))
    run = tx.runs.lock(job.workflow_id)
    closed = _why_closed(tx, run, named)
    if closed is not None:
        raise Conflict(closed)
    waiting = run.waiting or {}
    if sequence is not None and sequence != waiting["sequence"]:
        raise Conflict(say("id", "refused.other_question", nota=named, n=waiting["sequence"]))
    definition = deployment.of_run(bootstrap.deployed, run)
    if definition is None:
        raise DocumentMissing(say("en", "refused.not_deployed", workflow=run.workflow, version=run.version))
    act = control.approve if outcome == "approved" else control.reject
    act(tx, definition, run.id, who, reason, sequence=waiting["sequence"])
    about = (waiting["sequence"], waiting["evidence"])
    return Answered(job.shadow_id, named, run.id, outcome, who, *about)


def _given(key: str, text: str, longest: int) -> str:
    text = text.strip()
    if not 0 < len(text) <= longest:
        raise DocumentRefused(say("id", f"refused.{key}", most=longest))
    return text


def _not_asked(nota: str, state: str) -> Said:
    return say("id", "refused.no_question", nota=nota, state=state)


def _why_closed(tx: UnitOfWork, run: Run, nota: str) -> Said | None:
    """Why nobody can answer now, as a sentence; None when the question is open."""
    waiting = run.waiting
    if waiting is None or not questions.is_asked_here(run) or pointer.status_of_wait(run) != "waiting_for_signal":
        return say("id", "refused.no_question_in_run", nota=nota, state=run.status)
    decision = questions.decision_of(run, tx.now)
    if decision is None:
        return None
    if decision.outcome == "timeout":
        return say("id", "refused.question_late", nota=nota)
    return say("id", f"refused.question_{decision.outcome}", nota=nota, who=decision.by)


def _pending(row: dict[str, Any], run: Run) -> Pending:
    waiting = run.waiting or {}
    about = {name: value for name, value in row.items() if name != "worker_status"}
    return Pending(
        **about,
        is_paused=run.status == "paused",
        reasons=Problem.all_of(waiting["reasons"]),
        not_by=tuple(waiting["not_by"]),
        message=questions.message_of(waiting),
        **{name: waiting[name] for name in ("step", "sequence", "asked_at", "until", "evidence", "details")},
    )
