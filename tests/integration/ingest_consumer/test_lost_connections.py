"""Connections to the broker and the database that end in the middle: nothing is lost, nothing starts twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pymysql.err import OperationalError

from ingest_consumer import broker, shadow
from ingest_consumer.consumer import Worker
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ, QUEUE, at_work
from tests.queue_rig import Rows, Running, Vhost, until


def test_h34_a_connection_cut_in_the_middle_loses_nothing_and_starts_nothing_twice(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    """H34: the ack of the old delivery is dropped; the redelivery finds its run."""
    shadow_id = held()
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)

    until(lambda: vhost.cut_connections("everest worker"), "the management page shows the connection")

    until(lambda: airflow.count("trigger") == 2, "attached again")
    rows.end(shadow_id, "COMPLETED")
    assert vhost.finished() == []
    assert len(airflow.runs) == 1
    assert rows.get(shadow_id)["attempts"] == 1


def test_a_consumer_cancelled_by_the_broker_subscribes_again(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    """The broker cancels a consumer when its queue goes away, and newer brokers on a delivery timeout."""
    shadow_id = held()
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)

    vhost.api("DELETE", f"queues/{vhost.name}/{QUEUE}")

    until(lambda: vhost.has_consumer(QUEUE), "the queue stands again with its consumer")
    vhost.publish(rows.body(shadow_id))
    until(lambda: airflow.count("trigger") == 2, "attached again")
    rows.end(shadow_id, "COMPLETED")


def test_a_channel_closed_by_the_broker_is_opened_again(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a delivery timeout does: 406, channel closed, the delivery back in the queue."""
    channels: list[tuple[Any, Any]] = []
    subscribe = Worker._subscribe

    def remember(worker: Worker, connection: Any) -> Any:
        channels.append((connection, subscribe(worker, connection)))
        return channels[-1][1]

    monkeypatch.setattr(Worker, "_subscribe", remember)
    shadow_id = held()
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)
    connection, channel = channels[0]

    connection.add_callback_threadsafe(lambda: channel.basic_ack(999))  # an unknown delivery tag is a 406 as well

    until(lambda: airflow.count("trigger") == 2, "attached again")
    rows.end(shadow_id, "COMPLETED")
    assert vhost.finished() == []
    assert len(channels) == 2


def test_a_mark_whose_commit_was_answered_by_a_lost_connection_still_leads_to_the_letter(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It committed, but we cannot know: the second look loses the race against ourselves, and rejects all the same."""
    mark, lost = shadow.mark_dead_lettered, []

    def commit_and_lose_the_answer(conn: Any, *arguments: Any) -> bool:
        won = mark(conn, *arguments)
        if not lost:
            conn.commit()
            lost.append(won)
            raise OperationalError(2013, "Lost connection to server during query")
        return won

    monkeypatch.setattr(shadow, "mark_dead_lettered", commit_and_lose_the_answer)
    shadow_id = held()
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)

    rows.end(shadow_id, "FAILED", "stok kurang", 422)

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")
    assert lost == [True]


def test_an_error_of_our_own_never_stops_the_consumer(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claim = shadow.claim
    vhost.declare()
    poison, good = rows.ours(5010), rows.ours(5011)

    def break_on_poison(conn: Any, shadow_id: int, *arguments: Any) -> bool:
        if shadow_id == poison:
            raise AssertionError("a bug")
        return claim(conn, shadow_id, *arguments)

    monkeypatch.setattr(shadow, "claim", break_on_poison)
    vhost.publish(rows.body(poison))
    vhost.publish(rows.body(good))
    running.consumer(settings)

    at_work(rows, airflow, good)
    assert vhost.depth(DLQ) == 1
    rows.end(good, "COMPLETED")


def test_a_letter_moved_back_while_a_cleared_task_runs_is_not_lost_when_that_fails_again(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    """The row still bears the mark of the first letter, which is the very one this consumer holds."""
    vhost.declare()
    shadow_id = rows.ours(5012, worker_status="PROCESSING", dead_lettered_at="2026-01-01")
    vhost.publish(rows.body(shadow_id), headers={"x-death": [{"queue": QUEUE, "count": 1}]})
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)

    rows.end(shadow_id, "FAILED", "stok kurang", 422)

    until(lambda: vhost.depth(DLQ) == 1, "back in the dead-letter queue")


def test_a_database_connection_that_dies_while_waiting_is_opened_again(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    shadow_id = held()
    running.consumer(settings)
    at_work(rows, airflow, shadow_id)

    kill_other_connections(rows)
    rows.end(shadow_id, "FAILED", "stok kurang", 422)

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")


def kill_other_connections(rows: Rows) -> None:
    others = rows.do(
        "SELECT id FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID() AND command = 'Sleep'"
    )
    assert others
    for (number,) in others:
        rows.do(f"KILL {int(number)}")


def test_a_consumer_started_before_the_broker_and_the_database_are_there_waits_for_them(
    settings: Settings, running: Running
) -> None:
    nowhere = replace(settings.mysql, port=1)
    stop = running.consumer(settings, amqp_url="amqp://guest:guest@127.0.0.1:1/x", mysql=nowhere)
    stop.wait(1.5)
    assert running.are_alive()


@pytest.mark.parametrize(
    ("heartbeat_s", "run_s"),
    [pytest.param(2, 9, id="quick"), pytest.param(10, 60, id="as reported", marks=pytest.mark.long)],
)
def test_h33_heartbeats_are_served_during_a_wait_many_times_their_length(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    heartbeat_s: int,
    run_s: int,
) -> None:
    """The broker cuts a connection that is silent for two heartbeats; the run is at work for more than four."""
    shadow_id = held()
    running.consumer(settings, heartbeat=heartbeat_s, airflow_timeout=timedelta(milliseconds=500))
    at_work(rows, airflow, shadow_id)
    time.sleep(run_s)
    rows.end(shadow_id, "COMPLETED")

    assert vhost.finished() == []
    assert airflow.count("trigger") == 1  # a cut connection would have attached a second time


def test_a_connection_whose_end_was_met_in_closing_a_channel_is_a_broker_in_trouble(vhost: Vhost) -> None:
    """It was an error of ours: the relay kept the connection and met it again in each round, for ever."""
    connection = broker.connect(vhost.amqp_url, "everest relay", 60)
    channel = connection.channel()
    until(lambda: vhost.cut_connections("everest relay") > 0, "cut")

    def is_closed() -> bool:
        broker.close_quietly(channel)
        return not connection.is_open

    until(is_closed, "its end was met, without a word")
    with pytest.raises(broker.BROKER_ERRORS):
        broker.serve(connection, 0)
