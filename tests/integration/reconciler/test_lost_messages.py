"""The rows of the reconciler table about jobs that wait for a message or a clock that will not come."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everest.settings import Settings
from ingest_consumer.message import decode
from tests import builders
from tests.integration.reconciler.world import LONG_AGO, World


def lost(world: World) -> int:
    shadow_id = world.sent()
    world.age(LONG_AGO)
    return shadow_id


def test_a_message_that_is_nowhere_is_sent_again_for_the_same_run(world: World) -> None:
    shadow_id = lost(world)
    before = world.row(shadow_id)

    assert world.reconciler().round() == 1

    row = world.row(shadow_id)
    (message,) = world.unsent()
    assert (row["worker_status"], row["dag_run_id"], row["n"]) == ("PENDING", before["dag_run_id"], 1)
    assert row["requeued"] == 1
    assert decode(message["body"].encode()).dag_run_id == before["dag_run_id"]
    assert (message["exchange"], message["routing_key"]) == ("everest.jobs.x", "job.process")
    assert world.run_of(shadow_id)["recovered"] == 0


@pytest.mark.parametrize("is_published", [True, False])
def test_a_message_of_an_hour_that_is_still_to_come_is_sent_now(world: World, is_published: bool) -> None:
    """A clock that was ahead wrote it: it is due, or was published, in an hour. Twice starts nothing twice."""
    shadow_id = world.sent()
    if not is_published:
        world.execute("UPDATE outbox SET published_at = NULL")
    world.age(-LONG_AGO)
    reconciler = world.reconciler()

    # The run's own times are set right, too.
    assert [reconciler.round(), reconciler.round()] == [2, 0]

    assert world.status(shadow_id) == "PENDING"
    assert len(world.unsent()) == (1 if is_published else 2)


def test_a_foreign_row_of_an_hour_that_is_still_to_come_is_sent_now(world: World) -> None:
    document = builders.document(world.conn)
    world.age(-LONG_AGO)

    assert world.reconciler().round() == 1
    assert world.row(document.shadow_id)["requeued"] == 1


def test_a_status_that_somebody_spelled_by_hand_is_put_right_and_then_repaired_like_any_other(world: World) -> None:
    shadow_id = lost(world)
    world.execute("UPDATE rabbit_publish_shadow SET worker_status = 'pending'")
    reconciler = world.reconciler()

    assert [reconciler.round(), reconciler.round()] == [2, 0]

    row = world.row(shadow_id)
    assert (row["worker_status"], row["requeued"], len(world.unsent())) == ("PENDING", 1, 1)


def test_it_is_sent_again_at_most_once_in_ten_minutes(world: World) -> None:
    shadow_id = lost(world)
    reconciler = world.reconciler()

    assert [reconciler.round(), reconciler.round()] == [1, 0], "its copy is on its way"
    world.publish()
    world.age(timedelta(minutes=6))
    assert reconciler.round() == 0, "too soon after the last time"
    world.age(timedelta(minutes=5))
    assert reconciler.round() == 1
    assert world.row(shadow_id)["requeued"] == 2


@pytest.mark.parametrize("publish_status", ["PUBLISHED", "PENDING"])
def test_a_foreign_message_is_sent_again_in_its_own_form_whatever_its_publisher_says(
    world: World, publish_status: str
) -> None:
    document = builders.document(world.conn, publish_status=publish_status)
    world.age(LONG_AGO)

    assert world.reconciler().round() == 1

    (message,) = world.unsent()
    assert json.loads(message["body"]) == document.message
    row = world.row(document.shadow_id)
    assert (row["worker_status"], row["dag_run_id"], row["requeued"]) == ("PENDING", None, 1)


def test_a_foreign_row_is_as_old_as_its_writers_zone_says(world: World) -> None:
    wib = ZoneInfo("Asia/Jakarta")
    site = Settings(foreign_zone=wib)
    reconciler = world.reconciler(replace(world.settings, site=site))
    document = builders.document(world.conn)
    just_now = datetime.now(UTC).astimezone(wib).replace(tzinfo=None)

    world.execute("UPDATE rabbit_publish_shadow SET created_at = %s", just_now)
    assert reconciler.round() == 0
    world.execute("UPDATE rabbit_publish_shadow SET created_at = %s", just_now - LONG_AGO)
    assert reconciler.round() == 1
    assert world.row(document.shadow_id)["requeued"] == 1


@pytest.mark.parametrize("counts", [{"ready": 1}, {"unacked": 1}])
def test_nothing_is_lost_while_the_queue_holds_messages(world: World, counts: dict[str, int]) -> None:
    lost(world)
    world.broker.holds(**counts)

    assert world.reconciler().round() == 0
    assert world.unsent() == []


@pytest.mark.parametrize("dag", [{"is_paused": True}, {"has_import_errors": True}, {"is_stale": True}, None])
def test_nothing_is_sent_for_a_dag_that_would_not_start_it(world: World, dag: dict[str, Any] | None) -> None:
    lost(world)
    world.airflow.dags["two"] = dag

    assert world.reconciler().round() == 0
    assert world.unsent() == []


@pytest.mark.parametrize("state", ["queued", "running"])
def test_nothing_is_sent_for_a_run_that_is_still_to_end(world: World, state: str) -> None:
    shadow_id = lost(world)
    world.airflow.has(world.row(shadow_id)["dag_run_id"], state)

    assert world.reconciler().round() == 0
    assert world.unsent() == []


@pytest.mark.parametrize("state", ["success", "failed"])
def test_a_run_that_ended_in_hours_that_a_restore_took_back_brings_nothing_any_more(world: World, state: str) -> None:
    """Sent again, the message finds the ended run, and that is begun again as the next one (decision 0045)."""
    shadow_id = lost(world)
    world.airflow.has(world.row(shadow_id)["dag_run_id"], state)

    reconciler = world.reconciler()
    assert reconciler.round() == 1
    assert len(world.unsent()) == 1
    world.publish()
    ticket = world.claimed(shadow_id)
    world.age(LONG_AGO)
    assert reconciler.round() == 1
    assert world.row(shadow_id)["n"] == ticket.n + 1


def test_a_message_that_waits_in_the_outbox_is_not_lost(world: World) -> None:
    """A broker that is down for hours leaves it there; a consumer before a paused DAG puts it there."""
    lost(world)
    world.execute("UPDATE outbox SET published_at = NULL")
    before = world.picture()

    assert world.reconciler().round() == 0
    assert world.picture() == before


def test_a_message_that_was_published_lately_is_not_lost(world: World) -> None:
    lost(world)
    world.execute("UPDATE outbox SET published_at = UTC_TIMESTAMP(6)")

    assert world.reconciler().round() == 0


@pytest.mark.parametrize("trouble", ["no such queue", "refused", "no counts yet", "down"])
def test_a_broker_that_cannot_say_is_no_reason_to_send(world: World, trouble: str) -> None:
    lost(world)
    if trouble == "no such queue":
        world.broker.queues.clear()
    elif trouble == "refused":
        world.broker.status = 503
    elif trouble == "down":  # RabbitMQ 3.10 says 0 of a queue whose process has died for good
        world.broker.queues["%2F/everest.jobs.q"]["state"] = "down"
    else:
        world.broker.queues["%2F/everest.jobs.q"] = {"name": "everest.jobs.q"}

    assert world.reconciler().round() == 0
    assert world.broker.calls == 1
    assert world.unsent() == []


def overslept(world: World) -> int:
    shadow_id = lost(world)
    world.execute("UPDATE rabbit_publish_shadow SET worker_status = 'WAITING'")
    world.execute("UPDATE workflow_runs SET wakes_at = UTC_TIMESTAMP(6) - INTERVAL 20 SECOND")
    return shadow_id


def test_a_delay_that_is_over_and_has_no_outbox_row_is_ended_once(world: World) -> None:
    shadow_id = overslept(world)
    reconciler = world.reconciler()

    assert [reconciler.round(), reconciler.round()] == [1, 0]

    row, run = world.row(shadow_id), world.run_of(shadow_id)
    assert (row["worker_status"], row["n"], run["n"]) == ("PENDING", 2, 2)
    assert (run["wakes_at"], run["recovered"]) == (None, 0)
    assert [json.loads(message["body"])["n"] for message in world.unsent()] == [2]


def test_a_delay_that_has_its_outbox_row_is_the_relays(world: World) -> None:
    overslept(world)
    world.execute("UPDATE outbox SET published_at = NULL")

    assert world.reconciler().round() == 0


def test_a_delay_that_is_not_over_goes_on(world: World) -> None:
    overslept(world)
    world.execute("UPDATE workflow_runs SET wakes_at = UTC_TIMESTAMP(6) + INTERVAL 20 SECOND")

    assert world.reconciler().round() == 0
