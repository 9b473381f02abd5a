"""A real HTTP server that answers like RabbitMQ's management API about one queue: how many messages it holds."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER, PASSWORD = "monitor", "not a secret either"


class FakeManagement:
    """`queues`: path below /api/queues/ -> what is said of it. `status`: the next answers' status."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.queues: dict[str, dict[str, Any]] = {
            "%2F/everest.jobs.q": {"messages_ready": 0, "messages_unacknowledged": 0}
        }
        self.status = 200
        self.calls = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def holds(self, ready: int = 0, unacked: int = 0) -> None:
        self.queues["%2F/everest.jobs.q"] = {"messages_ready": ready, "messages_unacknowledged": unacked}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self
        login = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                fake.calls += 1
                found = fake.queues.get(self.path.removeprefix("/api/queues/"))
                status = 401 if self.headers.get("Authorization") != login else fake.status if found else 404
                text = json.dumps(found or {}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Tests look at what came of it."""

        return Handler
