"""A real HTTP server that answers like Airflow's REST API, for tests of what speaks to it.

It keeps runs and notes, gives out tokens, and answers from a script where a test wants trouble: `script("trigger",
500, 409)` makes the next two triggers answer so. What was asked stands in `calls`.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

USER, PASSWORD = "consumer", "not a secret"


class FakeAirflow:
    """DAGs are ready unless `dags` says otherwise; `on_trigger` is called with the run id and conf of a new run."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.dags: dict[str, dict[str, Any] | None] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.notes: dict[str, str] = {}
        self.event_logs: list[dict[str, Any]] = []
        self.calls: list[tuple[str, Any]] = []
        self.on_trigger: Callable[[str, dict[str, Any]], None] = lambda run_id, conf: None
        self.release = threading.Event()
        """Set it to let go of calls that a script of "hang" holds."""
        self._scripts: dict[str, deque[int | str]] = defaultdict(deque)
        self._tokens = 0
        self._valid_tokens: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    def script(self, call: str, *answers: int | str) -> None:
        """The next answers to `call` (token, dag, trigger, run, note): a status, or "hang"."""
        self._scripts[call].extend(answers)

    def expire_tokens(self) -> None:
        self._valid_tokens.clear()

    def count(self, call: str) -> int:
        return sum(1 for name, _ in self.calls if name == call)

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        name, dag_id, run_id = _route(method, path)
        self.calls.append((name, body))
        if self._scripts[name]:
            scripted = self._scripts[name].popleft()
            if scripted == "hang":
                self.release.wait(30)
                return 500, {}
            return int(scripted), {"detail": "as the test wants it"}
        if name == "token":
            if body != {"username": USER, "password": PASSWORD}:
                return 401, {"detail": "wrong login"}
            self._tokens += 1
            token = f"token-{self._tokens}"
            self._valid_tokens.add(token)
            return 201, {"access_token": token}
        if token.removeprefix("Bearer ") not in self._valid_tokens:
            return 401, {"detail": "invalid token"}
        if name == "events":
            return 200, {"event_logs": self.event_logs, "total_entries": len(self.event_logs)}
        dag = self.dags.get(dag_id, {})
        if dag is None:
            return 404, {"detail": f"no DAG {dag_id}"}
        if name == "dag":
            return 200, {"dag_id": dag_id, "is_paused": False, "is_stale": False, "has_import_errors": False} | dag
        if name == "trigger":
            return self._trigger(body)
        if run_id not in self.runs:
            return 404, {"detail": f"no run {run_id}"}
        if name == "note":
            self.notes[run_id] = body["note"]
        return 200, self.runs[run_id]

    def _trigger(self, body: dict[str, Any]) -> tuple[int, Any]:
        if set(body) != {"dag_run_id", "logical_date", "conf"} or body["logical_date"] is not None:
            return 422, {"detail": "logical_date must be present and null"}
        run_id = body["dag_run_id"]
        if run_id in self.runs:
            return 409, {"detail": "Unique constraint violation"}
        self.runs[run_id] = {"dag_run_id": run_id, "state": "queued", "conf": body["conf"]}
        self.on_trigger(run_id, body["conf"])
        return 200, self.runs[run_id]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                status, answer = fake.answer(self.command, self.path, self.headers.get("Authorization", ""), body)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = _serve

            def log_message(self, *_: Any) -> None:
                """The calls are kept, not printed."""

        return Handler


def _route(method: str, path: str) -> tuple[str, str, str]:
    """(call, dag_id, run_id) of a request."""
    parts = [unquote(part) for part in urlsplit(path).path.split("/")[1:]]
    if parts == ["auth", "token"]:
        return "token", "", ""
    if parts[2:] == ["eventLogs"]:
        return "events", "", ""
    _api, _version, _dags, dag_id, *rest = parts
    if not rest:
        return "dag", dag_id, ""
    if len(rest) == 1:
        return ("trigger" if method == "POST" else "unknown"), dag_id, ""
    return ("note" if method == "PATCH" else "run"), dag_id, rest[1]
