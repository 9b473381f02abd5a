"""The process itself: `python -m everest.reconciler`, and a real broker's answer."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

import httpx
import pytest

from everest.reconciler.management import Management, ManagementUnavailable
from everest.store import database as store
from ingest_consumer.addresses import Login
from ingest_consumer.shadow import JOBS_QUEUE
from tests import builders, fake_airflow
from tests.integration.reconciler.process import environment, start
from tests.integration.reconciler.world import World
from tests.queue_rig import until

PATIENCE_S = 60


def test_the_process_repairs_round_after_round_until_sigterm(world: World) -> None:
    first = world.at_work("failed")
    process = start(environment(world))
    until(lambda: world.status(first.shadow_id) == "PENDING", "begun again")
    second = world.at_work("failed", key="later")
    until(lambda: world.status(second.shadow_id) == "PENDING", "begun again, in a later round")

    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "action=began-again" in output
    assert f"dag_run_id={first.dag_run_id}" in output
    assert fake_airflow.PASSWORD not in output
    assert "Traceback" not in output
    (beat,) = builders.rows(world.conn, "SELECT * FROM process_heartbeats")
    assert (beat["name"], beat["instance"].endswith(f":{process.pid}")) == ("reconciler", True)
    assert json.loads(beat["detail"]) == {"state": "stopped", "metrics_port": 0, "ready": True, "reasons": []}


def test_sigterm_does_not_wait_for_an_airflow_that_hangs(world: World) -> None:
    ticket = world.at_work("failed")
    world.airflow.script("run", "hang")
    process = start(environment(world))
    until(lambda: world.airflow.count("run") == 1, "the question")

    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)  # the call itself would hang for 30 s

    assert process.returncode == 0, output
    assert world.status(ticket.shadow_id) == "PROCESSING"


def test_sigterm_in_the_middle_of_a_statement_is_an_orderly_end(world: World) -> None:
    """The exception of the signal leaves the driver with a result that nobody fetched; closing it fails."""
    process = start(environment(world))
    until(lambda: builders.rows(world.conn, "SELECT 1 FROM process_heartbeats"), "its first heartbeat")
    with closing(store.connect(world.url)) as other:
        other.query("LOCK TABLES workflow_items WRITE")
        asked = (
            "SELECT 1 FROM information_schema.PROCESSLIST"
            " WHERE INFO LIKE '%%JOIN workflow_items%%' AND DB = %s AND ID <> %s"
        )
        until(
            lambda: builders.rows(world.conn, asked, world.url.schema, world.conn.thread_id()), "a statement that waits"
        )
        process.send_signal(signal.SIGTERM)
        other.query("UNLOCK TABLES")
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "Traceback" not in output


def test_once_means_one_round(world: World) -> None:
    ticket = world.at_work("failed")

    output, _ = (process := start(environment(world), "--once")).communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert world.status(ticket.shadow_id) == "PENDING"
    assert "reconciler: one round, 1 row repaired" in output and "a round every" not in output


def test_once_beside_an_active_one_looks_at_nothing_and_says_why(world: World) -> None:
    active = start(environment(world))
    try:
        until(lambda: builders.rows(world.conn, "SELECT 1 FROM process_heartbeats"), "its first heartbeat")
        first = world.at_work("failed")
        until(lambda: world.status(first.shadow_id) == "PENDING", "the one that runs is active")
        once = start(environment(world), "--once")
        second = world.at_work("failed", key="later")
        told, _ = once.communicate(timeout=PATIENCE_S)
        until(lambda: world.status(second.shadow_id) == "PENDING", "begun again by the active one")
    finally:
        active.send_signal(signal.SIGTERM)
        output, _ = active.communicate(timeout=PATIENCE_S)

    assert (once.returncode, "another reconciler is at work" in told) == (5, True), told
    assert "action=" not in told and "Traceback" not in told
    assert output.count("action=began-again") == 2, output
    sent = builders.rows(world.conn, "SELECT COUNT(*) AS n FROM outbox GROUP BY shadow_id")
    assert [row["n"] for row in sent] == [2, 2], "of each the message it began with, and one of the repair"


def test_of_two_processes_one_stands_by_and_takes_over_within_seconds_of_a_kill(world: World) -> None:
    def roles() -> dict[int, str]:
        beats = builders.rows(world.conn, "SELECT instance, detail FROM process_heartbeats")
        return {int(beat["instance"].rpartition(":")[2]): json.loads(beat["detail"])["state"] for beat in beats}

    first = start(environment(world))
    try:
        until(lambda: roles().get(first.pid) == "active", "the first is active")
        second = start(environment(world))
        until(lambda: roles().get(second.pid) == "standby", "the second stands by")
    finally:
        first.kill()
        first.communicate()

    ticket = world.at_work("failed")
    until(lambda: world.status(ticket.shadow_id) == "PENDING", "begun again by the one that stood by")
    until(lambda: roles()[second.pid] == "active", "and that it is active is told")

    second.send_signal(signal.SIGTERM)
    output, _ = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, output


def test_wrong_settings_are_all_named_at_once(world: World) -> None:
    env = environment(world, EVEREST_RECONCILER_PERIOD_S="soon", EVEREST_MYSQL_URL="mysql:nowhere")
    del env["EVEREST_AIRFLOW_URL"]

    output, _ = (process := start(env)).communicate(timeout=PATIENCE_S)

    assert process.returncode == 5
    for name in ("EVEREST_RECONCILER_PERIOD_S", "EVEREST_MYSQL_URL", "EVEREST_AIRFLOW_URL"):
        assert name in output
    assert "Traceback" not in output


# ------------------------------------------------------------------------------------------- a real broker


@pytest.fixture
def broker(servers: Mapping[str, str]) -> Iterator[tuple[httpx.Client, Login, str]]:
    """The management API and a vhost of this test's own."""
    names = [f"EVEREST_RABBIT_MANAGEMENT_{part}" for part in ("URL", "USER", "PASSWORD")]
    if missing := [name for name in names if name not in servers]:
        pytest.fail(f"no broker: {', '.join(missing)} not set; `make up` starts one")
    login = Login(*(servers[name] for name in names))
    vhost = f"everest_test_{os.getpid()}_reconciler"
    with httpx.Client(base_url=f"{login.url.rstrip('/')}/api/", auth=(login.user, login.password)) as api:
        api.put(f"vhosts/{vhost}").raise_for_status()
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        api.put(f"permissions/{vhost}/{login.user}", json=everything).raise_for_status()
        yield api, login, vhost
        api.delete(f"vhosts/{vhost}")


def test_a_real_broker_says_whether_the_jobs_queue_is_empty(broker: tuple[Any, Login, str]) -> None:
    api, login, vhost = broker
    management = Management(login, vhost, timedelta(seconds=5))
    with pytest.raises(ManagementUnavailable):
        management.queue_is_empty()

    def says(expected: bool) -> bool:
        try:
            return management.queue_is_empty() is expected
        except ManagementUnavailable:  # no counts yet
            return False

    api.put(f"queues/{vhost}/{JOBS_QUEUE}", json={"durable": True}).raise_for_status()
    until(lambda: says(True), "empty")
    message = {"properties": {}, "routing_key": JOBS_QUEUE, "payload": "x", "payload_encoding": "string"}
    api.post(f"exchanges/{vhost}/amq.default/publish", json=message).raise_for_status()
    until(lambda: says(False), "not empty any more")
    management.close()
