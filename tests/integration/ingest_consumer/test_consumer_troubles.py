"""What a consumer does when something around it fails: Airflow, the broker, the database, or the consumer itself."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import pytest
from pymysql.err import OperationalError

from ingest_consumer import shadow
from ingest_consumer.consumer import Worker, check_start
from ingest_consumer.delivery import Delivery
from ingest_consumer.errors import TopologyError
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.queue_rig import Rows, Running, Vhost, until

QUEUE, DLX, DLQ = "everest.jobs.q", "everest.jobs.dlx", "everest.jobs.failed.dlq"
Process = Callable[..., subprocess.Popen[str]]

DIE_INSTEAD_OF_FINISHING = """
import os, signal
from ingest_consumer import __main__, consumer
consumer.Worker._finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
__main__.main()
"""


@pytest.fixture
def held(vhost: Vhost, rows: Rows, airflow: FakeAirflow) -> Callable[[], int]:
    """Publishes a document whose run stays at work until the test ends it; its shadow id."""

    def publish() -> int:
        vhost.declare()
        shadow_id = rows.ours(5000)
        vhost.publish(rows.body(shadow_id))
        return shadow_id

    return publish


def at_work(rows: Rows, airflow: FakeAirflow, shadow_id: int) -> Any:
    return until(lambda: rows.get(shadow_id)["dag_run_id"] in airflow.runs, "triggered")


@pytest.mark.parametrize(
    ("dag", "word"),
    [
        ({"is_paused": True}, "PAUSED"),
        (None, "MISSING"),
        ({"is_stale": True}, "MISSING"),
        ({"has_import_errors": True}, "BROKEN"),
    ],
)
def test_a_dag_that_would_not_run_postpones_the_message_and_leaves_the_row_pending(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    caplog: pytest.LogCaptureFixture,
    dag: dict[str, Any] | None,
    word: str,
) -> None:
    airflow.dags["opname_posting"] = dag
    vhost.declare()
    shadow_id = rows.ours(5001)
    body, before = rows.body(shadow_id), rows.get(shadow_id)
    vhost.publish(body)

    running.consumer(settings)

    assert vhost.finished() == []
    assert rows.get(shadow_id) == before
    assert airflow.runs == {}
    (message,) = rows.outbox()
    assert json.loads(message["body"]) == body
    assert message["available_at"] - message["created_at"] >= timedelta(seconds=29)
    assert message["published_at"] is None
    assert any(word in record.message and record.levelname == "ERROR" for record in caplog.records)


def test_one_paused_dag_does_not_hold_up_another_workflow(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    airflow.dags["opname_reversal"] = {"is_paused": True}
    vhost.declare()
    paused, ready = rows.ours(5002), rows.ours(5003)
    rows.do("UPDATE workflow_runs SET workflow = 'opname_reversal' WHERE id = %s", rows.get(paused)["workflow_id"])
    rows.do("UPDATE rabbit_publish_shadow SET dag_id = 'opname_reversal' WHERE id = %s", paused)
    vhost.publish(rows.body(paused, workflow="opname_reversal"))
    vhost.publish(rows.body(ready))

    running.consumer(settings)

    at_work(rows, airflow, ready)
    assert rows.get(paused)["worker_status"] == "PENDING"
    assert [message["shadow_id"] for message in rows.outbox()] == [paused]
    rows.end(ready, "COMPLETED")


def test_the_second_message_of_a_paused_dag_does_not_wait_as_the_first_did(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pile of them before another workflow's message would else hold that up for half a minute each."""
    waited: list[int] = []
    pause = Delivery.pause

    def noting(one: Delivery, seconds: float) -> None:
        waited.append(one.ids["shadow_id"])
        pause(one, seconds)

    monkeypatch.setattr(Delivery, "pause", noting)
    airflow.dags["opname_reversal"] = {"is_paused": True}
    vhost.declare()
    *paused, ready = (rows.ours(5020 + number) for number in range(6))
    for one in paused:
        workflow_id = rows.get(one)["workflow_id"]
        rows.do("UPDATE workflow_runs SET workflow = 'opname_reversal' WHERE id = %s", workflow_id)
        rows.do("UPDATE rabbit_publish_shadow SET dag_id = 'opname_reversal' WHERE id = %s", one)
        vhost.publish(rows.body(one, workflow="opname_reversal"))
    vhost.publish(rows.body(ready))

    running.consumer(settings, dag_wait=timedelta(milliseconds=200))

    at_work(rows, airflow, ready)
    assert [message["shadow_id"] for message in rows.outbox()] == paused
    assert set(waited) <= {paused[0], ready}
    rows.end(ready, "COMPLETED")


def test_a_paused_dag_that_is_unpaused_in_time_takes_the_message_it_kept_waiting(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    airflow.dags["opname_posting"] = {"is_paused": True}
    shadow_id = held()
    running.consumer(settings, dag_wait=timedelta(minutes=5))
    until(lambda: airflow.count("dag") >= 1, "asked for the DAG")

    airflow.dags["opname_posting"] = {}

    at_work(rows, airflow, shadow_id)
    assert rows.outbox() == []
    rows.end(shadow_id, "COMPLETED")


@pytest.mark.parametrize("answers", [(404,), (400,), (403,), (429,), (500, 503), ("hang",)])
def test_an_airflow_that_cannot_do_it_now_is_asked_again_and_never_fails_the_document(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    answers: tuple[int | str, ...],
) -> None:
    airflow.script("trigger", *answers)
    shadow_id = held()

    running.consumer(settings, airflow_timeout=timedelta(milliseconds=300))

    at_work(rows, airflow, shadow_id)
    assert airflow.count("trigger") == len(answers) + 1
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"
    rows.end(shadow_id, "COMPLETED")
    assert vhost.finished() == []


def test_an_expired_token_is_replaced(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    running.consumer(settings)
    first = held()
    at_work(rows, airflow, first)
    airflow.expire_tokens()
    rows.end(first, "COMPLETED")

    second = rows.ours(5004)
    vhost.publish(rows.body(second))

    at_work(rows, airflow, second)
    assert airflow.count("token") == 2
    rows.end(second, "COMPLETED")


def test_a_body_of_ours_that_airflow_calls_malformed_is_kept_and_alarmed(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    held: Callable[[], int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    airflow.script("trigger", 422)
    shadow_id = held()

    running.consumer(settings)

    until(lambda: any("OUR BUG" in record.message for record in caplog.records), "the alarm")
    assert rows.get(shadow_id)["worker_status"] == "PROCESSING"
    running.stop()
    assert vhost.depth(QUEUE) == 1
    assert vhost.depth(DLQ) == 0


def test_an_airflow_that_stays_away_beyond_the_hold_limit_postpones_what_it_never_claimed(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow, held: Callable[[], int]
) -> None:
    airflow.script("dag", *[503] * 50)
    shadow_id = held()

    running.consumer(settings, hold_limit=timedelta(milliseconds=100))

    until(rows.outbox, "postponed")
    assert vhost.finished() == []
    assert rows.get(shadow_id)["worker_status"] == "PENDING"


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


def test_h37_a_missing_dead_letter_exchange_is_declared_before_anything_is_rejected_into_it(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    """H37: at start, and when it goes away later."""
    vhost.declare()
    vhost.api("DELETE", f"exchanges/{vhost.name}/{DLX}")
    vhost.publish(b"not a message")
    running.consumer(settings)
    until(lambda: vhost.depth(DLQ) == 1, "the first broken message")

    vhost.api("DELETE", f"exchanges/{vhost.name}/{DLX}")
    vhost.api("DELETE", f"queues/{vhost.name}/{DLQ}")
    vhost.publish(b"not one either")

    until(lambda: vhost.has_queue(DLQ) and vhost.depth(DLQ) == 1, "the second broken message")


@pytest.fixture(params=["into the queue itself", "from an exchange of the site's own"])
def by_another_way(vhost: Vhost, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Publishes with a routing key that is not ours: the broker's own tools and shovels put messages into the queue."""
    vhost.declare()
    if request.param == "into the queue itself":
        return partial(vhost.publish, exchange="", routing_key=QUEUE)
    vhost.api("PUT", f"exchanges/{vhost.name}/site.x", {"type": "fanout", "durable": True})
    vhost.api("POST", f"bindings/{vhost.name}/e/site.x/q/{QUEUE}", {"routing_key": ""})
    return partial(vhost.publish, exchange="site.x", routing_key="opname.selesai")


def test_a_rejected_message_is_a_dead_letter_whatever_its_routing_key(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, by_another_way: Callable[..., None]
) -> None:
    """A rejected message keeps its routing key; a dead-letter exchange without a binding for it drops it silently."""
    failed = rows.ours(5200, worker_status="FAILED", error="stok kurang", error_code=422)
    compensated = rows.ours(5201, run_status="failed", worker_status="FAILED", error_code=500)
    rows.do("UPDATE workflow_runs SET compensation = 'done' WHERE idempotency_key = '5201'")
    by_another_way(b"not a message")
    by_another_way(rows.body(failed))
    by_another_way(rows.body(compensated), headers={"x-everest-dead": True})

    running.consumer(settings)

    first, *others = vhost.finished()
    assert first == b"not a message"
    assert [json.loads(body)["shadow_id"] for body in others] == [failed, compensated]


def test_an_existing_dead_letter_exchange_of_another_type_is_accepted(
    vhost: Vhost, running: Running, settings: Settings
) -> None:
    vhost.api("PUT", f"exchanges/{vhost.name}/{DLX}", {"type": "fanout", "durable": True})
    vhost.api("PUT", f"queues/{vhost.name}/{DLQ}", {"durable": True, "arguments": {"x-max-length": 1000}})
    vhost.declare()
    vhost.publish(b"not a message")

    running.consumer(settings)

    until(lambda: vhost.depth(DLQ) == 1, "dead-lettered")


def test_a_dead_letter_queue_of_ours_is_classic_whatever_the_site_has_as_a_default(vhost: Vhost) -> None:
    vhost.declare()

    found = vhost.api("GET", f"queues/{vhost.name}/{DLQ}")

    assert found["arguments"] == {"x-queue-type": "classic"}


@pytest.mark.parametrize(
    ("kind", "limit", "is_warned"),
    [("quorum", None, True), ("quorum", 20, True), ("quorum", -1, False), ("classic", None, False)],
)
def test_a_dead_letter_queue_that_drops_what_is_read_often_is_warned_of(
    vhost: Vhost,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    limit: int | None,
    is_warned: bool,
) -> None:
    arguments: dict[str, Any] = {"x-queue-type": kind} | ({} if limit is None else {"x-delivery-limit": limit})
    vhost.api("PUT", f"queues/{vhost.name}/{DLQ}", {"durable": True, "arguments": arguments})
    caplog.set_level("INFO")

    check_start(settings, Event())

    assert ("drops a letter" in caplog.text) is is_warned


@pytest.mark.parametrize("asks_management", [True, False])
def test_a_queue_with_other_arguments_is_a_start_up_error_that_names_the_difference(
    vhost: Vhost, settings: Settings, asks_management: bool
) -> None:
    vhost.api("PUT", f"queues/{vhost.name}/{QUEUE}", {"durable": True, "arguments": {"x-message-ttl": 60000}})

    with pytest.raises(TopologyError) as refusal:
        check_start(settings if asks_management else replace(settings, management=None), Event())

    assert QUEUE in refusal.value.message
    if asks_management:
        assert "x-dead-letter-exchange is absent, must be 'everest.jobs.dlx'" in refusal.value.message
        assert "x-message-ttl is 60000, must be absent" in refusal.value.message
    else:
        assert "inequivalent arg" in refusal.value.message


def test_a_queue_with_other_arguments_ends_the_command_with_code_2(vhost: Vhost, process: Process) -> None:
    vhost.api("PUT", f"queues/{vhost.name}/{QUEUE}", {"durable": True})

    output, _ = process("consume").communicate(timeout=30)

    assert "everest.jobs.q exists with other arguments" in output
    assert "Traceback" not in output


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
