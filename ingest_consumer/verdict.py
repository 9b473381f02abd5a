"""How a delivery ends: what the broker is told, and what the log, the figures and the Airflow run are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


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
