"""The fixtures of the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pika.data
import pytest

from ingest_consumer import dead_letters
from ingest_consumer.database import Database
from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import Encoded, Settle, rows_end
from tests.queue_fixtures import airflow, process, rows, running, settings, vhost
from tests.queue_rig import Rows, Vhost

__all__ = ["airflow", "process", "rows", "running", "settings", "vhost"]


@pytest.fixture
def held(vhost: Vhost, rows: Rows, airflow: FakeAirflow) -> Callable[[], int]:
    """Publishes a document whose run stays at work until the test ends it; its shadow id."""

    def publish() -> int:
        vhost.declare()
        shadow_id = rows.ours(5000)
        vhost.publish(rows.body(shadow_id))
        return shadow_id

    return publish


@pytest.fixture
def holder(settings: Settings) -> Iterator[Rows]:
    """Somebody else with a transaction of their own, who can hold a row."""
    database = Database(settings.mysql, settings.mysql_timeout)
    yield Rows(database)
    database.close()


@pytest.fixture
def posts(airflow: FakeAirflow, rows: Rows) -> FakeAirflow:
    """An Airflow whose runs post the document at once."""
    airflow.on_trigger = lambda run_id, conf: rows_end(rows, conf["shadow_id"], "COMPLETED")
    return airflow


@pytest.fixture
def settle(vhost: Vhost, settings: Settings) -> Iterator[Settle]:
    vhost.declare()
    database = Database(settings.mysql, settings.mysql_timeout)

    def once() -> tuple[int, dict[str, int] | None]:
        with closing(vhost.connect()) as connection:
            return dead_letters.settle(connection, database, 5)

    yield once
    database.close()


@pytest.fixture
def any_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test send what pika itself would not write."""
    encode = pika.data.encode_value

    def encode_value(pieces: list[bytes], value: Any) -> int:
        if isinstance(value, Encoded):
            pieces.append(bytes(value))
            return len(value)
        return encode(pieces, value)

    monkeypatch.setattr(pika.data, "encode_value", encode_value)
