"""Dead letters beside the publishing: whatever becomes of reading them, rows go out, and memory has a bound."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker

from ingest_consumer import dead_letters
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests.integration.ingest_consumer.handling import DLQ, announce, is_published
from tests.queue_rig import Rows, Running, Vhost, until

MEGABYTE = "x" * 1024 * 1024


@pytest.fixture
def reader(settings: Settings) -> Iterator[Database]:
    """A reader's own connection."""
    one = Database(settings.mysql, settings.mysql_timeout)
    yield one
    one.close()


def test_letters_are_read_without_the_responses_of_their_rows_and_without_their_bodies(
    vhost: Vhost, rows: Rows, reader: Database
) -> None:
    """A failed document may have thousands of problems in its response, and there may be many of them."""
    vhost.declare()
    told = rows.ours(6301, worker_status="FAILED", error_code=422, error="422 baris salah")
    untold = rows.ours(6302, worker_status="FAILED", error_code=422)
    rows.do(
        "UPDATE rabbit_publish_shadow"
        " SET response = JSON_OBJECT('message', IF(id = %s, 'harga kosong', ''), 'errors', %s)",
        untold,
        MEGABYTE,
    )
    for shadow_id in (told, untold):
        vhost.publish(rows.body(shadow_id) | {"padding": "x" * 50_000}, exchange="everest.jobs.dlx")

    with closing(vhost.connect()) as connection, dead_letters.opened(connection, reader, 5) as box:
        assert box is not None
        letters = box.letters

    assert [letter.reason for letter in letters] == ["422 baris salah", "harga kosong"]
    assert [letter.row.response for letter in letters if letter.row] == [None, None]
    assert [letter.message.text for letter in letters if letter.message] == ["", ""]


def test_a_queue_with_more_letters_than_are_read_at_once_is_settled_whole(
    vhost: Vhost, rows: Rows, reader: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "LETTERS_AT_ONCE", 2, raising=False)
    vhost.declare()
    for number, status in enumerate(["COMPLETED", "FAILED", "CANCELLED", "PENDING", "COMPLETED"]):
        shadow_id = rows.ours(6310 + number, worker_status=status, error_code=422 if status == "FAILED" else None)
        vhost.publish(rows.body(shadow_id), exchange="everest.jobs.dlx")

    with closing(vhost.connect()) as connection:
        found = dead_letters.settle(connection, reader, 5)

    assert found == (3, {"broken": 0, "failed": 1, "at_work": 1})
    assert vhost.depth(DLQ) == 2


def test_a_reader_without_a_channel_frees_the_letters_for_the_next(rows: Rows, reader: Database) -> None:
    class Gone:
        def channel(self) -> Any:
            raise AMQPConnectionError

    with pytest.raises(AMQPConnectionError), dead_letters.opened(Gone(), reader, 0):  # type: ignore[arg-type]
        pytest.fail("there is no channel to read with")

    assert reader.is_open, "the lock would else be free anyway"
    assert rows.do("SELECT IS_FREE_LOCK(%s)", reader.lock_name("letters")) == ((1,),)


def test_rows_go_out_while_the_dead_letters_cannot_be_read(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    """A stream cannot be read one by one, and the broker closes the connection of whoever tries."""
    vhost.api("PUT", f"queues/{vhost.name}/{DLQ}", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    vhost.declare()
    vhost.publish(b"a letter", exchange="everest.jobs.dlx")
    until(lambda: vhost.depth(DLQ) == 1, "the stream counts its letter")
    running.relay(settings, check_every=timedelta(milliseconds=100))
    first = announce(rows, 6320)
    until(lambda: is_published(rows, first), "published")

    second = announce(rows, 6321)

    until(lambda: is_published(rows, second), "published after another look")


def test_rows_go_out_when_the_broker_refuses_the_look_at_dead_letters(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    looks: list[int] = []

    def refused(*_arguments: Any, **_named: Any) -> Any:
        looks.append(1)
        raise ChannelClosedByBroker(403, "ACCESS_REFUSED - read access to queue refused")

    monkeypatch.setattr(dead_letters, "settle", refused)
    running.relay(settings)
    until(lambda: looks, "it looked")

    shadow_id = announce(rows, 6322)

    until(lambda: is_published(rows, shadow_id), "published all the same")
    assert "ACCESS_REFUSED" in caplog.text


def test_rows_go_out_while_a_long_queue_of_dead_letters_is_read(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over = threading.Event(), threading.Event()

    def reads_for_long(*_arguments: Any, **_named: Any) -> Any:
        begun.set()
        over.wait()
        return 0, None

    monkeypatch.setattr(dead_letters, "settle", reads_for_long)
    running.relay(settings)
    begun.wait()

    shadow_id = announce(rows, 6323)

    until(lambda: is_published(rows, shadow_id), "published meanwhile")
    over.set()
