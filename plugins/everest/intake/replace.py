"""Corrects a document that FAILED and was not posted: its lines and header are replaced, the old ones are kept.

One transaction under the locks of the state protocol: header row first, so that no step reads half a correction; then
the run row, so that nobody starts it meanwhile. The document keeps its number, its nota and whoever submitted it. It
is authorised anew: on the command line whoever is logged in vouches for it, on the pages another person does
(`corrections`). What was authorised before is not what will be posted.

A correction is stored and no more, unless asked to rerun: whoever corrects three documents starts them when all three
are right. A wrong nota is not corrected: drop the document and submit it under the right one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from everest.errors import Conflict, DocumentMissing, DocumentRefused, Problem
from everest.intake.lookup import answer_in, errors_in
from everest.intake.submission import Authority, Submission
from everest.intake.submit import audit, insert_lines, line_chunks, naive, row_zone, snapshot_ahead
from everest.opname.count import OPNAME
from everest.opname.document import LINE_COLUMNS, Header, input_hash, wib, with_header_warehouse
from everest.opname.workflow import POST_OPNAME
from everest.store import json_rows
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.words import Said, heard, say
from everest.workflow.records import Run

_QUERIES = load_queries("intake")
_ROWS = load_queries("intake", as_tuples=True)

AT_WORK = frozenset({"PENDING", "PROCESSING", "WAITING"})


@dataclass(frozen=True)
class Replaced:
    """The correction is stored. snapshot_at: when the book quantities that it stands for were frozen (aware), the
    document's own where the correction gave none (`keeps_snapshot`). rerun_as: the DAG run that was announced for it,
    None when no rerun was asked for."""

    shadow_id: int
    transaksi_id: int
    nomer_nota: str
    lines: int
    replaced_lines: int
    snapshot_at: datetime
    keeps_snapshot: bool
    rerun_as: str | None


def replace(
    tx: UnitOfWork, submission: Submission, authority: Authority, reason: str | None = None, rerun: bool = False
) -> Replaced:
    """Replaces the document that has this transaksi_id, else the one FAILED document of this nota.

    Header fields that the submission does not give stay as they are. Raises DocumentMissing when there is none,
    Conflict when it is posted, at work, cancelled or not the only one, DocumentRefused for a snapshot in the future.
    The caller commits.
    """
    chunks = list(line_chunks(submission))
    transaksi_id = submission.transaksi_id or only_failed(tx, submission.nomer_nota)
    header = tx.books.lock_document(transaksi_id)
    if header is None:
        raise DocumentMissing(say("en", "refused.nothing_to_replace", transaksi=transaksi_id))
    if header.nomer_nota != submission.nomer_nota:
        told = {"transaksi": transaksi_id, "nota": header.nomer_nota, "other": submission.nomer_nota}
        raise Conflict(say("en", "refused.other_nota", **told))
    if submission.snapshot_at is not None and submission.snapshot_at > tx.now:
        problem = Problem(None, "snapshot_at", snapshot_ahead(submission.snapshot_at))
        raise DocumentRefused(say("id", "refused.document", n=1), [problem])
    _refuse_posted(tx, header)
    run, job = _locked_failed_job(tx, header)
    old_lines = list(_ROWS.lines_of(tx.conn, header_id=header.header_id))
    _keep(tx, header, run, job, old_lines)
    before, after = _correct_header(tx, header, submission, authority)
    _QUERIES.delete_lines(tx.conn, header_id=header.header_id)
    insert_lines(tx.conn, header.header_id, chunks)
    audit(
        tx.conn,
        actor=authority.submitted_by,
        action="replace",
        transaksi_id=transaksi_id,
        nomer_nota=header.nomer_nota,
        shadow_id=job["id"],
        workflow_id=run.id if run else None,
        reason=reason,
        before={**before, "baris": len(old_lines)},
        after={**after, "baris": len(submission.lines)},
    )
    rerun_as = tx.runs.rerun(job["id"], authority.submitted_by, reason) if rerun else None
    return Replaced(
        shadow_id=job["id"],
        transaksi_id=transaksi_id,
        nomer_nota=header.nomer_nota,
        lines=len(submission.lines),
        replaced_lines=len(old_lines),
        snapshot_at=submission.snapshot_at or header.snapshot_at,
        keeps_snapshot=submission.snapshot_at is None,
        rerun_as=rerun_as,
    )


def only_failed(tx: UnitOfWork, nomer_nota: str) -> int:
    """transaksi_id of the document of a nota that a correction can mean. Raises DocumentMissing, Conflict."""
    documents = list(_QUERIES.documents_of_nota(tx.conn, nomer_nota=nomer_nota))
    if not documents:
        raise DocumentMissing(say("en", "refused.never_submitted", nota=nomer_nota))
    failed = [row["transaksi_id"] for row in documents if row["is_failed"] and not row["is_posted"]]
    if len(failed) > 1:
        numbers = ", ".join(map(str, failed))
        raise Conflict(say("en", "refused.several_failed", nota=nomer_nota, numbers=numbers))
    # Whichever it is, the checks under its lock say why it cannot be replaced.
    return int(failed[0] if failed else documents[-1]["transaksi_id"])


def _refuse_posted(tx: UnitOfWork, header: Header) -> None:
    posted = tx.books.posting_of(header.nomer_nota, header.transaksi_id)
    if posted is None:
        return
    if posted.transaksi_id == header.transaksi_id:
        raise Conflict(say("en", "refused.posted", nota=header.nomer_nota, posting=posted.id))
    told = {"nota": header.nomer_nota, "transaksi": posted.transaksi_id, "posting": posted.id}
    raise Conflict(say("en", "refused.posted_elsewhere", **told))


def _locked_failed_job(tx: UnitOfWork, header: Header) -> tuple[Run | None, dict[str, Any]]:
    """The run (None: a foreign job that never had one) and the job to run again. Raises Conflict unless it FAILED."""
    run_id = tx.runs.find(POST_OPNAME.name, str(header.transaksi_id))
    run = None if run_id is None else tx.runs.lock(run_id)
    jobs = list(_QUERIES.lock_jobs(tx.conn, transaksi_id=header.transaksi_id))
    failed = [job for job in jobs if job["worker_status"] == "FAILED"]
    carrier = [job for job in failed if run is not None and job["id"] == run.carrier_shadow_id]
    if run is not None and run.compensation:
        raise Conflict(say("en", "refused.compensated", nota=header.nomer_nota))
    if any(job["worker_status"] in AT_WORK for job in jobs) or (run is not None and run.status != "failed"):
        status = run.status if run else next(job for job in jobs if job["worker_status"] in AT_WORK)["worker_status"]
        raise Conflict(_not_failed(header, status))
    if not failed:
        raise Conflict(_not_failed(header, jobs[-1]["worker_status"] if jobs else say("en", "refused.without_job")))
    return run, (carrier or failed)[-1]


def _not_failed(header: Header, status: str) -> Said:
    return say("en", "refused.not_failed", nota=header.nomer_nota, status=status)


def _keep(
    tx: UnitOfWork, header: Header, run: Run | None, job: dict[str, Any], old_lines: list[tuple[Any, ...]]
) -> None:
    """The old lines and what was wrong with them, in pieces that fit a packet."""
    detail = answer_in(job["response"]) if run is None else run.error or {}
    problems = list(Problem.all_of(errors_in(detail)))
    problems = problems or [Problem(None, "", heard(str(detail.get("message", "")), detail.get("said")))]
    old_hash = _old_hash(tx, header)
    named = [dict(zip(LINE_COLUMNS, row, strict=True)) for row in old_lines]
    for number, piece in enumerate([list(some) for some, _ in json_rows.pieces(named)] or [[]]):
        tx.books.record_attempt(
            header.transaksi_id,
            run.n if run else (job["n"] or 1),
            job["dag_run_id"] or "",
            "REPLACED",
            job["error_code"],
            old_hash,
            problems if number == 0 else (),
            piece,
        )


def _old_hash(tx: UnitOfWork, header: Header) -> str | None:
    try:
        return input_hash(header, with_header_warehouse(header, tx.books.lines(header)), OPNAME)
    except ValueError:
        return None  # neither authorised nor dated: it never had one


def _correct_header(
    tx: UnitOfWork, header: Header, submission: Submission, authority: Authority
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns before and after, as people read them. Instants are written in the zone of the row, so that one row never
    holds two."""
    before = _QUERIES.header_as_written(tx.conn, header_id=header.header_id)
    zone = row_zone(before["zona_waktu"], tx.settings)
    given = {
        "gudang_kode": submission.gudang_kode,
        "tanggal_opname": submission.tanggal_opname,
        "tanggal_posting": submission.tanggal_posting,
        "snapshot_at": naive(submission.snapshot_at, zone),
    }
    after = {name: before[name] if value is None else value for name, value in given.items()}
    after |= {
        "otorisasi_level": authority.level,
        "diotorisasi_oleh": authority.authorised_by,
        "diotorisasi_at": naive(tx.now, zone) if authority.authorised_by else None,
    }
    _QUERIES.correct_header(tx.conn, header_id=header.header_id, **after)
    return {name: _told(before[name], zone) for name in after}, {name: _told(after[name], zone) for name in after}


def _told(value: Any, zone: tzinfo) -> Any:
    """What the audit trail keeps of a column: nobody who reads it knows the row's zone."""
    if not isinstance(value, datetime):
        return value
    try:
        return f"{wib(value.replace(tzinfo=zone)):%Y-%m-%d %H:%M:%S} WIB"
    except OverflowError:  # another program's year 9999
        return value
