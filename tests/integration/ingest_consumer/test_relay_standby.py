"""Two relays: one is active, the other takes over."""

from __future__ import annotations

import json
import signal

import httpx

from ingest_consumer.settings import Settings
from tests.integration.ingest_consumer.handling import QUEUE, Process, announce, is_published
from tests.private_servers import free_port
from tests.queue_rig import Rows, Running, Vhost, until


def test_of_two_relays_one_is_active_and_the_other_takes_over(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, process: Process
) -> None:
    first = process("relay")
    lock = f"everest.relay.{settings.mysql.schema}"
    holder = until(lambda: rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0], "the first is active")
    running.relay(settings)
    published = announce(rows, 6018)
    until(lambda: is_published(rows, published), "published")
    assert rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0] == holder
    assert vhost.depth(QUEUE) == 1

    first.kill()
    first.wait(30)

    later = announce(rows, 6019)
    until(lambda: is_published(rows, later), "published by the second")
    assert rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0] != holder


def roles(rows: Rows) -> dict[int, str]:
    """What each relay's heartbeat says, by pid."""
    beats = rows.do("SELECT instance, detail FROM process_heartbeats WHERE name = 'relay'")
    return {int(instance.rpartition(":")[2]): json.loads(detail)["state"] for instance, detail in beats}


def role_told(port: int) -> tuple[str, float]:
    """What its health says, and its metrics."""
    place = f"http://127.0.0.1:{port}"
    health = httpx.get(f"{place}/readyz").raise_for_status().json()
    (active,) = (line for line in httpx.get(f"{place}/metrics").text.splitlines() if line.startswith("everest_active"))
    return str(health["state"]), float(active.split()[1])


def test_which_relay_is_active_and_which_stands_by_is_told_and_changes_within_seconds_of_a_kill(
    vhost: Vhost, rows: Rows, process: Process
) -> None:
    ports = [free_port(), free_port()]
    first = process("relay", EVEREST_METRICS_PORT_RELAY=str(ports[0]))
    until(lambda: roles(rows).get(first.pid) == "active", "the first is active")
    second = process("relay", EVEREST_METRICS_PORT_RELAY=str(ports[1]))
    until(lambda: roles(rows).get(second.pid) == "standby", "the second stands by")
    assert [role_told(port) for port in ports] == [("active", 1.0), ("standby", 0.0)]

    first.kill()
    shadow_id = announce(rows, 6024)

    until(lambda: is_published(rows, shadow_id), "published by the one that stood by")
    until(lambda: roles(rows)[second.pid] == "active", "and that it is active is told")
    assert role_told(ports[1]) == ("active", 1.0)


def test_a_relay_that_falls_silent_loses_its_turn_and_does_no_harm_when_it_comes_back(
    vhost: Vhost, rows: Rows, process: Process
) -> None:
    """As when its machine vanishes: the connection stays open, and nobody hears of it."""
    first = process("relay", EVEREST_STANDBY_AFTER_S="2")
    until(lambda: roles(rows).get(first.pid) == "active", "the first is active")
    second = process("relay", EVEREST_STANDBY_AFTER_S="2")
    until(lambda: roles(rows).get(second.pid) == "standby", "the second stands by")

    first.send_signal(signal.SIGSTOP)
    shadow_id = announce(rows, 6025)
    until(lambda: is_published(rows, shadow_id), "published by the one that stood by")
    first.send_signal(signal.SIGCONT)

    later = announce(rows, 6026)
    until(lambda: is_published(rows, later), "published")
    until(lambda: roles(rows)[first.pid] == "standby", "the first has found out")
    assert vhost.depth(QUEUE) == 2


def test_a_relay_whose_database_connection_dies_looks_for_its_lock_again(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    running.relay(settings)
    lock = f"everest.relay.{settings.mysql.schema}"
    holder = until(lambda: rows.do("SELECT IS_USED_LOCK(%s)", lock)[0][0], "active")

    rows.do(f"KILL {int(holder)}")

    shadow_id = announce(rows, 6020)
    until(lambda: is_published(rows, shadow_id), "published")


def test_sigterm_ends_a_relay_with_code_0(rows: Rows, process: Process, vhost: Vhost) -> None:
    relay = process("relay")
    shadow_id = announce(rows, 6021)
    until(lambda: is_published(rows, shadow_id), "published")

    relay.send_signal(signal.SIGTERM)

    assert relay.wait(30) == 0
