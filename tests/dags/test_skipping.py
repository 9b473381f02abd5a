"""What a task that leaves skips: everything behind it, each slot of a for_each by its number."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import DownstreamTasksSkipped

from everest.workflow.airflow_dag import to_dag
from everest.workflow.builder import workflow


def work(state: dict[str, Any], step: Any) -> None:
    """Works."""


def test_the_slots_of_a_later_for_each_are_skipped_with_the_rest() -> None:
    built = (
        workflow("skips")
        .then(work, name="first")
        .for_each("items", work, name="each", concurrency=3)
        .parallel({"left": work, "right": work}, name="both")
        .then(work, name="last")
        .build()
    )
    dag = to_dag(built)

    with pytest.raises(DownstreamTasksSkipped) as left:
        dag.get_task("first")._skip_the_rest()  # type: ignore[union-attr]
    with pytest.raises(DownstreamTasksSkipped) as slot_left:
        dag.get_task("both.right")._skip_the_rest()  # type: ignore[union-attr]

    each = [("each", 0), ("each", 1), ("each", 2)]
    assert list(left.value.tasks) == ["both.left", "both.right", *each, "last"]
    assert list(slot_left.value.tasks) == ["last"]
