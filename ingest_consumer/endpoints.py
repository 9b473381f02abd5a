"""What others ask a process over HTTP: /metrics for Prometheus, /healthz and /readyz for whoever watches over it.

Off unless a port is set. On the loopback unless told otherwise: it needs no password, and says nothing but numbers and
the reasons why a process is not ready. Answers never look at a server; they tell what the process knows already.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass
from typing import Any

from ingest_consumer import metrics
from ingest_consumer.vitals import Vitals

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
CLIENT_TIMEOUT_S = 5.0
"""A client that does not finish its question is dropped."""


@dataclass(frozen=True)
class Endpoint:
    """Where to listen. port 0: nowhere; nothing is counted then, and no library for it imported."""

    address: str = LOOPBACK
    port: int = 0


def answer(vitals: Vitals, path: str) -> tuple[int, str, bytes]:
    """Status, content type and body for one path."""
    if path == "/metrics":
        vitals.meter.set(metrics.READY, float(not vitals.reasons()))
        vitals.meter.set(metrics.ACTIVE, float(vitals.is_active))
        return 200, "text/plain; version=0.0.4; charset=utf-8", vitals.meter.render()
    if path == "/healthz":
        stuck = vitals.stuck()
        return _said(not stuck, {"live": not stuck, "reasons": stuck})
    if path == "/readyz":
        detail = vitals.detail()
        return _said(bool(detail["ready"]), {"name": vitals.name, "instance": vitals.instance, **detail})
    return 404, "text/plain; charset=utf-8", b"/metrics /healthz /readyz\n"


def _said(is_well: bool, body: dict[str, Any]) -> tuple[int, str, bytes]:
    return 200 if is_well else 503, "application/json", json.dumps(body, ensure_ascii=False).encode() + b"\n"


def serve(endpoint: Endpoint, vitals: Vitals) -> int:
    """Answers from a thread of its own until the process ends; the port, 0 if it is off or cannot be had.

    A port that is taken is an error in the log and no reason to leave documents unposted.
    """
    if not endpoint.port:
        return 0
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        timeout = CLIENT_TIMEOUT_S
        server_version = "everest"
        sys_version = ""

        def do_GET(self) -> None:
            status, content_type, body = answer(vitals, self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: Any) -> None:
            """Every few seconds the same question: nothing to tell."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            log.debug("a client of the metrics went away", exc_info=True)

    try:
        server = Server((endpoint.address, endpoint.port), Handler)
    except OSError as error:
        log.error("%s: no metrics on %s port %s: %s", vitals.name, endpoint.address, endpoint.port, error)
        return 0
    vitals.meter.switch_on(vitals.name)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    log.info("%s: metrics and health on http://%s:%s", vitals.name, endpoint.address, server.server_port)
    return int(server.server_port)
