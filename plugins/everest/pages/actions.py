"""Which buttons a person gets on a document. Asked of the functions that answer when the button is pressed, so that
nobody is offered what would be refused, and whoever could expect a button reads why it is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everest import approvals, reversal
from everest.intake import corrections
from everest.intake.corrections import Waiting
from everest.pages.access import Permission, Person
from everest.store.reversals import Request
from everest.store.unit_of_work import UnitOfWork

CAN_BE_PREVIEWED = ("PENDING", "WAITING", "FAILED")


@dataclass(frozen=True)
class Actions:
    """offered: names of the buttons. why_not: of those that the document's status suggests, why this person does not
    get them now (as the refusal would say it). undoing: the reversal that stands for the document, on its
    way, failed or posted. correction: the one that waits for another person."""

    offered: frozenset[str]
    why_not: dict[str, str]
    undoing: Request | None
    correction: Waiting | None


def of_document(tx: UnitOfWork, doc: dict[str, Any], who: Person) -> Actions:
    """doc: as `documents.visible` gives it. SELECTs only, no lock: what was true when the page was drawn; the press of
    the button asks again."""
    is_posted = doc["posting_id"] is not None and doc["posting_jenis"] == "POSTING"
    undoing = reversal.standing(tx, doc["posting_id"]) if is_posted else None
    correction = corrections.waiting(tx, doc["transaksi_id"]) if doc["worker_status"] == "FAILED" else None
    asked: dict[str, str | None] = {}
    if doc["worker_status"] in CAN_BE_PREVIEWED:
        asked["preview"] = None  # whoever sees the document may look
    if not who.may(Permission.ACT):
        return Actions(frozenset(asked), {}, undoing, correction)
    if correction is not None:
        asked["authorise"] = corrections.objection(tx, correction, who.name)
    elif doc["worker_status"] == "FAILED":
        asked["rerun"] = None
    if doc["worker_status"] == "FAILED" and doc["header_id"] is not None and doc["posting_id"] is None:
        asked["correct"] = None
    if doc["worker_status"] == "WAITING":
        asked["decide"] = approvals.objection(tx, f"#{doc['shadow_id']}", who.name)
    if is_posted and undoing is None:
        asked["reverse"] = reversal.objection(tx, f"#{doc['shadow_id']}", who.name)
    return Actions(
        frozenset(name for name, why in asked.items() if why is None),
        {name: why for name, why in asked.items() if why is not None},
        undoing,
        correction,
    )
