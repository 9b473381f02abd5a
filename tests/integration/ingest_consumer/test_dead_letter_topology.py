"""The queues and exchanges that dead letters need, whatever the site has made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import pytest

from ingest_consumer import exits
from ingest_consumer.errors import TopologyError
from ingest_consumer.settings import Settings
from ingest_consumer.starting import check_start
from tests.integration.ingest_consumer.handling import DLQ, DLX, QUEUE, Process
from tests.queue_rig import Rows, Running, Vhost, until


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


@pytest.mark.parametrize("queue", [QUEUE, DLQ])
def test_a_queue_from_which_the_broker_takes_messages_out_by_itself_is_warned_of(
    vhost: Vhost, settings: Settings, caplog: pytest.LogCaptureFixture, queue: str
) -> None:
    vhost.declare()
    policy = {"pattern": queue, "definition": {"max-length": 10, "message-ttl": 60_000}, "apply-to": "queues"}
    vhost.api("PUT", f"policies/{vhost.name}/limits", policy)

    def told() -> bool:  # the policy takes a moment to be there
        check_start(settings, Event())
        return "has a limit" in caplog.text

    until(told, "warned")
    assert f"{queue} has a limit (max-length, message-ttl)" in caplog.text


def test_a_dead_letter_queue_that_is_full_keeps_the_message_in_the_queue_of_jobs_and_says_so(
    vhost: Vhost, running: Running, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """What the consumer writes itself is confirmed; by the broker's own rejection it would be lost."""
    limit = {"x-max-length": 1, "x-overflow": "reject-publish"}
    vhost.api("PUT", f"queues/{vhost.name}/{DLQ}", {"durable": True, "arguments": limit})
    vhost.declare()
    for body in (b"first", b"second"):
        vhost.publish(body, exchange="", routing_key=QUEUE, headers={"x-death": "made up"})

    running.consumer(settings)

    until(lambda: f"{DLQ} takes no letter: is it full" in caplog.text, "said")
    assert [body for _, body in vhost.read(DLQ)] == [b"first"]
    until(lambda: vhost.depth(DLQ) == 1, "there is room again")
    assert [body for _, body in vhost.read(DLQ)] == [b"second"]


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


def test_a_queue_with_other_arguments_ends_the_command_with_code_5(vhost: Vhost, process: Process) -> None:
    vhost.api("PUT", f"queues/{vhost.name}/{QUEUE}", {"durable": True})

    command = process("consume")
    output, _ = command.communicate(timeout=30)

    assert command.returncode == exits.NOT_READY
    assert "everest.jobs.q exists with other arguments" in output
    assert "Traceback" not in output
