"""Corrections made on the pages: lines that replaced those of a FAILED document wait for another person.

As with a draft, the first authorisation is the sending itself (level 1), and only another person's makes the document
postable (level 2); that one runs it again in the same transaction. Until then it stays FAILED, and whoever runs it all
the same is told by the rules of posting that nobody has authorised it.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everest import people
from everest.errors import Conflict, DocumentMissing, DocumentRefused, Forbidden
from everest.intake.drafts import FIRST_LEVEL
from everest.intake.replace import Replaced, replace
from everest.intake.submission import MAX_LINES, Authority, Submission
from everest.intake.submit import audit, naive, row_zone
from everest.intake.template import COLUMNS
from everest.opname.amounts import format_number
from everest.opname.document import DECIMAL_COLUMNS
from everest.opname.rules import MIN_AUTHORISATION_LEVEL
from everest.spreadsheets import guarded
from everest.store.database import load_queries
from everest.store.unit_of_work import UnitOfWork
from everest.words import Said, say

QUERIES = load_queries("corrections")

MAX_REASON = 500


@dataclass(frozen=True)
class Waiting:
    """A correction that another person has not authorised yet. number: a later one of the same document has another.
    zona_waktu: of the header's instants."""

    number: int
    nomer_nota: str
    actor: str
    reason: str | None
    created_at: datetime
    zona_waktu: str | None


def correct(tx: UnitOfWork, submission: Submission, who: str, reason: str) -> Replaced:
    """Stores corrected lines; they wait for `authorise`, unless the site lets people authorise what is their own: then
    the document runs again at once. Raises what `replace` raises, DocumentRefused without a reason. The caller commits.
    """
    reason = _said(reason)
    if tx.settings.allow_self_approval:
        return replace(tx, submission, Authority(who, who, MIN_AUTHORISATION_LEVEL), reason, rerun=True)
    return replace(tx, submission, Authority(who, None, FIRST_LEVEL), reason)


def waiting(tx: UnitOfWork, transaksi_id: int) -> Waiting | None:
    """The correction of this document that waits for another person."""
    row = QUERIES.waiting_correction(tx.conn, transaksi_id=transaksi_id)
    return None if row is None else Waiting(**row)


def objection(tx: UnitOfWork, correction: Waiting, who: str) -> Said | None:
    """Why this person may not authorise it, as a sentence; None when they may."""
    if tx.settings.allow_self_approval or not people.is_same(correction.actor, who):
        return None
    return say("id", "refused.own_correction", who=who, nota=correction.nomer_nota)


def authorise(tx: UnitOfWork, transaksi_id: int, shadow_id: int, who: str, seen: int) -> str:
    """The second authorisation and the rerun; returns the DAG run that was announced. The caller commits.

    seen: the number of the correction that the person looked at; nobody stands behind lines that came after it. Raises
    DocumentMissing; Conflict when no correction waits (any more), another one by now, or the job is not FAILED;
    Forbidden for whoever made it.
    """
    header = tx.books.lock_document(transaksi_id)
    if header is None:
        raise DocumentMissing(say("id", "refused.no_document", transaksi=transaksi_id))
    correction = waiting(tx, transaksi_id)
    if correction is None:
        raise Conflict(say("id", "refused.not_waiting", nota=header.nomer_nota))
    if correction.number != seen:
        raise Conflict(say("id", "refused.other_correction", nota=header.nomer_nota))
    why_not = objection(tx, correction, who)
    if why_not is not None:
        raise Forbidden(why_not)
    zone = row_zone(correction.zona_waktu, tx.settings)
    QUERIES.authorise_correction(
        tx.conn,
        header_id=header.header_id,
        otorisasi_level=MIN_AUTHORISATION_LEVEL,
        diotorisasi_oleh=who[:100],
        diotorisasi_at=naive(tx.now.astimezone(UTC), zone),
    )
    audit(
        tx.conn,
        actor=who,
        action="authorise",
        transaksi_id=transaksi_id,
        nomer_nota=header.nomer_nota,
        shadow_id=shadow_id,
        workflow_id=None,
        after={"otorisasi_level": MIN_AUTHORISATION_LEVEL, "koreksi_oleh": correction.actor},
    )
    return tx.runs.rerun(shadow_id, who, correction.reason)


def lines_as_sent(tx: UnitOfWork, header_id: int, most: int | None = None) -> str | None:
    """The lines of a document as a CSV that can be corrected and sent back (semicolons, decimal comma); None when there
    are more than `most`."""
    rows = list(QUERIES.lines_as_sent(tx.conn, header_id=header_id, size=MAX_LINES if most is None else most + 1))
    if most is not None and len(rows) > most:
        return None
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(name, row[name]) for name in COLUMNS] for row in rows)
    return text.getvalue()


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    return format_number(value, 2 * (name == "harga_pokok")) if name in DECIMAL_COLUMNS else guarded(value)


def _said(reason: str) -> str:
    if not 0 < len(reason.strip()) <= MAX_REASON:
        raise DocumentRefused(say("id", "refused.reason_length", most=MAX_REASON))
    return reason.strip()
