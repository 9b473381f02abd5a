"""Which definition a run goes by where several are deployed."""

from __future__ import annotations

from typing import Any

from everest.workflow import deployment
from everest.workflow.builder import workflow


def work(state: dict[str, Any], step: Any) -> None:
    """Works."""


CURRENT = workflow("report", version="1").then(work).then(work, name="more").build()
BEFORE = workflow("report", version="1", dag_id="report_before").then(work).build()


def test_of_two_with_one_version_it_is_the_one_with_the_runs_hash() -> None:
    assert deployment.among([CURRENT, BEFORE], "report", "1", BEFORE.definition_hash) is BEFORE
    assert deployment.among([CURRENT, BEFORE], "report", "1", CURRENT.definition_hash) is CURRENT


def test_where_none_has_the_hash_it_is_the_first_of_the_version() -> None:
    assert deployment.among([CURRENT, BEFORE], "report", "1", "gone") is CURRENT
    assert deployment.among([CURRENT, BEFORE], "report", "2", CURRENT.definition_hash) is None
