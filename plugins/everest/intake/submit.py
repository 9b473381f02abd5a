"""A document becomes rows: header, lines, accounting document, run, job and the message to send, in ONE transaction.

No broker here: the relay publishes what the outbox holds, so a submit neither fails nor waits because of RabbitMQ.
The unique keys of the header decide between two senders; the later one is told what the first one got.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from everest.errors import Conflict, DocumentRefused, DuplicateKey, Problem, TransientDatabaseError
from everest.intake.numbers import next_number
from everest.intake.submission import Authority, Submission, fingerprint
from everest.opname.count import OPNAME, number_problems
from everest.opname.document import DECIMAL_COLUMNS, LINE_COLUMNS
from everest.opname.workflow import POST_OPNAME
from everest.settings import Settings
from everest.store import json_rows
from everest.store.database import Connection, last_insert_id, load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.words import Said, say
from everest.workflow import engine

_QUERIES = load_queries("intake")
_ROWS = load_queries("intake", as_tuples=True)

TRIES = 6
"""Of a whole submission, when another sender of the same document or the database was in the way."""

_DECIMAL_PLACES = [LINE_COLUMNS.index(name) for name in DECIMAL_COLUMNS]


T = TypeVar("T")
Transactions = Callable[[], AbstractContextManager[UnitOfWork]]


@dataclass(frozen=True)
class Submitted:
    """Stored and announced; its message goes out with the relay's next round."""

    shadow_id: int
    transaksi_id: int
    nomer_nota: str
    lines: int


@dataclass(frozen=True)
class AlreadySubmitted:
    """The same token or transaksi_id came before; nothing was written. `same_content`: and it says the same."""

    shadow_id: int | None
    transaksi_id: int
    nomer_nota: str
    worker_status: str | None
    same_content: bool


def submit_document(
    open_transaction: Transactions, submission: Submission, authority: Authority
) -> Submitted | AlreadySubmitted:
    """`submit`, committed. Raises what it raises, TransientDatabaseError when the database stays away."""
    return until_won(open_transaction, lambda tx: submit(tx, submission, authority))


def until_won(open_transaction: Transactions, write: Callable[[UnitOfWork], T]) -> T:
    """What `write` returns, in a transaction of its own: whoever lost a race looks again, in a new one, and a commit
    whose answer was lost is found by its token."""

    def once() -> T:
        with open_transaction() as tx:
            return write(tx)

    again = Retrying(
        retry=retry_if_exception_type((DuplicateKey, TransientDatabaseError)),
        wait=wait_random_exponential(multiplier=0.05, max=1),
        stop=stop_after_attempt(TRIES),
        reraise=True,
    )
    written: T = again(once)
    return written


def submit(tx: UnitOfWork, submission: Submission, authority: Authority) -> Submitted | AlreadySubmitted:
    """Writes a document and its job on an open transaction; the caller commits.

    Raises DuplicateKey when another sender of the same document commits first (roll back, then ask again),
    DocumentRefused when it cannot be stored, Conflict when its nota is posted already or its transaksi_id belongs to
    something else.
    """
    earlier = find_earlier(tx.conn, submission, tx.settings)
    if earlier is not None:
        return earlier
    _check(tx, submission)
    _refuse_posted(tx, submission)
    chunks = list(line_chunks(submission))  # before the first lock: whoever waits for us waits for MySQL only
    transaksi_id = submission.transaksi_id
    if transaksi_id is None:
        transaksi_id = next_number(tx.conn, submission.nomer_nota, OPNAME, submission.gudang_kode)
    header_id = _insert_header(tx, submission, authority, transaksi_id)
    if submission.transaksi_id is not None:
        _claim_number(tx, submission, transaksi_id)
    insert_lines(tx.conn, header_id, chunks)
    payload = {"transaksi_id": transaksi_id}
    job = engine.dispatch(tx, POST_OPNAME, payload, None, transaksi_id, submission.nomer_nota)
    audit(
        tx.conn,
        actor=authority.submitted_by,
        action="submit",
        transaksi_id=transaksi_id,
        nomer_nota=submission.nomer_nota,
        shadow_id=job.shadow_id,
        workflow_id=job.workflow_id,
        after={
            "baris": len(submission.lines),
            "diotorisasi_oleh": authority.authorised_by,
            "otorisasi_level": authority.level,
        },
    )
    return Submitted(job.shadow_id, transaksi_id, submission.nomer_nota, len(submission.lines))


def find_earlier(conn: Connection, submission: Submission, settings: Settings) -> AlreadySubmitted | None:
    """The document that this submission repeats, if any."""
    row = None
    if submission.transaksi_id is not None:
        row = _QUERIES.submitted_by_transaksi(conn, transaksi_id=submission.transaksi_id)
    if row is None and submission.token is not None:
        row = _QUERIES.submitted_by_token(conn, submit_token=submission.token)
    if row is None:
        return None
    if row["baris_dihapus_at"] is not None:
        told = {
            "nota": row["nomer_nota"],
            "transaksi": row["transaksi_id"],
            "at": f"{row['baris_dihapus_at']:%Y-%m-%d}",
        }
        raise Conflict(say("en", "refused.lines_purged", **told))
    job = _QUERIES.job_of(conn, transaksi_id=row["transaksi_id"]) or {"shadow_id": None, "worker_status": None}
    return AlreadySubmitted(
        transaksi_id=row["transaksi_id"],
        nomer_nota=row["nomer_nota"],
        same_content=_stored_content(conn, row, settings) == fingerprint(submission.header_values(), submission.rows),
        **job,
    )


def line_chunks(submission: Submission) -> Iterator[str]:
    """The lines as JSON arrays of a bounded size. Raises ValueError for a decimal that its column can't hold."""
    return json_rows.arrays(submission.rows)


def insert_lines(conn: Connection, header_id: int, chunks: list[str]) -> None:
    for chunk in chunks:
        _QUERIES.insert_lines(conn, header_id=header_id, rows=chunk)


def audit(
    conn: Connection,
    *,
    actor: str,
    action: str,
    transaksi_id: int | None,
    nomer_nota: str | None,
    shadow_id: int | None,
    workflow_id: int | None,
    after: dict[str, Any],
    before: dict[str, Any] | None = None,
    reason: str | None = None,
) -> None:
    """One line about what a person did, in the transaction that does it."""
    _QUERIES.audit(
        conn,
        actor=actor[:100],
        action=action,
        transaksi_id=transaksi_id,
        nomer_nota=nomer_nota,
        shadow_id=shadow_id,
        workflow_id=workflow_id,
        reason=reason[:500] if reason else None,
        before_value=None if before is None else json.dumps(before, ensure_ascii=False, default=str),
        after_value=json.dumps(after, ensure_ascii=False, default=str),
    )


def snapshot_ahead(at: datetime) -> Said:
    """What is said of book quantities that will be frozen later."""
    return say("id", "refused.snapshot_ahead", at=str(at))


def _check(tx: UnitOfWork, submission: Submission) -> None:
    problems = number_problems(tx.books, submission.transaksi_id)
    if submission.gudang_kode is None:
        problems.append(Problem(None, "gudang_kode", say("id", "refused.no_warehouse")))
    if submission.tanggal_opname is None:
        problems.append(Problem(None, "tanggal_opname", say("id", "refused.no_day")))
    if submission.snapshot_at is not None and submission.snapshot_at > tx.now:
        # No movement can be entered after it, so nothing would ever look stale.
        problems.append(Problem(None, "snapshot_at", snapshot_ahead(submission.snapshot_at)))
    if problems:
        raise DocumentRefused(say("id", "refused.document", n=len(problems)), problems)


def _refuse_posted(tx: UnitOfWork, submission: Submission) -> None:
    """What nobody can post is not taken: a nota has one posting, also one that was reversed. Posting looks again."""
    posted = tx.books.posting_of(submission.nomer_nota, submission.transaksi_id or 0)
    if posted is None:
        return
    reversed_by = f", reversed by {posted.dibalik_oleh}" if posted.dibalik_oleh else ""
    raise Conflict(
        f"nota {posted.nomer_nota} is posted already"
        f" (transaksi {posted.transaksi_id}, posting {posted.id}{reversed_by}); nothing was stored."
        " Posted books do not change: reverse it where it is wrong, and submit a new nota"
    )


def _claim_number(tx: UnitOfWork, submission: Submission, transaksi_id: int) -> None:
    """The number came from outside: it must be free, or the same document as the program that gave it wrote it."""
    row = _QUERIES.accounting_document(tx.conn, transaksi_id=transaksi_id)
    if row is None:
        _QUERIES.insert_accounting_document(
            tx.conn,
            transaksi_id=transaksi_id,
            nomer_nota=submission.nomer_nota,
            jenis=OPNAME,
            gudang_kode=submission.gudang_kode,
        )
    elif (row["nomer_nota"], row["jenis"]) != (submission.nomer_nota, OPNAME):
        raise Conflict(f"transaksi {transaksi_id} is {row['jenis']} {row['nomer_nota']} already; give another number")
    if tx.runs.find(POST_OPNAME.name, str(transaksi_id)) is not None:
        job = _QUERIES.job_of(tx.conn, transaksi_id=transaksi_id) or {"shadow_id": "?", "worker_status": "unknown"}
        raise Conflict(
            f"transaksi {transaksi_id} was announced already, as job #{job['shadow_id']} ({job['worker_status']}), but"
            " its document was never stored; drop that job's dead letter and submit under another number"
        )


def _insert_header(tx: UnitOfWork, submission: Submission, authority: Authority, transaksi_id: int) -> int:
    _QUERIES.insert_header(
        tx.conn,
        transaksi_id=transaksi_id,
        nomer_nota=submission.nomer_nota,
        gudang_kode=submission.gudang_kode,
        tanggal_opname=submission.tanggal_opname,
        tanggal_posting=submission.tanggal_posting,
        snapshot_at=naive(submission.snapshot_at, UTC),
        otorisasi_level=authority.level,
        diotorisasi_oleh=authority.authorised_by,
        diotorisasi_at=naive(tx.now, UTC),
        dibuat_oleh=authority.submitted_by,
        submit_token=submission.token,
    )
    return last_insert_id(tx.conn)


def naive(instant: datetime | None, zone: Any) -> datetime | None:
    """An aware instant as the columns of a row in that zone hold it."""
    return None if instant is None else instant.astimezone(zone).replace(tzinfo=None)


def row_zone(zona_waktu: str | None, settings: Settings) -> Any:
    """The zone of a header row's instants; NULL = another program wrote it."""
    return settings.foreign_zone if zona_waktu is None else ZoneInfo(zona_waktu)


def _stored_content(conn: Connection, row: dict[str, Any], settings: Settings) -> str:
    snapshot = row["snapshot_at"]
    if snapshot is not None:
        snapshot = snapshot.replace(tzinfo=row_zone(row["zona_waktu"], settings))
    header = (row["nomer_nota"], row["gudang_kode"], row["tanggal_opname"], row["tanggal_posting"], snapshot)
    stored = list(_ROWS.lines_of(conn, header_id=row["id"]))
    columns: list[Any] = list(zip(*stored, strict=True)) if stored else list(repeat((), len(LINE_COLUMNS)))
    for place in _DECIMAL_PLACES:
        columns[place] = [None if value is None else str(value) for value in columns[place]]
    return fingerprint(header, list(zip(*columns, strict=True)))
