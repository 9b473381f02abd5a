"""Consumers that are killed or told to stop: the next one finishes what they held."""

from __future__ import annotations

import signal
from collections.abc import Callable

from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ, QUEUE, Process, at_work
from tests.queue_rig import Rows, Running, Vhost, until

DIE_INSTEAD_OF_FINISHING = """
import os, signal
from ingest_consumer import __main__, consumer
consumer.Worker._finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
__main__.main()
"""


def test_a_consumer_killed_between_the_failure_and_the_rejection_leaves_its_letter_to_the_next(
    vhost: Vhost,
    settings: Settings,
    running: Running,
    rows: Rows,
    airflow: FakeAirflow,
    process: Process,
    held: Callable[[], int],
) -> None:
    shadow_id = held()
    victim = process("consume", "--workers", "1", code=DIE_INSTEAD_OF_FINISHING)
    at_work(rows, airflow, shadow_id)
    rows.end(shadow_id, "FAILED", "stok kurang", 422)
    assert victim.wait(30) == -signal.SIGKILL
    assert rows.get(shadow_id)["dead_lettered_at"] is not None
    assert vhost.depth(DLQ) == 0

    running.consumer(settings)

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered by the next consumer")


def test_a_killed_consumers_run_is_found_by_the_next(
    vhost: Vhost,
    settings: Settings,
    running: Running,
    rows: Rows,
    airflow: FakeAirflow,
    process: Process,
    held: Callable[[], int],
) -> None:
    shadow_id = held()
    victim = process("consume", "--workers", "1")
    at_work(rows, airflow, shadow_id)
    victim.kill()
    victim.wait(30)

    running.consumer(settings)

    until(lambda: airflow.count("trigger") == 2, "attached")
    rows.end(shadow_id, "COMPLETED")
    assert vhost.finished() == []
    assert len(airflow.runs) == 1


def test_two_consumers_share_the_queue_and_what_a_killed_one_held_is_finished_by_the_other(
    vhost: Vhost, rows: Rows, airflow: FakeAirflow, process: Process
) -> None:
    vhost.declare()
    shadow_ids = [rows.ours(5100 + number, f"SO-{number}") for number in range(3)]
    first, second = (process("consume", "--workers", "1") for _ in range(2))
    for shadow_id in shadow_ids[:2]:
        vhost.publish(rows.body(shadow_id))
    for shadow_id in shadow_ids[:2]:
        at_work(rows, airflow, shadow_id)  # one worker each: both consumers have one

    first.kill()
    first.wait(30)
    vhost.publish(rows.body(shadow_ids[2]))
    for shadow_id in shadow_ids[:2]:
        rows.end(shadow_id, "COMPLETED")
    at_work(rows, airflow, shadow_ids[2])
    rows.end(shadow_ids[2], "COMPLETED")

    assert vhost.finished() == []
    assert second.poll() is None
    assert len(airflow.runs) == 3, "no run was begun twice"


def test_sigterm_gives_back_what_is_at_work_and_exits_0(
    vhost: Vhost, rows: Rows, airflow: FakeAirflow, process: Process, held: Callable[[], int]
) -> None:
    shadow_id = held()
    consumer = process("consume", "--workers", "1")
    at_work(rows, airflow, shadow_id)

    consumer.send_signal(signal.SIGTERM)

    assert consumer.wait(30) == 0
    assert vhost.depth(QUEUE) == 1
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"
