"""The reversal of a posting: its mirror in the books, by the amounts and accounts that were posted then.

A posted row never changes. What was wrong is undone by a document of its own: the journal with its sides swapped, the
stock card with in and out swapped and the value negated. Neither master data nor the count is looked at again: whatever
`akun_gudang` says today, a mistake is taken back where it was made.

One step in one transaction; it holds what it reads until the commit, so there is nothing for a second step to check.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from everest.errors import DocumentRefused, DuplicateKey, Problem
from everest.opname.document import period_of, wib
from everest.opname.journal import JournalRow, Unbalanced, check_balanced
from everest.opname.ports import Books, PostingSet, Reversals, Step
from everest.opname.steps import lines_of
from everest.words import Said, say

PEMBALIKAN = "PEMBALIKAN"
MAX_NOTA = 100
"""Characters of the columns nomer_nota."""
MAX_TEXT = 255
"""Characters of jurnal.keterangan."""
NEVER_CUT = MAX_NOTA - len("-BALIK9999")
"""So many characters of a nota are in every name of its reversal; of a longer nota the end may give way."""

_INVENTORY_ROWS = frozenset({1, 4})


def nota_candidates(nomer_nota: str) -> Iterator[str]:
    """Names for the reversal of a nota, the best first: SO-1-BALIK, SO-1-BALIK2, ... The end of a long nota gives way,
    so that each fits its column."""
    number = 1
    while True:
        suffix = "-BALIK" if number == 1 else f"-BALIK{number}"
        yield nomer_nota[: MAX_NOTA - len(suffix)].rstrip() + suffix
        number += 1


def mirrored(rows: Iterable[JournalRow], keterangan: str) -> tuple[JournalRow, ...]:
    """The rows with their sides swapped, each under its own urutan."""
    text = keterangan[:MAX_TEXT]
    return tuple(replace(row, debet=row.kredit, kredit=row.debet, keterangan=text) for row in rows)


def inventory_account(rows: Iterable[JournalRow]) -> str:
    """The account that the stock card agrees with, as it was posted; '' for a posting without amounts. Raises
    Unbalanced when the rows name two."""
    found = {row.kode_akun for row in rows if row.urutan in _INVENTORY_ROWS}
    if len(found) > 1:
        raise Unbalanced(f"one posting moves two inventory accounts: {', '.join(sorted(found))}")
    return found.pop() if found else ""


def reversal_hash(transaksi_id: int, nomer_nota: str, original: PostingSet) -> str:
    """SHA-256 (hex) over what a reversal says: which document takes which posting back. When it posts is no content."""
    content = [transaksi_id, nomer_nota, PEMBALIKAN, original.id, original.input_hash]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def closed_problem(period: str, instant: datetime) -> DocumentRefused:
    """423: the month in which a reversal would post at this WIB instant is closed."""
    problem = say("id", "reversal.month_closed", month=period, at=f"{instant:%Y-%m-%d %H:%M:%S}")
    return DocumentRefused(
        say("id", "count.months_closed", months=period), [Problem(None, "tanggal_wib", problem)], 423
    )


def reverse_posting(state: dict[str, Any], step: Step) -> dict[str, Any]:
    """Posts the mirror of a posting: journal with its sides swapped, stock card with in and out swapped.

    Original amounts and accounts, dated at this moment, in an open month, once per posting. The original stays as it
    is.
    """
    books, reversals = step.tx.books, step.tx.reversals
    transaksi_id, nomer_nota = state["transaksi_id"], state["nomer_nota"]
    original = reversals.posting(state["posting_id"])
    if original is None:
        raise DocumentRefused(say("id", "reversal.no_posting", posting=state["posting_id"]), code=404)
    settled = _settled(reversals, original, transaksi_id)
    if settled is not None:
        return settled
    _refuse_taken_nota(books, nomer_nota, transaksi_id)
    instant = wib(step.now).replace(microsecond=0)
    period = period_of(instant)
    if books.lock_period(period) != "OPEN":
        raise closed_problem(period, instant)
    books.lock_warehouses(reversals.warehouses(original.id))

    posted = reversals.journal(original.id)
    total = check_balanced(posted)
    if total != original.total_debet:
        raise Unbalanced(f"posting {original.id} says {original.total_debet}, its journal holds {total}")
    rows = mirrored(posted, f"Pembalikan {original.nomer_nota}: {state['alasan']}")
    content = reversal_hash(transaksi_id, nomer_nota, original)
    try:
        posting_id = reversals.insert_posting(
            transaksi_id, nomer_nota, original, step.shadow_id, step.dag_run_id, content
        )
    except DuplicateKey:
        # Between our look and our insert somebody reversed the posting, or a count took the nota; look again, it is
        # committed now.
        _refuse_taken_nota(books, nomer_nota, transaksi_id)
        settled = _settled(reversals, original, transaksi_id)
        if settled is None:
            raise
        return settled
    reversals.write_document(transaksi_id, nomer_nota, instant, original)
    reversals.insert_journal(posting_id, transaksi_id, nomer_nota, instant, rows)
    reversals.mirror_stock_card(posting_id, transaksi_id, nomer_nota, instant, original.id)
    _verify(books, reversals, original, posting_id, rows)
    books.record_attempt(transaksi_id, step.n, step.dag_run_id, "COMPLETED", 200, content, ())
    return _answer(posting_id, nomer_nota, total, original)


def _refuse_taken_nota(books: Books, nomer_nota: str, transaksi_id: int) -> None:
    namesake = books.posting_of(nomer_nota, transaksi_id)
    if namesake is not None and namesake.transaksi_id != transaksi_id:
        raise DocumentRefused(say("id", "reversal.nota_taken", nota=nomer_nota, posting=namesake.id), code=409)


def _settled(reversals: Reversals, original: PostingSet, transaksi_id: int) -> dict[str, Any] | None:
    """The answer when the posting is reversed already: by this document, or 409 by another."""
    done = reversals.reversal_of(original.id)
    if done is None:
        return None
    if done.transaksi_id != transaksi_id:
        raise DocumentRefused(reversed_already(original, done), code=409)
    answer = _answer(done.id, done.nomer_nota, done.total_debet, original)
    answer["_response"]["message"] = say("id", "reversal.done_before", posting=done.id)
    return answer


def reversed_already(original: PostingSet, done: PostingSet) -> Said:
    return say("id", "reversal.done_by", nota=original.nomer_nota, reversal=done.nomer_nota, posting=done.id)


def _verify(
    books: Books, reversals: Reversals, original: PostingSet, posting_id: int, rows: tuple[JournalRow, ...]
) -> None:
    """What the tables hold, read back before the commit: balanced, journal and stock card agree, and original and
    reversal together move no account and no stock."""
    stored = books.posted_totals(posting_id, inventory_account(rows))
    if not stored.debet == stored.kredit == original.total_debet or reversals.journal(posting_id) != rows:
        raise Unbalanced(
            f"posting {posting_id}: journal holds {stored.debet} / {stored.kredit}, not {original.total_debet}"
        )
    if stored.inventory != stored.stock_card or stored.stock_card_rows != original.baris_selisih:
        raise Unbalanced(
            f"posting {posting_id}: inventory account {stored.inventory}, stock card {stored.stock_card} in"
            f" {stored.stock_card_rows} rows of {original.baris_selisih}"
        )
    left = reversals.what_is_left(original.id, posting_id)
    if left:
        raise Unbalanced(f"postings {original.id} and {posting_id} together leave {', '.join(left)}")


def _answer(posting_id: int, nomer_nota: str, total: Decimal, original: PostingSet) -> dict[str, Any]:
    lines = lines_of(original.baris_selisih)
    answer = {
        "message": say("id", "reversal.posted", nota=original.nomer_nota, posting=original.id, lines=lines),
        "posting_id": posting_id,
        "nomer_nota": nomer_nota,
        "total_debet": str(total),
        "total_kredit": str(total),
        "baris_selisih": original.baris_selisih,
        "membalik_id": original.id,
        "membalik_nota": original.nomer_nota,
    }
    return {"posting_id": posting_id, "_response": answer}
