"""Every process writes that it is there, and how it is, where pages can read it."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from ingest_consumer.vitals import Pulse, Vitals
from tests.fake_airflow import FakeAirflow
from tests.queue_rig import Rows, Running, until


def beats(rows: Rows, name: str) -> list[dict[str, Any]]:
    found = rows.do(
        "SELECT instance, started_at, seen_at, detail FROM process_heartbeats WHERE name = %s ORDER BY started_at", name
    )
    return [
        {"instance": instance, "started_at": started, "seen_at": seen, **json.loads(detail or "{}")}
        for instance, started, seen, detail in found
    ]


def test_consumer_and_relay_tell_that_they_are_ready_and_at_last_that_they_were_stopped(
    process: Callable[..., subprocess.Popen[str]], rows: Rows
) -> None:
    running = {"relay": process("relay"), "consumer": process("consume", "--workers", "1")}
    for name in running:
        until(lambda name=name: [one for one in beats(rows, name) if one["ready"]], f"the heartbeat of the {name}")
        (beat,) = beats(rows, name)
        assert beat["state"] == "active"
        assert beat["instance"].endswith(f":{running[name].pid}")
    assert beats(rows, "consumer")[0]["workers"] == 1

    for one in running.values():
        one.terminate()
    for name, one in running.items():
        assert one.wait(30) == 0
        (beat,) = beats(rows, name)
        assert beat["state"] == "stopped"


def test_a_consumer_that_waits_for_the_run_it_holds_has_not_stopped_yet(
    held: Callable[[], int], running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    shadow_id = held()
    stop = running.consumer(settings, stop_wait=timedelta(minutes=5))
    until(lambda: airflow.runs, "a run at work")
    until(lambda: [one["state"] for one in beats(rows, "consumer")] == ["active"], "the heartbeat")

    stop.set()
    time.sleep(1)  # the beat that a stop brings comes at once
    assert [one["state"] for one in beats(rows, "consumer")] == ["active"]

    rows.end(shadow_id, "COMPLETED")
    until(lambda: [one["state"] for one in beats(rows, "consumer")] == ["stopped"], "now it has")


def test_a_beat_is_one_row_however_often_and_old_rows_of_that_name_go(settings: Settings, rows: Rows) -> None:
    for name, days in (("relay", 3), ("relay", 0), ("consumer", 3)):
        rows.do(
            "INSERT INTO process_heartbeats (name, instance, started_at, seen_at) VALUES"
            " (%s, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) - INTERVAL %s DAY)",
            name,
            f"old:{days}",
            days,
        )
    vitals = Vitals("relay")
    pulse = Pulse(vitals, rows.database.transaction)
    assert pulse.beat()
    first = beats(rows, "relay")
    assert pulse.beat()
    second = beats(rows, "relay")

    assert sorted(one["instance"] for one in second) == sorted(["old:0", vitals.instance])
    mine = [next(one for one in found if one["instance"] == vitals.instance) for found in (first, second)]
    assert mine[0]["started_at"] == mine[1]["started_at"]
    assert mine[0]["seen_at"] < mine[1]["seen_at"]
    assert [one["instance"] for one in beats(rows, "consumer")] == ["old:3"]


def test_a_database_that_is_away_or_without_the_table_is_told_as_trouble_and_raises_nothing(
    settings: Settings, rows: Rows
) -> None:
    vitals = Vitals("relay")
    vitals.know(state="active")
    away = Database(replace(settings.mysql, port=1), settings.mysql_timeout)
    assert not Pulse(vitals, away.transaction).beat()
    (reason,) = vitals.reasons()
    assert "no heartbeat" in reason

    @contextmanager
    def older_schema() -> Any:
        raise LookupError("no such table")
        yield

    assert not Pulse(vitals, older_schema).beat()
    assert Pulse(vitals, rows.database.transaction).beat()
    assert vitals.reasons() == []


def test_the_last_beat_says_stopped(settings: Settings, rows: Rows) -> None:
    stop = threading.Event()
    vitals = Vitals("reconciler")
    own = Database(settings.mysql, settings.mysql_timeout)
    thread = threading.Thread(target=Pulse(vitals, own.transaction).run, args=(stop, 0.01))
    thread.start()
    until(lambda: beats(rows, "reconciler"), "a beat")
    stop.set()
    thread.join(30)
    own.close()
    (beat,) = beats(rows, "reconciler")
    assert beat["state"] == "stopped"
