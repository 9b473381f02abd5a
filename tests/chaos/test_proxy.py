"""The proxy lets through, cuts, shuts, holds back and slows down, and says nothing of its own."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tests.chaos.proxy import LOOPBACK, Switchboard

BLINK_SECONDS = 0.3
"""Long enough for an answer over the loopback; that nothing comes is looked at this long."""


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that answers what it is told."""
    server = socket.create_server((LOOPBACK, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            while data := client.recv(65_536):
                client.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.close()


@pytest.fixture
def board() -> Iterator[Switchboard]:
    board = Switchboard()
    yield board
    board.close()


def dial(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), timeout=10)


def say(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(65_536)


def test_what_is_said_comes_back_and_an_end_is_passed_on(board: Switchboard, echo: int) -> None:
    with closing(dial(board.open(echo).port)) as client:
        assert say(client, b"saldo") == b"saldo"
        client.shutdown(socket.SHUT_WR)
        assert client.recv(10) == b""


def test_a_cut_resets_what_is_open_and_lets_in_what_comes_next(board: Switchboard, echo: int) -> None:
    proxy = board.open(echo)
    with closing(dial(proxy.port)) as client:
        say(client, b"a")
        board.cut(proxy)
        with suppress(ConnectionResetError):
            assert client.recv(10) == b""
    with closing(dial(proxy.port)) as client:
        assert say(client, b"b") == b"b"
    assert proxy.accepted == 2


def test_a_shut_proxy_turns_everybody_away_until_it_opens(board: Switchboard, echo: int) -> None:
    proxy = board.open(echo)
    board.shut(proxy)
    with closing(dial(proxy.port)) as client, suppress(ConnectionResetError):
        assert client.recv(10) == b""

    board.shut(proxy, False)
    with closing(dial(proxy.port)) as client:
        assert say(client, b"b") == b"b"


def test_a_held_connection_stays_silent_and_loses_nothing(board: Switchboard, echo: int) -> None:
    proxy = board.open(echo)
    with closing(dial(proxy.port)) as client:
        say(client, b"a")
        board.hold(proxy)
        client.sendall(b"b")
        client.settimeout(BLINK_SECONDS)
        with pytest.raises(TimeoutError):
            client.recv(10)

        board.hold(proxy, False)
        client.settimeout(10)
        assert client.recv(10) == b"b"


def test_a_server_that_dies_takes_its_clients_with_it(board: Switchboard) -> None:
    server = socket.create_server((LOOPBACK, 0))
    with closing(dial(board.open(server.getsockname()[1]).port)) as client:
        there, _ = server.accept()
        client.sendall(b"a")
        there.recv(10)
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # as the kernel does for it
        there.close()
        server.close()

        with suppress(ConnectionResetError):
            assert client.recv(10) == b""


def test_what_is_forgotten_stays_silent_whatever_comes_later(board: Switchboard, echo: int) -> None:
    proxy = board.open(echo)
    with closing(dial(proxy.port)) as old, closing(dial(proxy.port)) as new:
        say(old, b"a")
        assert board.forget(proxy) >= 1
        board.heal()
        old.sendall(b"b")
        old.settimeout(BLINK_SECONDS)
        with pytest.raises(TimeoutError):
            old.recv(10)
        new.close()
    with closing(dial(proxy.port)) as later:
        assert say(later, b"c") == b"c"


def test_a_slow_proxy_makes_each_piece_wait(board: Switchboard, echo: int) -> None:
    proxy = board.open(echo)
    with closing(dial(proxy.port)) as client:
        say(client, b"a")
        board.slow(proxy, 10 * BLINK_SECONDS)
        client.sendall(b"b")
        client.settimeout(BLINK_SECONDS)
        with pytest.raises(TimeoutError):
            client.recv(10)


def test_a_server_that_is_away_is_an_ended_connection(board: Switchboard) -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as taken:
        port = taken.getsockname()[1]
    proxy = board.open(port)

    with closing(dial(proxy.port)) as client, suppress(ConnectionResetError):
        assert client.recv(10) == b""


def test_healing_opens_all_of_them(board: Switchboard, echo: int) -> None:
    proxies = [board.open(echo) for _ in range(3)]
    board.shut(proxies[0])
    board.hold(proxies[1])
    board.slow(proxies[2], 60)

    board.heal()

    for proxy in proxies:
        with closing(dial(proxy.port)) as client:
            assert say(client, b"a") == b"a"
