"""Whether a run would start: what a delivery asks before it claims its row, for a run of a paused DAG stays queued."""

from __future__ import annotations

from ingest_consumer.airflow_api import AirflowApi, DagState

DAG_STATE_TTL_S = 2.0


class DagGate:
    """Whether a DAG would run now, asked about every 2 s. Workers share one; that two ask at once does no harm.

    It also remembers since when a DAG would not: the first message of a paused DAG waits for it, those behind it find
    that somebody has waited already, and hold up nobody.
    """

    def __init__(self, api: AirflowApi) -> None:
        self._api = api
        self._known: dict[str, tuple[float, DagState]] = {}
        self._not_ready_since: dict[str, float] = {}

    def state(self, dag_id: str, now: float) -> DagState:
        """Raises AirflowUnavailable."""
        asked_at, state = self._known.get(dag_id, (-DAG_STATE_TTL_S, DagState.MISSING))
        if now - asked_at >= DAG_STATE_TTL_S:
            state = self._api.dag_state(dag_id)
            self._known[dag_id] = (now, state)
            if state is DagState.READY:
                self._not_ready_since.pop(dag_id, None)
            else:
                self._not_ready_since.setdefault(dag_id, now)
        return state

    def not_ready_s(self, dag_id: str, now: float) -> float:
        """For how long it is known that no run of it would start."""
        return now - self._not_ready_since.get(dag_id, now)
