"""What a process says of itself: ready or not and why, alive or stuck."""

from __future__ import annotations

import logging

from ingest_consumer.pauses import Complaints
from ingest_consumer.vitals import LATE_S, STALE_S, STUCK_S, Vitals


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def vitals(clock: Clock, patience_s: float = 0.0) -> Vitals:
    one = Vitals("relay", patience_s, clock)
    one.know(state="active")
    return one


def test_a_process_is_not_ready_before_it_knows_what_it_is() -> None:
    one = Vitals("relay")
    one.turn()
    assert one.reasons() == ["has not begun yet"]
    assert one.stuck() == []
    one.know(state="standby")
    assert one.reasons() == []


def test_a_loop_that_stands_still_is_late_first_and_stuck_later() -> None:
    clock = Clock()
    one = vitals(clock)
    one.turn("worker 1")
    clock.now += LATE_S + 1
    one.turn("worker 2")
    assert one.reasons() == ["worker 1: no turn for 121 s"]
    assert one.stuck() == []
    clock.now += STUCK_S
    assert one.stuck() == ["worker 1: no turn for 1021 s"]


def test_a_pause_that_a_loop_makes_on_purpose_is_not_late() -> None:
    clock = Clock()
    one = vitals(clock, patience_s=600)
    one.turn()
    clock.now += LATE_S + 599
    assert one.reasons() == []


def test_what_is_complained_about_holds_up_until_it_is_well_or_nobody_says_it_any_more() -> None:
    clock = Clock()
    one = vitals(clock)
    one.turn()
    complaints = Complaints(logging.getLogger("test"), "worker 1", one)
    complaints.say("broker", "broker: gone")
    complaints.say("job 7", "PENDING, but its run exists")
    assert one.reasons() == ["worker 1: broker: gone"], "one job's trouble is not the process's"
    assert one.detail()["ready"] is False

    complaints.over("broker")
    assert one.reasons() == []

    complaints.say("Airflow", "no answer")
    clock.now += STALE_S + 1
    one.turn()
    assert one.reasons() == []


def test_trouble_that_goes_on_is_heard_though_the_log_says_it_once_a_minute() -> None:
    clock = Clock()
    one = vitals(clock)
    complaints = Complaints(logging.getLogger("test"), "relay", one)
    for _ in range(20):
        one.turn()
        complaints.say("database", "database: gone")
        clock.now += 10
    assert one.reasons() == ["relay: database: gone"]


def test_facts_stand_in_the_detail() -> None:
    one = vitals(Clock())
    one.turn()
    one.know(state="active", workers=4)
    assert one.detail() == {"state": "active", "workers": 4, "ready": True, "reasons": []}
