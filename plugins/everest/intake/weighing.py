"""What authorising a draft would send to the books, told to whoever is asked to: the money, before the name is given.

The judgement is step 1's own (`opname.count.checked`), on the draft as it would stand if this person authorised it now.
Nothing is written and no lock is taken, so the account of the pages may do it. It is half the work of a preview, for a
page that people leaf through, and says what a count is worth even if posting would refuse it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from everest.errors import DocumentRefused, Problem
from everest.intake.drafts import authorised
from everest.opname.count import Counted, checked
from everest.opname.journal import JournalRow, journal_rows
from everest.store.unit_of_work import UnitOfWork
from everest.words import say


@dataclass(frozen=True)
class Weighed:
    """surplus, shortage: rupiah, None where a line can't be computed. problems: why posting would refuse it. reasons:
    what a further person would have to decide about first (limits, late movements). journal: the rows it would post,
    none where it would be refused."""

    surplus: Decimal | None
    shortage: Decimal | None
    problems: tuple[Problem, ...] = ()
    reasons: tuple[Problem, ...] = ()
    journal: tuple[JournalRow, ...] = ()


def weigh(tx: UnitOfWork, transaksi_id: int, who: str) -> Weighed | None:
    """As if `who` authorised it now; None where there is no such document."""
    stored = tx.books.document(transaksi_id)
    if stored is None:
        return None
    header = authorised(stored, who, tx.now)
    counted = Counted(header, tx.books)
    posted = tx.books.posting_of(header.nomer_nota, transaksi_id)
    taken = () if posted is None else (Problem(None, "nomer_nota", say("id", "refused.nota_taken", posting=posted.id)),)
    try:
        computed = checked(tx.books, counted, tx.now)
    except DocumentRefused as refusal:
        return Weighed(*_totals(counted), problems=(*taken, *refusal.problems))
    surplus, shortage = computed.summary.surplus, computed.summary.shortage
    if taken:
        return Weighed(surplus, shortage, problems=taken)
    rows = journal_rows(header.nomer_nota, surplus, shortage, computed.accounts)
    return Weighed(surplus, shortage, reasons=computed.surprise.reasons, journal=rows)


def _totals(counted: Counted) -> tuple[Decimal | None, Decimal | None]:
    from everest.opname.variance import totals

    try:
        return totals(counted.values)
    except ValueError:
        return None, None
