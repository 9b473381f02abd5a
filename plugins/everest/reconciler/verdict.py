"""What Airflow's answer about a run means for a job that says PROCESSING. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from everest.words import say
from ingest_consumer.airflow_api import DagRun

ENDED = frozenset({"failed", "success"})


@dataclass(frozen=True)
class BeginAgain:
    """The run ended, or is gone, and nobody recorded why. `reason`: for the run's history and a 503's message."""

    reason: str


@dataclass(frozen=True)
class MarkedByHand:
    """A person ended the run in Airflow; whoever wants it done runs the document again."""

    state: str
    who: str


def judge(dag_run: DagRun | None, is_overdue: bool) -> BeginAgain | MarkedByHand | None:
    """None = leave it: it waits in Airflow's queue or runs, however long, or a delivery may still bring it.

    A mark is known from Airflow's event log alone (`AirflowApi.dag_run`): neither the run nor its task instances keep
    who set a state. Without such an entry an end counts as unrecorded: beginning again does no harm, failing a
    document for nothing would.
    """
    if dag_run is None:
        return BeginAgain(say("id", "engine.run_unknown")) if is_overdue else None
    if dag_run.state not in ENDED:
        return None
    if dag_run.marked_by is not None:
        return MarkedByHand(dag_run.state, dag_run.marked_by)
    if dag_run.state == "failed":
        return BeginAgain(say("id", "engine.run_failed_silently"))
    return BeginAgain(say("id", "engine.run_ended_early"))
