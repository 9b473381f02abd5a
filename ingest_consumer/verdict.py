"""How a delivery ends: what the broker is told, and what the log, the figures and the Airflow run are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from ingest_consumer.shadow import Shadow


class Outcome(Enum):
    """What to tell the broker."""

    ACK = "ack"
    REJECT = "reject"
    PUT_BACK = "put back"


_ENDS = {Outcome.ACK: "acked", Outcome.REJECT: "dead_lettered", Outcome.PUT_BACK: "put_back"}


@dataclass(frozen=True)
class Verdict:
    """The end of a delivery: outcome, why (for the log), and the note to leave on its Airflow run, if any.

    ended: the label of an end that is neither plain ack nor rejection. stages: seconds that the job spent in each.
    """

    outcome: Outcome
    why: str
    dag_id: str | None = None
    dag_run_id: str | None = None
    note: str | None = None
    ended: str | None = None
    stages: Mapping[str, float] = field(default_factory=dict)

    @property
    def how(self) -> str:
        return self.ended or _ENDS[self.outcome]


def stages(row: Shadow, claimed_at: datetime | None) -> dict[str, float]:
    """Seconds of the job in each stage, by the database's clock alone. A row that was published again meanwhile does
    not know its first time."""
    if claimed_at is None or row.worker_at is None:
        return {}
    spent = {"processing_to_end": (row.worker_at - claimed_at).total_seconds()}
    if row.published_at is not None and row.n is not None and row.published_at <= claimed_at:
        spent["publish_to_processing"] = (claimed_at - row.published_at).total_seconds()
    return spent
