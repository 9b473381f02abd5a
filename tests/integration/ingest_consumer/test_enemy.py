"""What an enemy, or a broken program, can put into the queue: headers of the broker's own with other things in them,
properties without meaning, bodies of any size, routing keys that are no text. Each message is a letter once and a row
once; nothing is lost, nothing comes twice, and nobody's work stops.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pymysql.connections import Connection

from ingest_consumer import broken_letters, dead_letters
from ingest_consumer.broken_letters import BrokenLetters
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import (
    DLQ,
    DLX,
    QUEUE,
    Encoded,
    Settle,
    dead,
    drop,
    nested,
    rows_end,
    told,
)
from tests.queue_rig import Rows, Running, Vhost, until

X_DEATHS: list[Any] = [
    None,
    "text",
    7,
    True,
    [],
    {},
    [None],
    ["text"],
    [[[]]],
    [{}],
    [{"time": "yesterday", "exchange": 1, "routing-keys": "abc", "queue": None, "reason": [], "count": {}}],
    [{"time": -1, "exchange": {}, "routing-keys": 7, "queue": [], "reason": 0, "count": -(2**63)}],
    [{"time": datetime(9999, 12, 31, tzinfo=UTC), "exchange": "x" * 255, "routing-keys": ["k" * 255] * 300}],
    [{"time": True, "exchange": "\x00", "routing-keys": [b"\xff", {"a": 1}], "queue": "q", "reason": "r", "count": 1}],
    [{"queue": QUEUE, "count": "many"}] * 1000,
    nested(b"F", 1_000),
    nested(b"A", 1_000),
]


def publish(vhost: Vhost, *messages: tuple[bytes, pika.BasicProperties], queue: str = QUEUE) -> None:
    """Into the queue itself, as the broker's own tools do it."""
    with closing(vhost.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for body, properties in messages:
            channel.basic_publish("", queue, body, properties, mandatory=True)


@pytest.mark.usefixtures("any_header")
def test_whatever_stands_in_the_brokers_own_header_each_letter_is_one_and_no_job_waits_for_it(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow, settle: Settle
) -> None:
    """In letters that are read, and in deliveries that are rejected: then the broker adds its own to it."""
    enemies = [
        (b"in the queue %d" % n, pika.BasicProperties(headers={"x-death": one})) for n, one in enumerate(X_DEATHS)
    ]
    letters = [(b"dead %d" % n, pika.BasicProperties(headers={"x-death": one})) for n, one in enumerate(X_DEATHS)]
    good = rows.foreign(4001)
    publish(vhost, *enemies)
    publish(vhost, *letters, queue=DLQ)
    vhost.publish(rows.body(good))

    running.consumer(settings)

    until(lambda: rows.get(good)["worker_status"] == "COMPLETED", "the message behind them")
    until(lambda: vhost.depth(DLQ) == 2 * len(X_DEATHS), "all of them are letters")
    assert vhost.depth(QUEUE) == 0
    for _ in range(2):
        assert settle() == (0, {"broken": 2 * len(X_DEATHS), "failed": 0, "at_work": 0})
    assert {(body, copies) for body, copies, *_ in told(rows)} == {(one.decode(), 1) for one, _ in (*enemies, *letters)}
    drop(rows)
    assert settle() == (2 * len(X_DEATHS), {"broken": 0, "failed": 0, "at_work": 0})
    assert vhost.depth(DLQ) == 0


class AnyText(str):
    """Text that goes over the wire as these bytes."""

    raw: bytes

    def __new__(cls, raw: bytes) -> AnyText:
        made = super().__new__(cls, "any text")
        made.raw = raw
        return made

    def encode(self, *_: Any) -> bytes:
        return self.raw


ODD = AnyText(b"\xff\xfe\x00" + b"x" * 252)
"""Not UTF-8, with a NUL, and as long as AMQP can say."""


@pytest.mark.usefixtures("any_header")
@pytest.mark.long
def test_a_job_is_done_and_a_broken_message_kept_whatever_the_properties_say(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow, settle: Settle
) -> None:
    odd = [
        pika.BasicProperties(content_type=ODD, content_encoding=ODD, correlation_id=ODD, reply_to=ODD, message_id=ODD),
        pika.BasicProperties(type=ODD, app_id=ODD, cluster_id=ODD, headers={ODD: ODD}),
        pika.BasicProperties(priority=255, delivery_mode=1, timestamp=2**64 - 1),
        pika.BasicProperties(priority=0, delivery_mode=2, timestamp=0, content_encoding="gzip"),
        pika.BasicProperties(expiration="3600000", delivery_mode=1),
        pika.BasicProperties(headers={"CC": ["nowhere"], "BCC": ["nowhere"], "x-delivery-count": 10**6, "": ""}),
        pika.BasicProperties(
            headers={"n": Encoded(b"D\xff" + struct.pack(">i", -1)), "d": Encoded(b"d" + struct.pack(">d", 1e300))}
        ),
    ]
    good = [rows.foreign(4100 + number) for number, _ in enumerate(odd)]
    for shadow_id, properties in zip(good, odd, strict=True):
        body = f'{{"transaksi_id": {rows.get(shadow_id)["transaksi_id"]}, "shadow_id": {shadow_id}}}'
        publish(vhost, (body.encode(), properties), (b"broken %d" % shadow_id, properties))

    running.consumer(settings)

    until(lambda: vhost.depth(QUEUE) == 0 and vhost.depth(DLQ) == len(odd), "all of them settled")
    assert [rows.get(one)["worker_status"] for one in good] == ["COMPLETED"] * len(odd)
    assert len(posts.runs) == len(odd)
    assert settle() == (0, {"broken": len(odd), "failed": 0, "at_work": 0})
    assert running.are_alive()


KEYS = [
    "",
    "#",
    "*.process",
    "é" * 127,
    "job.process\x00\n'; --",
    AnyText(b"\xff\xfe"),  # no text
    AnyText(b"\xed\xa0\x80"),  # half a character
]


def test_a_message_with_a_hostile_routing_key_becomes_a_letter_and_stops_nobody(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, settle: Settle
) -> None:
    """A rejected message keeps its key, and a key that is no text cannot be bound. Nor does any of them leave a binding
    behind: whoever thinks of new ones would fill the broker with them."""
    vhost.api("PUT", f"exchanges/{vhost.name}/site.x", {"type": "fanout", "durable": True})
    vhost.api("POST", f"bindings/{vhost.name}/e/site.x/q/{QUEUE}", {"routing_key": ""})
    for number, key in enumerate(KEYS):
        vhost.publish(b"broken %d" % number, exchange="site.x", routing_key=key)

    running.consumer(settings)

    until(lambda: vhost.depth(DLQ) == len(KEYS), "all of them are letters")
    settle()
    assert sorted(body for body, *_ in told(rows)) == [f"broken {number}" for number, _ in enumerate(KEYS)]
    origins: dict[str, str] = dict(told(rows, "body, origin"))
    assert origins["broken 2"] == f"site.x / *.process; {QUEUE}: rejected", "by whom it was sent"
    assert origins["broken 5"] == f"site.x / \\xff\\xfe; {QUEUE}: rejected"
    bound = vhost.api("GET", f"bindings/{vhost.name}/e/{DLX}/q/{DLQ}")
    assert {one["routing_key"] for one in bound} == {"job.process", QUEUE}


@pytest.mark.long
def test_a_queue_that_died_over_a_message_the_broker_buried_is_deleted_and_all_goes_on(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    airflow: FakeAirflow,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What operations.md says to do. RabbitMQ 3.10 dies over it; a later one writes a letter."""
    held, behind = rows.foreign(4201), rows.foreign(4202)
    vhost.declare()
    vhost.publish(rows.body(held))
    running.consumer(settings)
    until(lambda: rows.get(held)["dag_run_id"] in airflow.runs, "the only worker is busy")
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, conf["shadow_id"], "COMPLETED")
    with closing(vhost.connect()) as connection:
        properties = pika.BasicProperties(headers={"x-death": [None]}, expiration="1")
        connection.channel().basic_publish("everest.jobs.x", "job.process", b"enemy", properties)

    def is_buried() -> bool:
        return "cancelled by the broker" in caplog.text or vhost.depth(DLQ) == 1

    until(is_buried, "its process died, or a letter")
    vhost.api("DELETE", f"queues/{vhost.name}/{QUEUE}")
    rows.end(held, "COMPLETED")

    until(lambda: vhost.has_consumer(QUEUE), "declared anew")
    vhost.publish(rows.body(behind))
    until(lambda: rows.get(behind)["worker_status"] == "COMPLETED", "the work goes on")


@pytest.mark.long
def test_a_body_of_ten_megabytes_none_and_no_text_are_letters_and_rows_with_their_beginning(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, settle: Settle
) -> None:
    bodies = [b"x" * 10 * 1024 * 1024, b"", b"\xff\xfe\x00\x01", b"same", b"same"]
    publish(vhost, *((body, pika.BasicProperties(headers={"n": n})) for n, body in enumerate(bodies)))

    running.consumer(settings)

    until(lambda: vhost.depth(DLQ) == len(bodies), "all of them are letters")
    settle()
    found = {(size, len(text), copies) for size, text, copies in told(rows, "body_bytes, body, copies")}
    assert found == {(10 * 1024 * 1024, 1000, 1), (0, 0, 1), (4, len("\\xff\\xfe\x00\x01"), 1), (4, 4, 2)}
    drop(rows)
    assert settle()[0] == len(bodies)
    assert vhost.depth(DLQ) == 0


@pytest.mark.long
def test_two_settlers_at_once_take_what_was_dropped_out_once_and_keep_one_row_of_the_rest(
    vhost: Vhost, rows: Rows, settings: Settings, settle: Settle
) -> None:
    for number in range(20):
        dead(vhost, b"drop %d" % number)
    settle()
    drop(rows)
    for number in range(20):
        dead(vhost, b"keep %d" % number)

    def another(_: int) -> tuple[int, dict[str, int] | None]:
        with closing(vhost.connect()) as connection, closing(Database(settings.mysql, settings.mysql_timeout)) as own:
            return dead_letters.settle(connection, own, 30)

    with ThreadPoolExecutor(3) as pool:
        taken = [number for number, _ in pool.map(another, range(3))]

    assert sorted(taken) == [0, 0, 20]
    assert vhost.depth(DLQ) == 20
    assert told(rows, "COUNT(*), SUM(gone_at IS NULL), SUM(copies)") == [(40, 20, 40)]


class Deaths:
    """A process that is killed at its point number so and so: right before or after a commit or an ack."""

    def __init__(self, dies_at: int) -> None:
        self._left = dies_at

    def point(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, what: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            self.point()
            result = what(*arguments, **named)
            self.point()
            return result

        return called


@pytest.mark.long
def test_a_settler_killed_between_any_two_commits_and_acks_loses_nothing_and_the_next_one_ends_its_work(
    vhost: Vhost, rows: Rows, settings: Settings, settle: Settle
) -> None:
    """Two dropped, one of them twice; one that stays; one that is new; one job that is done."""
    dies_at, was_killed = 0, True
    while was_killed:
        dies_at += 1
        rows.do("DELETE FROM broken_letters")
        with closing(vhost.connect()) as connection:
            connection.channel().queue_purge(DLQ)
        for body in (b"drop a", b"drop b", b"drop a", b"stay"):
            dead(vhost, body)
        settle()
        rows.do("UPDATE broken_letters SET dropped_by = 'x', dropped_at = UTC_TIMESTAMP(6) WHERE body LIKE 'drop%%'")
        done = rows.foreign(4300 + dies_at, worker_status="COMPLETED")
        dead(vhost, b"new")
        dead(vhost, rows.body(done))

        was_killed = _killed(vhost, settings, dies_at)

        taken, stay = settle()
        assert stay == {"broken": 2, "failed": 0, "at_work": 0}, dies_at
        assert 0 <= taken <= 4
        left = sorted(body for _, body in vhost.read(DLQ))
        assert left == [b"new", b"stay"], dies_at
        gone = told(rows, "body, gone_at IS NOT NULL")
        assert sorted(gone) == [("drop a", 1), ("drop b", 1), ("new", 0), ("stay", 0)], dies_at
    assert dies_at > 15, "it came by all of them"


def _killed(vhost: Vhost, settings: Settings, dies_at: int) -> bool:
    """Settles in a process of its own; whether that was killed."""
    child = os.fork()
    if child == 0:
        try:
            deaths = Deaths(dies_at)
            database = Database(settings.mysql, settings.mysql_timeout)
            connection = vhost.connect()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(BlockingChannel, "basic_ack", deaths.around(BlockingChannel.basic_ack))
                patch.setattr(BrokenLetters, "keep", deaths.around(BrokenLetters.keep))
                patch.setattr(
                    broken_letters.queries,
                    "broken_letters_gone",
                    deaths.around(broken_letters.queries.broken_letters_gone),
                )
                patch.setattr("pymysql.connections.Connection.commit", deaths.around(Connection.commit))
                dead_letters.settle(connection, database, 30)
        finally:
            os._exit(0)
    _, how = os.waitpid(child, 0)
    return os.WIFSIGNALED(how)
