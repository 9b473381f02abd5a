"""The stack's ports: who decides, and what a person is told when one is taken."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from stack.layout import StackError
from stack.ports import LOOPBACK, Ports, require_free


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server


def test_without_a_choice_the_ports_are_a_block_of_their_own() -> None:
    assert set(astuple(Ports.choose({}))) == {28006, 28032, 28069, 28071, 28072, 28073, 28080, 28092}


def test_a_base_moves_the_block_and_a_single_port_leaves_it() -> None:
    ports = Ports.choose({"EVEREST_PORT_BASE": "31000", "EVEREST_PORT_AIRFLOW": "8080"})
    assert (ports.mariadb, ports.amqp, ports.airflow) == (31006, 31072, 8080)


def test_the_choice_of_the_last_start_is_kept_until_the_environment_says_otherwise(tmp_path: Path) -> None:
    Ports.choose({"EVEREST_PORT_BASE": "31000"}).save(tmp_path / "ports.json")
    earlier = Ports.load(tmp_path / "ports.json")
    assert Ports.choose({}, earlier).airflow == 31080
    assert Ports.choose({"EVEREST_PORT_BASE": "32000"}, earlier).airflow == 32080


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mariadb": 1}', '{"mariadb": "x"}'])
def test_a_broken_ports_file_counts_as_no_choice(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ports.json"
    file.write_text(text)
    assert Ports.load(file) is None


def test_everything_wrong_with_the_ports_is_said_at_once() -> None:
    with pytest.raises(StackError) as raised:
        Ports.choose({"EVEREST_PORT_BASE": "80", "EVEREST_PORT_AMQP": "many"})
    assert "EVEREST_PORT_BASE='80'" in str(raised.value)
    assert "EVEREST_PORT_AMQP='many'" in str(raised.value)


def test_two_services_on_one_port_are_refused() -> None:
    with pytest.raises(StackError, match="the same port"):
        Ports.choose({"EVEREST_PORT_AMQP": "31000", "EVEREST_PORT_AIRFLOW": "31000"})


def test_a_taken_port_is_named_with_its_holder_and_the_variable_that_moves_it(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    ports = replace(Ports.choose({}), amqp=port)
    with pytest.raises(StackError) as raised:
        require_free(ports, ["amqp"])
    assert f"port {port} (amqp) is taken" in str(raised.value)
    assert f"(pid {os.getpid()})" in str(raised.value)
    assert "EVEREST_PORT_AMQP" in str(raised.value)


def test_a_port_from_which_somebody_is_connected_elsewhere_is_told_as_that(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as client:
        ports = replace(Ports.choose({}), amqp=client.getsockname()[1])
        with pytest.raises(StackError, match=rf"taken by a connection of .* \(pid {os.getpid()}\); .*lower ones"):
            require_free(ports, ["amqp"])


def test_the_block_that_is_proposed_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stack.ports.is_free", lambda port: port != 31072)
    with pytest.raises(StackError, match="EVEREST_PORT_BASE=32000"):
        require_free(replace(Ports.choose({}), amqp=31072), ["amqp"])
