"""Back-off grows, is bounded and jittered; complaints are rare."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from ingest_consumer.pauses import FORGOTTEN_AFTER_S, Backoff, Complaints


def test_back_off_grows_to_its_bound_and_begins_anew_after_a_success() -> None:
    backoff = Backoff(timedelta(seconds=8), first_s=1)
    pauses = [backoff.next_s() for _ in range(10)]

    assert 1 <= pauses[0] <= 2
    assert all(8 <= pause <= 9 for pause in pauses[5:])
    assert len(set(pauses[5:])) > 1
    backoff.reset()
    assert backoff.next_s() <= 2


def test_the_same_trouble_is_told_once_a_minute_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"), "worker 1")
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            complaints.say("broker", "broker is down")
        complaints.say("database", "database is down")
        complaints.over("broker")
        complaints.over("broker")

    assert [record.message for record in caplog.records] == [
        "worker 1: broker is down",
        "worker 1: database is down",
        "worker 1: broker is well again",
    ]


def test_trouble_of_a_million_jobs_is_not_remembered_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    complaints = Complaints(logging.getLogger("test"), "reconciler", clock=lambda: now)
    with caplog.at_level(logging.INFO):
        for job in range(1000):
            now += 10
            complaints.say(f"job {job}", "somebody holds it")
        complaints.over("job 0")
        complaints.over("job 999")

    assert len(complaints._said) < FORGOTTEN_AFTER_S / 10
    assert caplog.records[-1].message == "reconciler: job 999 is well again"
    assert len(caplog.records) == 1001
