"""The three steps of a posting. Each runs in one transaction with its step record; a step that finds the document
wrong raises DocumentRefused with every problem, one that finds it posted already changes nothing.

How a document is read and judged: `count`. Airflow parses the DAG file that names these functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from everest.errors import DocumentRefused, DuplicateKey, Problem
from everest.opname import approval, document, journal, stock_card
from everest.opname.amounts import ZERO_MONEY
from everest.opname.approval import Surprise
from everest.opname.count import OPNAME, Computed, Counted, checked, checked_again, hash_of, read, values_stand
from everest.opname.document import Header, wib
from everest.opname.ports import AccountingDocument, Books, Leftovers, PostingSet, Step
from everest.opname.stock_card import CardTotals
from everest.opname.summary import Summary
from everest.words import Said, say, together
from everest.workflow.ticket import Decision

APPROVAL = "persetujuan"
"""The key of the state that holds the approval under which the document posts; None where it needs none."""


def compute_variance(state: dict[str, Any], step: Step) -> dict[str, Any]:
    """Reads the count, validates all of it, computes what is surplus and what is short, and stores the lines.

    Refuses with every problem by line and column. A count that does not hold as it stands (late movements, limits)
    waits here until a person has approved exactly that. Nothing is posted yet.
    """
    judged = judge(state, step)
    return judged.concluded(step.decision) if isinstance(judged, Judged) else judged


@dataclass(frozen=True)
class Judged:
    """A valid document of which step 1 has stored the lines, before it looks who has decided about it. warnings: what
    is told beside it; kept: the approval of an earlier pass that still counts."""

    counted: Counted
    computed: Computed
    warnings: Sequence[str]
    kept: dict[str, Any] | None

    def concluded(self, decision: Decision | None) -> dict[str, Any]:
        """What step 1 returns: its values, or the question that a person has to answer first. Raises DocumentRefused
        403 for a no."""
        books, header, found = self.counted.books, self.counted.header, self.computed.surprise
        rules = books.approval_rules()
        approved = approval.settled(found, self.kept, decision, rules)
        if approved is None and found.is_any:
            own = approval.own_people(header, books.correctors(header.transaksi_id))
            return approval.question(found, rules, own, self.warnings)
        return {
            "input_hash": found.input_hash,
            APPROVAL: approved,
            **self.computed.summary.as_state(),
            "peringatan": list(self.warnings),
        }


def judge(state: dict[str, Any], step: Step) -> Judged | dict[str, Any]:
    """The first half of `compute_variance`; of a nota that stands in the books already, its whole answer."""
    books = step.tx.books
    counted = read(books, state["transaksi_id"])
    _refuse_other_nota(books, counted.header, step.shadow_id)
    settled = _settled(books, counted)
    if settled is not None:
        return {"input_hash": hash_of(counted), **settled}
    header = counted.header
    stands = _accounting_document(books, header, is_ours=state.get("input_hash") is not None)
    computed = checked(books, counted, step.now)
    instant = document.posting_instant(header)
    warnings = [*_differences(stands, header, instant), *books.write_values(header, OPNAME, instant, counted.values)]
    kept = state.get(APPROVAL)
    if kept is not None and books.was_refused(header.transaksi_id):
        kept = None  # a later no, to other evidence: nobody stands behind the earlier yes any more
    return Judged(counted, computed, warnings, kept)


def clean_duplicate_notas(state: dict[str, Any], step: Step) -> dict[str, Any]:
    """Finds journal and stock-card rows that an earlier, unfinished attempt left for this nota.

    They are recorded here and replaced when the posting commits, so the books never hold neither or both. A leftover
    in a closed month is refused.
    """
    books = step.tx.books
    counted = read(books, state["transaksi_id"])
    if _settled(books, counted) is not None:
        return {}
    leftovers = _leftovers(books, counted.header)
    return {
        "sisa_bulan": sorted(leftovers.periods),
        "sisa_jurnal": list(leftovers.journal_ids),
        "sisa_kartu_stok": list(leftovers.stock_card_ids),
        "sisa_sidik": leftovers.fingerprint,
    }


def post_jurnal(state: dict[str, Any], step: Step) -> dict[str, Any]:
    """Writes the posting set, the balanced journal and the stock card, in the commit that says COMPLETED.

    Everything that could have changed is looked at again under locks: the lines, the month, the accounts, the
    freshness of the count, the reasons that somebody approved, and the leftovers to replace.
    """
    books = step.tx.books
    counted = read(books, state["transaksi_id"])
    # Again: a run that failed later than step 1 may have another job by now.
    _refuse_other_nota(books, counted.header, step.shadow_id)
    settled = _settled(books, counted)
    if settled is not None:
        return settled
    header, input_hash = counted.header, state.get("input_hash") or ""
    months = state.get("sisa_bulan") or ()
    computed = checked_again(books, counted, input_hash, Summary.of_state(state), step.now, months)
    if computed is None or not approval.covers(state.get(APPROVAL), computed.surprise):
        return {"_next_step": compute_variance.__name__}
    summary = computed.summary
    if not values_stand(books, counted, input_hash, summary):
        return {"_next_step": compute_variance.__name__}
    leftovers = _leftovers(books, header)
    if leftovers.fingerprint != state.get("sisa_sidik") or not leftovers.periods <= set(months):
        return {"_next_step": clean_duplicate_notas.__name__}

    instant, accounts = document.posting_instant(header), computed.accounts
    rows = journal.journal_rows(header.nomer_nota, summary.surplus, summary.shortage, accounts)
    total = journal.check_balanced(rows)
    stock_card.check_agreement(rows, CardTotals(summary.surplus, summary.shortage), accounts.persediaan)
    try:
        posting_id = books.insert_posting(
            header, step.shadow_id, step.dag_run_id, input_hash, total, summary.baris_selisih
        )
    except DuplicateKey:
        # Somebody posted the nota between our look and our insert; look again, it is committed now.
        settled = _settled(books, counted)
        if settled is None:
            raise
        return settled
    books.replace_leftovers(leftovers, posting_id)
    books.insert_journal(posting_id, header, instant, rows)
    books.insert_stock_card(posting_id, header, instant)
    _verify(books, posting_id, total, summary.baris_selisih, accounts.persediaan)
    approved = state[APPROVAL] if computed.surprise.is_any else None
    told = _told(approved, computed.surprise)
    books.record_attempt(header.transaksi_id, step.n, step.dag_run_id, "COMPLETED", 200, input_hash, told)
    return _posted(posting_id, header.nomer_nota, total, summary.baris_selisih, approved)


def record_failure(state: dict[str, Any], step: Step, error: Exception) -> None:
    """Keeps what went wrong at this attempt, so that a later one can be compared with it."""
    transaksi_id = state.get("transaksi_id")
    if transaksi_id is None:
        return
    books = step.tx.books
    header = books.document(transaksi_id)
    problems = error.problems if isinstance(error, DocumentRefused) else ()
    books.record_attempt(
        transaksi_id,
        step.n,
        step.dag_run_id,
        "FAILED",
        getattr(error, "code", 500),
        hash_of(Counted(header, books)) if header else None,
        problems or (Problem(None, "", str(error)),),
    )


# ----------------------------------------------------------------------------------------------------- helpers


def _told(approved: dict[str, Any] | None, surprise: Surprise) -> Iterator[Problem]:
    """For the history of attempts: who approved, and what."""
    if approved is not None:
        yield Problem(None, APPROVAL, approval.sentence(approved))
    yield from surprise.reasons


def _refuse_other_nota(books: Books, header: Header, shadow_id: int) -> None:
    """A job that names another nota than the document's own would end as COMPLETED under a nota that nobody posted."""
    nota = (books.nota_of_job(shadow_id) or "").rstrip(" ")
    if nota not in ("", header.nomer_nota.rstrip(" ")):
        about = {"job": shadow_id, "nota": nota, "number": header.transaksi_id, "other": header.nomer_nota}
        raise DocumentRefused(say("id", "posting.other_nota", **about), code=409)


def _settled(books: Books, counted: Counted) -> dict[str, Any] | None:
    """The answer for a nota that stands in the books already, None if it does not. Raises 409 for another content, and
    while an older system is at work on it."""
    header = counted.header
    posted = books.posting_of(header.nomer_nota, header.transaksi_id)
    if posted is not None:
        if header.lines_purged_at is not None and posted.transaksi_id == header.transaksi_id:
            return _posted_before(
                posted, [say("id", "posting.lines_purged", day=f"{wib(header.lines_purged_at):%Y-%m-%d}")]
            )
        if counted.has(posted.input_hash):
            return _posted_before(posted)
        raise DocumentRefused(_conflict_sentence(header, posted), code=409)
    older = books.job_of_older_system(header.nomer_nota)
    if older is None:
        return None
    if not older.is_completed:
        raise DocumentRefused(say("id", "posting.older_at_work", nota=header.nomer_nota, job=older.shadow_id), code=409)
    answer = {
        "message": say("id", "posting.older_posted", nota=header.nomer_nota, job=older.shadow_id),
        "posting_id": None,
        "total_debet": str(ZERO_MONEY),
        "total_kredit": str(ZERO_MONEY),
        "baris_selisih": 0,
    }
    return {"posting_id": None, "_response": answer}


def _accounting_document(books: Books, header: Header, is_ours: bool) -> AccountingDocument | None:
    """What stands under the document's number. Raises 409 when it is somebody else's: that is never written over.
    is_ours: this step has written it before, so whoever changed it changed ours."""
    stands = books.accounting_document(header.transaksi_id)
    # As MySQL compares them, blanks at the end count for nothing; a program may give the number before the nota.
    nota = "" if stands is None else (stands.nomer_nota or "").rstrip(" ")
    if stands is None or is_ours or nota in ("", header.nomer_nota.rstrip(" ")):
        return stands
    about = {"kind_of": str(stands.jenis), "other": nota, "nota": header.nomer_nota}
    raise DocumentRefused(say("id", "posting.number_taken", number=header.transaksi_id, **about), code=409)


def _differences(stands: AccountingDocument | None, header: Header, instant: datetime) -> list[str]:
    """Warnings about what the accounting document said and will not say any more."""
    if stands is None:
        return []
    pairs = (
        ("nomer_nota", stands.nomer_nota, header.nomer_nota),
        ("jenis", stands.jenis, OPNAME),
        ("gudang_kode", stands.gudang_kode, header.gudang_kode),
        ("tanggal_wib", stands.tanggal_wib, instant),
    )
    return [
        say("id", "posting.differs", column=name, old=str(old), new=str(new))
        for name, old, new in pairs
        if old not in (None, "", new)
    ]


def _conflict_sentence(header: Header, posted: PostingSet) -> Said:
    about = {"nota": header.nomer_nota, "posting": posted.id}
    if posted.nomer_nota != header.nomer_nota:
        return say("id", "posting.number_posted", number=header.transaksi_id, other=posted.nomer_nota, **about)
    if posted.jenis == "PEMBALIKAN":
        return say("id", "posting.nota_of_reversal", **about)
    if posted.dibalik_oleh is not None:
        return say("id", "posting.reversed_by", reversal=posted.dibalik_oleh, **about)
    return say("id", "posting.other_content", number=posted.transaksi_id, **about)


def _leftovers(books: Books, header: Header) -> Leftovers:
    # The existing worker posts to the common accounts, or to those of the document's warehouse where it has its own.
    accounts = (journal.Accounts(), books.references(header, ()).document_accounts)
    ours = {account for some in accounts for account in (some.persediaan, some.laba_selisih, some.rugi_selisih)}
    leftovers = books.leftovers(header.nomer_nota, header.transaksi_id, sorted(ours))
    if leftovers.undated:
        raise DocumentRefused(
            say("id", "posting.undated", nota=header.nomer_nota, rows=list(leftovers.undated)), code=409
        )
    closed = sorted(books.closed_periods(leftovers.periods))
    if closed:
        raise DocumentRefused(
            say("id", "posting.leftovers", nota=header.nomer_nota, months=closed),
            [Problem(None, "tanggal_wib", say("id", "posting.leftover", month=period)) for period in closed],
            423,
        )
    return leftovers


def _verify(books: Books, posting_id: int, total: Decimal, card_rows: int, inventory_account: str) -> None:
    """The same balance on a second path: what the tables hold, read back before the commit."""
    stored = books.posted_totals(posting_id, inventory_account)
    if not stored.debet == stored.kredit == total:
        raise journal.Unbalanced(f"posting {posting_id}: journal holds {stored.debet} / {stored.kredit}, not {total}")
    if stored.inventory != stored.stock_card or stored.stock_card_rows != card_rows:
        raise journal.Unbalanced(
            f"posting {posting_id}: inventory account {stored.inventory}, stock card {stored.stock_card} in"
            f" {stored.stock_card_rows} rows of {card_rows}"
        )


def _posted_before(posted: PostingSet, further: Sequence[Said] = ()) -> dict[str, Any]:
    answer = _posted(posted.id, posted.nomer_nota, posted.total_debet, posted.baris_selisih)
    if posted.dibalik_oleh:
        before = say("id", "posting.before_reversed", posting=posted.id, reversal=posted.dibalik_oleh)
    else:
        before = say("id", "posting.before", posting=posted.id)
    answer["_response"]["message"] = together((before, *further))
    return answer


def lines_of(baris_selisih: int) -> Said:
    """How many lines a posting moves, in words."""
    return say("id", "posting.lines", n=baris_selisih) if baris_selisih else say("id", "posting.no_variance")


def _posted(
    posting_id: int, nomer_nota: str, total: Decimal, baris_selisih: int, approved: dict[str, Any] | None = None
) -> dict[str, Any]:
    lines = lines_of(baris_selisih)
    message = say("id", "posting.posted", lines=lines) if baris_selisih else lines
    answer: dict[str, Any] = {
        "message": message,
        "posting_id": posting_id,
        "nomer_nota": nomer_nota,
        "total_debet": str(total),
        "total_kredit": str(total),
        "baris_selisih": baris_selisih,
    }
    if approved is not None:
        answer |= {"message": together((message, approval.sentence(approved))), APPROVAL: approved}
    return {"posting_id": posting_id, "_response": answer}
