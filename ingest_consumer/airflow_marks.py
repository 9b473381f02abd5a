"""Who ended a run by hand, read from Airflow's event log: neither a run nor its task instances keep who set a state.

Tried against Airflow 3.3.2. The log is written before the call is judged, so a refused call stands in it too; hence an
entry counts only if it asked for the state the run is in now, and if no later one put the run back to work. A call
about several runs (the bulk ones) stands there without their run ids, with the list in its body. What leaves no entry
at all, a state set on several tasks at once, counts as set by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ingest_consumer.json_text import object_in

OF_ONE_RUN = (
    "patch_dag_run",
    "patch_task_instance",
    "patch_task_group_instances",
    "clear_dag_run",
    "post_clear_task_instances",
)
OF_SEVERAL_RUNS = ("bulk_dag_runs", "clear_dag_runs")
"""Logged without a run id, and the clear also when it was a dry run."""

_CLEARED = "queued"
# The state a run ends in when a person set this one on a task.
_RUN_STATE_OF = {"failed": "failed", "success": "success", "skipped": "success"}


def marked_by(entries: Iterable[dict[str, Any]], dag_id: str, run_id: str, state: str) -> str | None:
    """`entries`: of the event log, in any order. None = nobody, as far as the log tells."""
    for entry in sorted(entries, key=lambda entry: int(entry.get("event_log_id") or 0), reverse=True):
        for asked in _states_asked_for(entry, dag_id, run_id):
            if asked == _CLEARED:
                return None
            if asked == state:
                return str(entry.get("owner") or "seseorang")
    return None


def _states_asked_for(entry: dict[str, Any], dag_id: str, run_id: str) -> Iterator[str]:
    """What the call wanted of this run."""
    event, body = entry.get("event"), _body(entry)
    if event in ("clear_dag_run", "post_clear_task_instances"):
        yield _CLEARED
    elif event == "patch_dag_run":
        yield str(body.get("state"))  # a note is a PATCH too, without a state
    elif event in OF_ONE_RUN:
        yield _RUN_STATE_OF.get(str(body.get("new_state")), "")
    elif event == "bulk_dag_runs":
        for action in _dicts(body.get("actions")):
            if action.get("action") == "update":
                yield from (str(one.get("state")) for one in _of_run(action.get("entities"), dag_id, run_id))
    elif event == "clear_dag_runs" and body.get("dry_run") is False:
        yield from (_CLEARED for _ in _of_run(body.get("dag_runs"), dag_id, run_id))


def _of_run(entities: Any, dag_id: str, run_id: str) -> list[dict[str, Any]]:
    """Run ids are unique per DAG; ours carry the workflow's name, so an entity without a DAG id is the run's own."""
    return [one for one in _dicts(entities) if one.get("dag_run_id") == run_id and one.get("dag_id") in (None, dag_id)]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _body(entry: dict[str, Any]) -> dict[str, Any]:
    extra = entry.get("extra")
    return object_in(extra) if isinstance(extra, str) else {}
