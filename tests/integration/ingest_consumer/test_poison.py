"""One message, letter or row that cannot be read, or cannot be said, holds up no other: whatever a foreign publisher
puts into its headers, and whatever stands in the outbox.
"""

from __future__ import annotations

import json
import struct
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pika
import pytest

from ingest_consumer import dead_letters, shadow
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import Encoded, nested
from tests.queue_rig import Rows, Running, Vhost, until

YEAR_57888 = 1_764_633_600_000
"""Now, by a sender that counts in milliseconds where AMQP means seconds."""


@pytest.mark.usefixtures("any_header")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(Encoded(b"T" + struct.pack(">Q", YEAR_57888)), id="a timestamp in milliseconds"),
        pytest.param(Encoded(b"T" + struct.pack(">Q", 2**64 - 1)), id="the last timestamp"),
        pytest.param(Encoded(b"S\x00\x00\x00\x02\xff\xfe"), id="text that is not UTF-8"),
        pytest.param([1, {"at": Encoded(b"T" + struct.pack(">Q", YEAR_57888))}], id="deep inside"),
        pytest.param(nested(b"F", 1_000), id="tables in tables"),
        pytest.param(nested(b"A", 1_000), id="arrays in arrays"),
        pytest.param([nested(b"F", 1_000), {"in": nested(b"A", 10_000)}], id="deep in several places"),
    ],
)
def test_a_header_that_python_cannot_express_stops_no_worker_and_the_other_headers_are_read(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, posts: FakeAirflow, value: Any
) -> None:
    vhost.declare()
    failed = rows.ours(1001, run_status="failed", worker_status="FAILED", error_code=422, error="salah")
    vhost.publish(rows.body(failed), headers={"at": value, "x-everest-dead": True})
    good = rows.foreign(1002)
    vhost.publish({"transaksi_id": 1002, "shadow_id": good}, headers={"sent": value})

    running.consumer(settings)

    until(lambda: rows.get(good)["worker_status"] == "COMPLETED", "the message behind it")
    assert vhost.finished() == []
    assert rows.get(failed)["n"] == 2, "it was seen that the letter had been moved back by hand"


def test_a_letter_whose_sender_counts_in_milliseconds_is_listed_and_the_relay_goes_on(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    vhost.declare()
    with closing(vhost.connect()) as connection:
        properties = pika.BasicProperties(timestamp=YEAR_57888)
        connection.channel().basic_publish("everest.jobs.dlx", "job.process", b"nonsense", properties)
    shadow_id = rows.ours(1003, publish_status="PENDING")
    with rows.database.transaction() as conn:
        body = json.dumps(rows.body(shadow_id))
        shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=rows.get(shadow_id)["workflow_id"], body=body)

    running.relay(settings)

    until(lambda: rows.get(shadow_id)["publish_status"] == "PUBLISHED", "published")
    with closing(vhost.connect()) as connection:

        def letters() -> list[dead_letters.Letter]:
            with dead_letters.opened(connection, rows.database, 5) as box:
                return box.letters if box is not None else []

        (letter,) = until(letters, "the letter")
    assert letter.died_at is None
    assert letter.as_json()["age_seconds"] is None


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param({"routing_key": "\U0001f600" * 100}, id="a key longer than AMQP can say"),
        pytest.param({"headers": {"number": 2**70}}, id="a header larger than AMQP can say"),
        pytest.param({"exchange": "everest.nowhere.x"}, id="an exchange that does not exist"),
    ],
)
def test_an_outbox_row_that_cannot_be_sent_waits_its_turn_and_holds_up_no_other(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, poison: dict[str, Any]
) -> None:
    vhost.declare()
    first, second = rows.ours(1004, publish_status="PENDING"), rows.ours(1005, publish_status="PENDING")
    with rows.database.transaction() as conn:
        for shadow_id, extra in ((first, poison), (second, {})):
            body = json.dumps(rows.body(shadow_id))
            due = datetime(2026, 1, 1, tzinfo=UTC)
            shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=None, body=body, available_at=due, **extra)

    running.relay(settings)

    until(lambda: rows.get(second)["publish_status"] == "PUBLISHED", "the row behind it")
    assert vhost.depth("everest.jobs.q") == 1
    (row, _) = rows.outbox()
    assert row["published_at"] is None
    assert row["attempts"] >= 1
    assert row["last_error"]


def test_a_message_that_is_too_deep_for_the_relay_is_sent_as_it_is_and_holds_up_no_other(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    """Sent by another program, taken by the consumer, which reads deeper, and postponed before a paused DAG; its job
    has come to a wait meanwhile, by a copy."""
    vhost.declare()
    first = rows.ours(1006, worker_status="WAITING")
    second = rows.ours(1007, publish_status="PENDING")
    deep = '{"shadow_id": 1, "extra": ' + "[" * 5_000 + "]" * 5_000 + "}"
    with rows.database.transaction() as conn:
        for shadow_id, body in ((first, deep), (second, json.dumps(rows.body(second)))):
            due = datetime(2026, 1, 1, tzinfo=UTC)
            shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=None, body=body, available_at=due)

    running.relay(settings)

    until(lambda: rows.get(second)["publish_status"] == "PUBLISHED", "the row behind it")
    assert sorted(len(body) for _, body in vhost.read("everest.jobs.q"))[1] == len(deep)
