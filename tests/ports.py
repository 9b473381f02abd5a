"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import socket

from ingest_consumer import endpoints


def free_port() -> int:
    with socket.create_server((endpoints.LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])
