"""/metrics, /healthz and /readyz, over a real socket."""

from __future__ import annotations

import logging
import socket

import httpx
import pytest

from ingest_consumer import endpoints
from ingest_consumer.endpoints import Endpoint, serve
from ingest_consumer.vitals import STUCK_S, Vitals
from tests.ports import free_port


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vitals(clock: Clock) -> Vitals:
    return Vitals("relay", clock=clock)


@pytest.fixture
def url(vitals: Vitals) -> str:
    port = serve(Endpoint(port=free_port()), vitals)
    assert port
    return f"http://{endpoints.LOOPBACK}:{port}"


def get(url: str) -> httpx.Response:
    return httpx.get(url, timeout=10, trust_env=False)


def test_ready_says_why_not_and_live_only_whether_a_new_start_would_help(
    url: str, vitals: Vitals, clock: Clock
) -> None:
    assert get(f"{url}/healthz").status_code == 200
    answer = get(f"{url}/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["has not begun yet"])

    vitals.turn()
    vitals.know(state="standby")
    answer = get(f"{url}/readyz")
    assert answer.status_code == 200
    assert answer.json() | {"instance": ""} == {
        "name": "relay", "instance": "", "state": "standby", "ready": True, "reasons": [],
    }  # fmt: skip

    vitals.trouble("relay", "broker", "broker: gone")
    assert get(f"{url}/readyz").json()["reasons"] == ["relay: broker: gone"]
    assert get(f"{url}/healthz").status_code == 200, "another start would not bring the broker back"

    clock.now += STUCK_S + 1
    answer = get(f"{url}/healthz")
    assert (answer.status_code, answer.json()["live"]) == (503, False)


def test_metrics_are_prometheus_text_and_tell_what_ready_tells(url: str, vitals: Vitals) -> None:
    vitals.turn()
    vitals.know(state="active")
    answer = get(f"{url}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "\neverest_ready 1.0\n" in answer.text
    assert "\neverest_active 1.0\n" in answer.text
    assert "process_resident_memory_bytes" in answer.text

    vitals.trouble("relay", "database", "gone")
    text = get(f"{url}/metrics").text
    assert "\neverest_ready 0.0\n" in text
    assert 'everest_retries_total{cause="database"} 1.0' in text


def test_other_paths_and_methods_are_refused_and_the_answer_names_no_version(url: str) -> None:
    assert get(f"{url}/").status_code == 404
    assert httpx.post(f"{url}/metrics", timeout=10, trust_env=False).status_code == 501
    head = httpx.head(f"{url}/healthz", timeout=10, trust_env=False)
    assert (head.status_code, head.content) == (200, b"")
    assert "Python" not in head.headers["server"]


def test_without_a_port_nothing_listens_and_nothing_is_counted(vitals: Vitals) -> None:
    assert serve(Endpoint(), vitals) == 0
    assert not vitals.meter.is_on


def test_a_port_that_is_taken_is_an_error_in_the_log_and_no_end(
    vitals: Vitals, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server((endpoints.LOOPBACK, 0)) as other, caplog.at_level(logging.ERROR):
        assert serve(Endpoint(port=other.getsockname()[1]), vitals) == 0
    assert "no metrics on 127.0.0.1 port" in caplog.text
    assert not vitals.meter.is_on
