"""Who ended a run by hand: the entries are those that Airflow 3.3.2 was seen to write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest_consumer.airflow_marks import marked_by

RUN = "opname_posting__1001__7__1"


def entry(number: int, event: str, body: dict[str, Any] | str | None, owner: str | None = "sari") -> dict[str, Any]:
    extra = json.dumps(body) if isinstance(body, dict) else body
    return {"event_log_id": number, "event": event, "owner": owner, "extra": extra}


def who(*entries: dict[str, Any], state: str = "failed") -> str | None:
    return marked_by(entries, "opname_posting", RUN, state)


def bulk(run_id: str = RUN, state: str | None = "failed", action: str = "update", **more: Any) -> dict[str, Any]:
    return {"actions": [{"action": action, "entities": [{"dag_run_id": run_id, "state": state} | more]}]}


@pytest.mark.parametrize("state", ["failed", "success"])
def test_a_state_set_on_the_run_is_a_mark(state: str) -> None:
    assert who(entry(1, "patch_dag_run", {"state": state, "method": "PATCH"}), state=state) == "sari"


@pytest.mark.parametrize(("new_state", "state"), [("failed", "failed"), ("success", "success"), ("skipped", "success")])
@pytest.mark.parametrize("event", ["patch_task_instance", "patch_task_group_instances"])
def test_a_state_set_on_a_task_is_a_mark_on_the_run_that_ends_so(event: str, new_state: str, state: str) -> None:
    assert who(entry(1, event, {"new_state": new_state}), state=state) == "sari"


def test_a_state_set_on_several_runs_at_once_is_a_mark() -> None:
    assert who(entry(1, "bulk_dag_runs", bulk())) == "sari"
    assert who(entry(1, "bulk_dag_runs", bulk(dag_id="opname_posting"))) == "sari"


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("patch_dag_run", {"note": "catatan"}),
        ("patch_dag_run", {"state": "success"}),
        ("patch_dag_run", {"state": "running"}),
        ("patch_dag_run", None),
        ("patch_dag_run", "not JSON"),
        ("patch_dag_run", '["failed"]'),
        ("patch_task_instance", {"new_state": "success"}),
        ("patch_task_instance", {"note": "catatan"}),
        ("bulk_dag_runs", bulk(run_id="another")),
        ("bulk_dag_runs", bulk(dag_id="another")),
        ("bulk_dag_runs", bulk(state=None)),
        ("bulk_dag_runs", bulk(action="delete")),
        ("bulk_dag_runs", {"actions": "?"}),
        ("trigger_dag_run", {"dag_run_id": RUN}),
    ],
)
def test_what_did_not_ask_for_this_state_of_this_run_is_no_mark(event: str, body: Any) -> None:
    """Notes of ours, calls that Airflow refused, other runs."""
    assert who(entry(1, event, body)) is None


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("clear_dag_run", {"dry_run": False}),
        ("post_clear_task_instances", {"dry_run": False, "dag_run_id": RUN}),
        ("clear_dag_runs", {"dry_run": False, "dag_runs": [{"dag_run_id": RUN}]}),
        ("patch_dag_run", {"state": "queued"}),
        ("bulk_dag_runs", bulk(state="queued")),
    ],
)
def test_whoever_puts_the_run_back_to_work_makes_an_older_mark_void(event: str, body: Any) -> None:
    mark = entry(1, "patch_dag_run", {"state": "failed"})

    assert who(mark, entry(2, event, body)) is None
    assert who(entry(0, event, body), mark) == "sari"


@pytest.mark.parametrize(
    "body", [{"dry_run": True, "dag_runs": [{"dag_run_id": RUN}]}, {"dry_run": False, "dag_runs": []}, {}]
)
def test_a_clear_that_did_not_touch_the_run_leaves_the_mark(body: Any) -> None:
    assert who(entry(1, "patch_dag_run", {"state": "failed"}), entry(2, "clear_dag_runs", body)) == "sari"


def test_the_last_person_who_set_it_is_named() -> None:
    entries = [entry(2, "bulk_dag_runs", bulk(), "budi"), entry(1, "patch_dag_run", {"state": "failed"}, "sari")]

    assert who(*entries) == "budi"
    assert who(entry(1, "patch_dag_run", {"state": "failed"}, None)) == "seseorang"
