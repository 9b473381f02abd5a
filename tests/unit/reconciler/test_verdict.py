"""What Airflow's answer about a run means."""

from __future__ import annotations

import pytest

from everest.reconciler.verdict import BeginAgain, MarkedByHand, judge
from ingest_consumer.airflow_api import DagRun


@pytest.mark.parametrize("is_overdue", [False, True])
@pytest.mark.parametrize("state", ["queued", "running", "a state of a later Airflow"])
def test_a_run_that_has_not_ended_is_left_whatever_its_age(state: str, is_overdue: bool) -> None:
    assert judge(DagRun(state), is_overdue) is None


@pytest.mark.parametrize("state", ["failed", "success"])
def test_an_end_without_a_mark_begins_again(state: str) -> None:
    assert isinstance(judge(DagRun(state), False), BeginAgain)


@pytest.mark.parametrize("state", ["failed", "success"])
def test_an_end_that_a_person_set_is_theirs(state: str) -> None:
    assert judge(DagRun(state, "sari"), True) == MarkedByHand(state, "sari")


def test_an_unknown_run_may_still_come_while_a_delivery_is_held() -> None:
    assert judge(None, False) is None
    assert isinstance(judge(None, True), BeginAgain)
