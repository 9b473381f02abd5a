"""Whether a person has to decide before a document posts: why, what the person is shown, and what was decided.

Between the validation of a document and its posting. Late movements and exceeded limits are no mistakes of the data, so
nobody corrects them; somebody has to look. The evidence is a hash over all that such a person would have to look at
again if it changed: an approval holds for exactly that, in whichever step and whenever somebody looks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from everest.errors import DocumentRefused, Problem
from everest.opname import freshness, limits
from everest.opname.document import Header, wib
from everest.opname.freshness import LateMovement
from everest.words import Said, say, span, together
from everest.workflow.questions import ask_decision
from everest.workflow.ticket import Decision

if TYPE_CHECKING:
    from pandas import DataFrame

REFUSED_BY_A_PERSON = 403
MAX_MOVEMENTS_SHOWN = 1_000
"""Kept with a question, for the page that shows it; the evidence covers all."""


@dataclass(frozen=True)
class ApprovalRules:
    """What a site decides about approvals. timeout: how long a document waits for a person before it is refused."""

    timeout: timedelta = timedelta(days=14)
    allow_self_approval: bool = False


@dataclass(frozen=True)
class Surprise:
    """What a person has to decide about a valid document, if there is anything. Amounts in rupiah.

    tell: its reasons, when somebody asks for them; there may be one for each of 20,000 lines.
    batas_dokumen, batas_baris: the limits that it exceeds, None for one that it keeps.
    """

    input_hash: str
    tell: Callable[[], tuple[Problem, ...]]
    movements: tuple[LateMovement, ...]
    batas_dokumen: Decimal | None
    batas_baris: Decimal | None
    surplus: Decimal
    shortage: Decimal

    @cached_property
    def reasons(self) -> tuple[Problem, ...]:
        """Why, one sentence each: the document's limit, late movements, the limits of its lines."""
        return self.tell()

    @property
    def is_any(self) -> bool:
        """Whether there is a reason at all."""
        return bool(self.movements) or self.batas_dokumen is not None or self.batas_baris is not None

    @cached_property
    def evidence(self) -> str:
        """SHA-256 (hex) over the content of the document and everything beside it that is a reason."""
        canonical = [
            self.input_hash,
            [movement.canonical() for movement in self.movements],
            [None if limit is None else str(limit) for limit in (self.batas_dokumen, self.batas_baris)],
            [str(self.surplus), str(self.shortage)],
        ]
        return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).hexdigest()

    def details(self) -> dict[str, Any]:
        """The same for whoever shows it, movements bounded."""
        return {
            "input_hash": self.input_hash,
            "nilai_lebih": self.surplus,
            "nilai_kurang": self.shortage,
            "batas_dokumen": self.batas_dokumen,
            "batas_baris": self.batas_baris,
            "jumlah_mutasi": len(self.movements),
            "mutasi": [movement._asdict() for movement in self.movements[:MAX_MOVEMENTS_SHOWN]],
        }

    def summary(self) -> str:
        """One line."""
        late = len({movement.baris for movement in self.movements})
        lines = sum(reason.kolom == limits.LINE_LIMIT for reason in self.reasons)
        parts = [say("id", "asked.late", n=late)] if late else []
        parts += [say("id", "asked.document_limit")] if self.batas_dokumen is not None else []
        parts += [say("id", "asked.line_limit", n=lines)] if lines else []
        return together(parts)


def surprise(
    header: Header,
    input_hash: str,
    values: DataFrame,
    movements: DataFrame,
    policy: tuple[Decimal | None, Decimal | None],
    totals: tuple[Decimal, Decimal],
) -> Surprise:
    """values: computed lines with effective warehouses; policy: (batas_dokumen, batas_baris); totals: (surplus,
    shortage)."""

    def reasons() -> tuple[Problem, ...]:
        late = freshness.late_movement_problems(header, values, movements)
        over = limits.limit_problems(values, *policy)
        return (*[one for one in over if one.baris is None], *late, *[one for one in over if one.baris is not None])

    late = tuple(freshness.late_movements(header, values, movements))
    return Surprise(input_hash, reasons, late, *limits.exceeded(values, *policy), *totals)


def settled(
    found: Surprise, kept: Mapping[str, Any] | None, decision: Decision | None, rules: ApprovalRules
) -> dict[str, Any] | None:
    """The approval that lets the document post, as the workflow's state keeps it; None while somebody has to be asked.

    kept: the approval that the state holds. An approval of other evidence is void, a no is a no: whoever runs the
    document again asks anew. Raises DocumentRefused 403 for a no, and when nobody answered in time.
    """
    if decision is not None and (decision.outcome == "rejected" or decision.evidence == found.evidence):
        if decision.outcome == "approved":
            return {
                "oleh": decision.by,
                "pada": decision.at,
                "alasan": decision.reason,
                "bukti": found.evidence,
                "input_hash": found.input_hash,
            }
        raise DocumentRefused(_refusal(decision, rules), found.reasons, REFUSED_BY_A_PERSON)
    return dict(kept) if kept is not None and covers(kept, found) else None


def covers(kept: Mapping[str, Any] | None, found: Surprise) -> bool:
    """Whether a document with this surprise may post under the approval that the state holds."""
    return not found.is_any or (kept is not None and kept["bukti"] == found.evidence)


def question(found: Surprise, rules: ApprovalRules, own: Sequence[str], warnings: Sequence[str] = ()) -> dict[str, Any]:
    """What a step returns to ask. own: whose document it is (`own_people`); they may not decide about it. warnings:
    shown beside the reasons, and no part of the evidence."""
    told = [Problem(None, "peringatan", warning) for warning in warnings]
    return ask_decision(
        reasons=(*told, *found.reasons),
        evidence=found.evidence,
        timeout=rules.timeout,
        not_by=() if rules.allow_self_approval else own,
        message=say("id", "asked.waits", why=found.summary()),
        details=found.details(),
    )


def own_people(header: Header, correctors: Sequence[str]) -> tuple[str, ...]:
    """Whose document it is: who submitted it, and whoever replaced its lines since; what stands in it now is theirs. A
    program that does not say leaves only who authorised it."""
    named = (name for name in (header.dibuat_oleh, header.diotorisasi_oleh) if name is not None and name.strip())
    return tuple(dict.fromkeys([*islice(named, 1), *correctors]))


def sentence(approval: Mapping[str, Any]) -> Said:
    """Who approved, for the job's answer and the history of attempts."""
    return say("id", "asked.approved", who=approval["oleh"], reason=_reason(approval["alasan"]))


def _reason(given: str | None) -> str:
    return given or say("id", "asked.no_reason")


def _refusal(decision: Decision, rules: ApprovalRules) -> Said:
    at = f"{wib(decision.at):%Y-%m-%d %H:%M:%S}"
    if decision.outcome == "timeout":
        return say("id", "asked.nobody", span=span(rules.timeout), until=at)
    return say("id", "asked.rejected", who=decision.by, at=at, reason=_reason(decision.reason))
