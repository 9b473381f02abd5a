"""A person says about a finding that it is known, and why it stands. It goes on being found, counted and named.

It no longer makes the night red. The word holds for exactly what was found: other amounts, another row, or the same
fault coming back after it was gone are a finding that nobody has acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from everest.audit.finding import QUERIES
from everest.errors import Conflict, DocumentMissing, DocumentRefused, Problem
from everest.intake.submit import audit as audit_log
from everest.store.unit_of_work import UnitOfWork

MAX_REASON = 500
"""Characters of the column; a longer reason is refused, not cut."""


@dataclass(frozen=True)
class Standing:
    """A finding as it is stored. `number`: its id. acknowledged_*: None where nobody said anything; at: naive UTC."""

    number: int
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None
    reason: str | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.acknowledged_by is not None

    @property
    def note(self) -> str:
        """What follows the sentence of the finding."""
        said = f"; diakui oleh {self.acknowledged_by}: {self.reason}" if self.is_acknowledged else ""
        return f"[#{self.number}{said}]"

    def as_json(self) -> dict[str, Any]:
        at = self.acknowledged_at
        return {
            "number": self.number,
            "acknowledged_by": self.acknowledged_by,
            "acknowledged_at": None if at is None else f"{at.isoformat()}+00:00",
            "reason": self.reason,
        }


def acknowledge(tx: UnitOfWork, number: int, who: str, reason: str) -> str:
    """Takes a finding as known; returns its sentence. The caller commits.

    Raises DocumentMissing when there is no such finding, Conflict when it is gone or acknowledged already,
    DocumentRefused for an empty or too long reason.
    """
    text = reason.strip()
    if not text or len(text) > MAX_REASON:
        wrong = "alasan kosong" if not text else f"alasan lebih dari {MAX_REASON} karakter"
        raise DocumentRefused(wrong, [Problem(None, "alasan", wrong)])
    finding = _held(tx, number)
    if finding["diakui_oleh"] is not None:
        raise Conflict(f"finding #{number} was acknowledged by {finding['diakui_oleh']}: {finding['diakui_alasan']}")
    QUERIES.acknowledge(tx.conn, number=number, who=who[:100], reason=text)
    _tell(tx, "acknowledge", finding, who, text)
    return str(finding["pesan"])


def withdraw(tx: UnitOfWork, number: int, who: str, reason: str) -> str:
    """Takes the word back; the next night is red again. Raises as `acknowledge` does."""
    finding = _held(tx, number)
    if finding["diakui_oleh"] is None:
        raise Conflict(f"nobody has acknowledged finding #{number}")
    QUERIES.acknowledge(tx.conn, number=number, who=None, reason=None)
    _tell(tx, "withdraw", finding, who, reason)
    return str(finding["pesan"])


def _held(tx: UnitOfWork, number: int) -> dict[str, Any]:
    finding: dict[str, Any] | None = QUERIES.hold_finding(tx.conn, number=number)
    if finding is None:
        raise DocumentMissing(f"there is no finding #{number}; `python -m everest audit` names them")
    if finding["resolved_at"] is not None:
        raise Conflict(f"finding #{number} is gone since {finding['resolved_at']:%Y-%m-%d} UTC: {finding['pesan']}")
    return finding


def _tell(tx: UnitOfWork, action: str, finding: dict[str, Any], who: str, reason: str) -> None:
    audit_log(
        tx.conn,
        actor=who,
        action=action,
        transaksi_id=None,
        nomer_nota=None,
        shadow_id=None,
        workflow_id=None,
        reason=reason,
        before={"invariant": finding["invariant"], "finding": finding["id"], "pesan": finding["pesan"]},
        after={"diakui_oleh": who if action == "acknowledge" else None},
    )
