"""What step 1 would say about a document that is not stored: the same functions, on the same master data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everest.errors import Problem
from everest.intake.submission import Authority, Submission
from everest.intake.submit import find_earlier, snapshot_ahead
from everest.opname.count import check_document
from everest.opname.document import LINE_COLUMNS, Header
from everest.store.frames import line_frame, stored_lines
from everest.store.unit_of_work import UnitOfWork
from everest.words import say

if TYPE_CHECKING:
    from pandas import DataFrame


def domain_problems(
    tx: UnitOfWork, submission: Submission, authority: Authority, corrects: int | None = None
) -> list[Problem]:
    """Every problem that the rules of posting see, header first, then by line. Writes nothing.

    corrects: transaksi_id of the document that this corrects; what the submission leaves out is taken from it.
    """
    header = _header(tx, submission, authority, corrects)
    lines = _frame(submission)
    problems = check_document(tx.books, header, lines)
    if submission.snapshot_at is not None and submission.snapshot_at > tx.now:
        problems.insert(0, Problem(None, "snapshot_at", snapshot_ahead(submission.snapshot_at)))
    posted = tx.books.posting_of(header.nomer_nota, header.transaksi_id)
    earlier = find_earlier(tx.conn, submission, tx.settings)
    if posted is not None and not (earlier and earlier.same_content and earlier.transaksi_id == posted.transaksi_id):
        told = {"posting": posted.id, "transaksi": posted.transaksi_id, "by": posted.dibalik_oleh}
        pesan = say("id", "refused.nota_reversed" if posted.dibalik_oleh else "refused.nota_posted", **told)
        problems.insert(0, Problem(None, "nomer_nota", pesan))
    return problems


def _frame(submission: Submission) -> DataFrame:
    """As they will be read once they are stored; a number that no column holds is shown to the rules as it is."""
    try:
        return stored_lines(submission.rows, LINE_COLUMNS)
    except ValueError:
        return line_frame([(baris, *line) for baris, line in enumerate(submission.lines, start=1)])


def _header(tx: UnitOfWork, submission: Submission, authority: Authority, corrects: int | None) -> Header:
    stored = tx.books.document(corrects) if corrects else None
    today = tx.now.date()
    return Header(
        header_id=0,
        transaksi_id=corrects or submission.transaksi_id or 0,
        nomer_nota=submission.nomer_nota,
        gudang_kode=submission.gudang_kode or (stored.gudang_kode if stored else ""),
        tanggal_opname=submission.tanggal_opname or (stored.tanggal_opname if stored else today),
        tanggal_posting=submission.tanggal_posting or (stored.tanggal_posting if stored else None),
        snapshot_at=submission.snapshot_at or (stored.snapshot_at if stored else tx.now),
        otorisasi_level=authority.level,
        diotorisasi_oleh=authority.authorised_by,
        diotorisasi_at=tx.now,
        dibuat_oleh=authority.submitted_by,
    )
