"""Broker accounts with the rights of `stack.accounts`, on the real broker: what each may do, and what it may not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from celery import Celery
from pika.exceptions import ChannelClosedByBroker

from ingest_consumer import topology
from ingest_consumer.errors import TopologyError
from ingest_consumer.settings import Settings
from stack.accounts import MONITOR, RABBITMQ_ROLES
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import rows_end
from tests.queue_rig import Rows, Running, Vhost, until

QUEUE, DLQ = "everest.jobs.q", "everest.jobs.failed.dlq"
PASSWORD = "a password of this test alone"
ACCESS_REFUSED = 403

As = Callable[[str], Vhost]


@pytest.fixture
def as_account(vhost: Vhost) -> Iterator[As]:
    """The test's vhost, as one of the accounts. Users are the broker's, so each test has its own."""
    made: list[str] = []

    def login(account: str) -> Vhost:
        role, name = RABBITMQ_ROLES[account], f"{vhost.name}_{account}"
        if name not in made:
            vhost.api("PUT", f"users/{name}", {"password": PASSWORD, "tags": role.tags})
            rights = {"configure": role.configure, "write": role.write, "read": role.read}
            vhost.api("PUT", f"permissions/{vhost.name}/{name}", rights)
            made.append(name)
        parts = urlsplit(vhost.amqp_url)
        place = f"{name}:{PASSWORD.replace(' ', '%20')}@{parts.hostname}:{parts.port}"
        return replace(vhost, amqp_url=parts._replace(netloc=place).geturl())

    yield login
    for name in made:
        vhost.api("DELETE", f"users/{name}")


def refused(account: Vhost, do: Callable[[Any], Any]) -> bool:
    with closing(account.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        try:
            do(channel)
            connection.process_data_events(time_limit=0.2)
            return not channel.is_open
        except ChannelClosedByBroker as error:
            return bool(error.reply_code == ACCESS_REFUSED)


def test_a_consumer_makes_the_topology_works_and_rejects_and_a_relay_publishes_and_settles(
    vhost: Vhost, as_account: As, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    good, bad = rows.ours(1001, "A"), rows.ours(1002, "B")
    airflow.on_trigger = lambda run_id, conf: rows_end(
        rows, conf["shadow_id"], "COMPLETED" if conf["shadow_id"] == good else "FAILED"
    )
    for shadow_id in (good, bad):
        rows.do(
            "INSERT INTO outbox (shadow_id, exchange, routing_key, body, available_at)"
            " VALUES (%s, 'everest.jobs.x', 'job.process', %s, UTC_TIMESTAMP(6))",
            shadow_id,
            json.dumps(rows.body(shadow_id)),
        )

    running.consumer(replace(settings, amqp_url=as_account("everest_consumer").amqp_url, management=None))
    until(lambda: vhost.has_consumer(QUEUE), "the topology was made")
    running.relay(replace(settings, amqp_url=as_account("everest_relay").amqp_url, management=None))

    until(lambda: rows.get(bad)["dead_lettered_at"], "both were worked on")
    until(lambda: vhost.depth(DLQ) == 1, "the failed one is a dead letter")
    until(lambda: rows.get(good)["worker_status"] == "COMPLETED", "the other is done")


def test_a_relay_that_comes_before_any_consumer_is_told_what_it_may_not_and_not_to_delete_a_queue(
    vhost: Vhost, as_account: As
) -> None:
    """Only a queue with other arguments is one to empty and delete."""
    with closing(as_account("everest_relay").connect()) as connection, pytest.raises(TopologyError) as refusal:
        topology.ensure_jobs(connection, vhost.amqp_url, None)

    assert refusal.value.message.startswith("ACCESS_REFUSED")
    assert "delete it" not in refusal.value.message


def test_another_application_publishes_jobs_and_nothing_else(vhost: Vhost, as_account: As) -> None:
    vhost.declare()
    publisher = as_account("everest_publisher")

    publisher.publish({"transaksi_id": 1})

    assert vhost.depth(QUEUE) == 1
    assert refused(publisher, lambda ch: ch.basic_publish("everest.jobs.dlx", "job.process", b"{}"))
    assert refused(publisher, lambda ch: ch.basic_publish("", QUEUE, b"{}"))
    assert refused(publisher, lambda ch: ch.basic_get(QUEUE))
    assert refused(publisher, lambda ch: ch.queue_declare("mine"))
    assert refused(publisher, lambda ch: ch.queue_delete(QUEUE))
    assert refused(publisher, lambda ch: ch.queue_purge(QUEUE))
    assert refused(publisher, lambda ch: ch.queue_bind(DLQ, "everest.jobs.x", "job.process"))


@pytest.mark.parametrize(
    ("account", "forbidden"),
    [
        ("everest_consumer", lambda ch: ch.basic_publish("everest.jobs.x", "job.process", b"{}")),
        ("everest_consumer", lambda ch: ch.basic_get(DLQ)),
        ("everest_relay", lambda ch: ch.basic_get(QUEUE)),
        ("everest_relay", lambda ch: ch.basic_publish("", QUEUE, b"{}")),
        ("everest_relay", lambda ch: ch.queue_declare("mine")),
        ("everest_operator", lambda ch: ch.basic_publish("everest.jobs.x", "job.process", b"{}")),
        ("everest_operator", lambda ch: ch.basic_get(QUEUE)),
        (MONITOR, lambda ch: ch.basic_get(QUEUE)),
        (MONITOR, lambda ch: ch.basic_publish("everest.jobs.x", "job.process", b"{}")),
    ],
)
def test_an_account_is_refused_what_its_program_does_not_do(
    vhost: Vhost, as_account: As, account: str, forbidden: Callable[[Any], Any]
) -> None:
    vhost.declare()
    assert refused(as_account(account), forbidden)


def test_an_operator_reads_dead_letters(vhost: Vhost, as_account: As) -> None:
    vhost.declare()
    vhost.publish({"broken": True}, exchange="everest.jobs.dlx")
    with closing(as_account("everest_operator").connect()) as connection:
        topology.ensure_dead_letters(connection)
        method, _, _ = connection.channel().basic_get(DLQ)
    assert method is not None


def test_the_monitor_sees_how_full_a_queue_is_and_changes_no_setting(vhost: Vhost, as_account: As) -> None:
    vhost.declare()
    as_account(MONITOR)
    login = (f"{vhost.name}_{MONITOR}", PASSWORD)

    def ask(method: str, path: str) -> int:
        return httpx.request(method, f"{vhost.management.url}/api/{path}", auth=login, timeout=20).status_code

    assert ask("GET", f"queues/{vhost.name}/{QUEUE}") == httpx.codes.OK
    assert ask("DELETE", f"queues/{vhost.name}/{QUEUE}") in (401, 403)
    assert ask("PUT", "users/mine") in (401, 403)


CELERY_WORKER = """
import os, sys, time
from celery import Celery
app = Celery(broker=sys.argv[1])
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, task_default_queue="default",
                task_default_exchange="default", broker_connection_retry_on_startup=False)
@app.task(name="hold")
def hold(folder):
    with open(f"{folder}/{sys.argv[2]}", "w") as file:
        file.write(str(os.getppid()))
    while not os.path.exists(f"{folder}/enough"):
        time.sleep(0.02)
app.worker_main(["worker", "-O", "fair", "-c1", "-Qdefault,heavy", "-n", sys.argv[2], "--without-gossip",
                 "--without-mingle", "--loglevel", "ERROR"])
"""


def test_a_celery_worker_works_with_its_account_and_what_it_had_when_it_was_killed_comes_to_another(
    vhost: Vhost, as_account: As, tmp_path: Path
) -> None:
    """The broker's part of it; Airflow's is in acceptance/test_celery.py."""
    account = as_account("everest_celery")
    app = Celery(broker=account.amqp_url)
    app.conf.broker_transport_options = {"confirm_publish": True}
    environment = {**os.environ, "C_FORCE_ROOT": "1"}
    started = [
        subprocess.Popen([sys.executable, "-c", CELERY_WORKER, account.amqp_url, name], env=environment)
        for name in ("one", "two")
    ]
    try:
        until(lambda: app.control.ping(timeout=0.5), "a worker that answers")
        app.send_task("hold", args=(str(tmp_path),), queue="heavy")
        (first,) = until(lambda: list(tmp_path.iterdir()), "a worker that took the task")

        os.kill(int(until(first.read_text, "its pid")), signal.SIGKILL)

        until(lambda: len(list(tmp_path.iterdir())) == 2, "the other one took it")
        (tmp_path / "enough").touch()
        until(lambda: vhost.depth("heavy") == 0, "it was acked")
    finally:
        (tmp_path / "enough").touch()
        for one in started:
            one.terminate()
        for one in started:
            one.wait(60)
        app.close()


def test_celerys_account_can_do_nothing_to_a_job_even_where_it_has_its_rights(vhost: Vhost, as_account: As) -> None:
    vhost.declare()
    account = as_account("everest_celery")
    assert refused(account, lambda channel: channel.basic_publish("everest.jobs.x", "job.process", b"{}"))
    assert refused(account, lambda channel: channel.basic_consume(QUEUE, lambda *_: None))
    assert refused(account, lambda channel: channel.queue_delete(QUEUE))
