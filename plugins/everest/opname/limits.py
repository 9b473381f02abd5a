"""Which documents are too large to post without a person: the approval limits of a warehouse (kebijakan_selisih).

The caller picks the policy (the header's warehouse before '*'); None means no limit, and an amount equal to its limit
is still within it.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from everest.errors import Problem
from everest.opname.amounts import MONEY_CONTEXT, format_rupiah
from everest.opname.lines import columns, numbers
from everest.words import say

if TYPE_CHECKING:
    from pandas import DataFrame


DOCUMENT_LIMIT, LINE_LIMIT = "batas_dokumen", "batas_baris"


def are_kept(total: Decimal, largest: Decimal, batas_dokumen: Decimal | None, batas_baris: Decimal | None) -> bool:
    """Whether `limit_problems` is empty, from the document's surplus + shortage and its largest line (rupiah)."""
    return (batas_dokumen is None or total <= batas_dokumen) and (batas_baris is None or largest <= batas_baris)


def exceeded(
    variance_frame: DataFrame, batas_dokumen: Decimal | None, batas_baris: Decimal | None
) -> tuple[Decimal | None, Decimal | None]:
    """Of the two limits (rupiah) those that a computed document exceeds, None for one that it keeps: what
    `limit_problems` has sentences about."""
    total, largest = _total_and_largest(variance_frame)
    return (
        None if are_kept(total, largest, batas_dokumen, None) else batas_dokumen,
        None if are_kept(total, largest, None, batas_baris) else batas_baris,
    )


def limit_problems(
    variance_frame: DataFrame, batas_dokumen: Decimal | None, batas_baris: Decimal | None
) -> list[Problem]:
    """The limits (rupiah) that a computed document exceeds: surplus + shortage of the document, and the value of each
    line. Empty when nothing has to be approved."""
    total, largest = _total_and_largest(variance_frame)
    if are_kept(total, largest, batas_dokumen, batas_baris):
        return []
    problems: list[Problem] = []
    with localcontext(MONEY_CONTEXT):
        if batas_dokumen is not None and total > batas_dokumen:
            about = {"amount": format_rupiah(total), "limit": format_rupiah(batas_dokumen)}
            problems.append(Problem(None, DOCUMENT_LIMIT, say("id", "limit.document", **about)))
        if batas_baris is not None:
            limit = format_rupiah(batas_baris)
            values = columns(variance_frame, "baris", "nilai_debet", "nilai_kredit")
            for baris, debet, kredit in zip(*values, strict=True):
                if debet + kredit > batas_baris:
                    sentence = say("id", "limit.line", amount=format_rupiah(debet + kredit), limit=limit)
                    problems.append(Problem(int(baris), LINE_LIMIT, sentence))
    return problems


def _total_and_largest(variance_frame: DataFrame) -> tuple[Decimal, Decimal]:
    debets, kredits = numbers(variance_frame, "nilai_debet"), numbers(variance_frame, "nilai_kredit")
    with localcontext(MONEY_CONTEXT):
        return debets.total() + kredits.total(), max(debets.largest(), kredits.largest())
