"""The six calls to Airflow's REST API: token, DAG state, trigger, run state, who marked it, note.

Airflow executes; it never decides what became of a document. So an answer is sorted into three kinds only: done,
"not this time" (AirflowUnavailable: 403, 404, 429, 5xx, timeouts, a DAG that does not load) and "our bug"
(AirflowRefused: 422). Used by the consumer's workers and by the reconciler; safe to share between threads.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any
from urllib.parse import quote

import httpx

from ingest_consumer import airflow_marks, tls
from ingest_consumer.errors import AirflowDown, AirflowRefused, AirflowUnavailable

NOTE_MAX = 1000
"""Airflow's own limit on a note, in characters."""

SETTING = "EVEREST_AIRFLOW_URL"

EVENTS_MAX = 100
"""Airflow's limit on a page; the newest entries decide."""


class DagState(Enum):
    """Whether a run of the DAG would start now."""

    READY = "ready"
    PAUSED = "paused"
    MISSING = "missing"
    BROKEN = "broken"
    """Its file has import errors."""


class Triggered(Enum):
    """created, or exists: the run id stands already, so attach to it."""

    CREATED = "created"
    EXISTS = "exists"


@dataclass(frozen=True)
class DagRun:
    """A run as Airflow sees it: queued, running, success, failed; `marked_by` = who set that state by hand."""

    state: str
    marked_by: str | None = None


class AirflowApi:
    """One API server, one login. Every call is bounded by `timeout` per attempt and repeats once after a 401."""

    def __init__(self, base_url: str, user: str, password: str, timeout: float | timedelta = 10.0) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        address, verify = tls.http(base_url)
        self._client = httpx.Client(
            base_url=address.rstrip("/"), timeout=seconds, follow_redirects=False, verify=verify
        )
        self._login = {"username": user, "password": password}
        self._token: str | None = None
        self._lock = threading.Lock()
        self._logins = 0
        self._refusal: AirflowUnavailable | None = None

    def close(self) -> None:
        self._client.close()

    def dag_state(self, dag_id: str) -> DagState:
        """Raises AirflowUnavailable when Airflow cannot say."""
        answer = self._call("GET", f"/dags/{_path(dag_id)}", accept=(200, 404))
        if answer.status_code == 404:
            return DagState.MISSING
        dag = _json(answer)
        if dag.get("has_import_errors"):
            return DagState.BROKEN
        if dag.get("is_stale"):
            return DagState.MISSING
        return DagState.PAUSED if dag.get("is_paused") else DagState.READY

    def trigger(self, dag_id: str, run_id: str, conf: dict[str, Any]) -> Triggered:
        """Starts the run under exactly this id. Raises AirflowUnavailable (try again) or AirflowRefused (our bug)."""
        # logical_date must be present and null: two runs of one second would else collide on it
        body = {"dag_run_id": run_id, "logical_date": None, "conf": conf}
        answer = self._call("POST", f"/dags/{_path(dag_id)}/dagRuns", body, accept=(200, 201, 409))
        return Triggered.EXISTS if answer.status_code == 409 else Triggered.CREATED

    def dag_run(self, dag_id: str, run_id: str) -> DagRun | None:
        """The run, None when Airflow has none of that id. Raises AirflowUnavailable."""
        answer = self._call("GET", f"/dags/{_path(dag_id)}/dagRuns/{_path(run_id)}", accept=(200, 404))
        if answer.status_code == 404:
            return None
        state = str(_json(answer).get("state"))
        return DagRun(state, self._marked_by(dag_id, run_id, state) if state in ("success", "failed") else None)

    def set_note(self, dag_id: str, run_id: str, text: str) -> None:
        """Shown beside the run in the UI; cut to Airflow's limit. Raises AirflowUnavailable or AirflowRefused."""
        note = text if len(text) <= NOTE_MAX else text[: NOTE_MAX - 1] + "…"
        self._call("PATCH", f"/dags/{_path(dag_id)}/dagRuns/{_path(run_id)}", {"note": note}, accept=(200,))

    def _marked_by(self, dag_id: str, run_id: str, state: str) -> str | None:
        """The person who set the run's present state; None if nobody did (or the event log is closed to us)."""
        of_run = self._events({"dag_id": dag_id, "run_id": run_id, "included_events": airflow_marks.OF_ONE_RUN})
        of_several = self._events({"included_events": airflow_marks.OF_SEVERAL_RUNS})
        return airflow_marks.marked_by([*of_run, *of_several], dag_id, run_id, state)

    def _events(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        newest_first = {**filters, "order_by": "-event_log_id", "limit": EVENTS_MAX}
        answer = self._call("GET", "/eventLogs", params=newest_first, accept=(200, 403))
        return [] if answer.status_code == 403 else list(_json(answer).get("event_logs", []))

    def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        accept: tuple[int, ...],
        params: dict[str, Any] | None = None,
    ) -> httpx.Response:
        token = self._current_token()
        answer = self._send(method, f"/api/v2{path}", body, params, token)
        if answer.status_code == 401:
            answer = self._send(method, f"/api/v2{path}", body, params, self._current_token(instead_of=token))
        if answer.status_code in accept:
            return answer
        words = f"Airflow answered {answer.status_code} to {method} {path}: {_detail(answer)}"
        if answer.status_code == 422:
            raise AirflowRefused(words)
        raise AirflowUnavailable(words)

    def _send(
        self, method: str, path: str, body: Any, params: dict[str, Any] | None, token: str | None
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return self._client.request(method, path, json=body, params=params, headers=headers)
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise AirflowDown(f"Airflow did not answer {method} {path}: {tls.said(error, SETTING)}") from error

    def _current_token(self, instead_of: str | None = None) -> str:
        """The shared token; a new one when there is none yet or a 401 has just refused `instead_of`.

        Whoever waited while another thread failed to get one fails with it: if each tried for itself, one after
        another, a dozen workers at a silent server would wait longer than the broker waits for their heartbeats.
        """
        logins = self._logins
        with self._lock:
            if self._token is not None and self._token != instead_of:
                return self._token
            if self._logins != logins and self._refusal is not None:
                raise type(self._refusal)(self._refusal.message)
            self._token = self._refusal = None
            try:
                self._token = self._new_token()
            except AirflowUnavailable as refusal:
                self._refusal = refusal
                raise
            finally:
                self._logins += 1
            return self._token

    def _new_token(self) -> str:
        answer = self._send("POST", "/auth/token", self._login, None, None)
        if answer.status_code not in (200, 201):
            user = self._login["username"]
            raise AirflowDown(f"Airflow refused the login of {user!r}: {answer.status_code}")
        return str(_json(answer).get("access_token"))


def run_link(dag_id: str, run_id: str) -> str:
    """A run in a note, where Airflow's UI shows Markdown: a path, good under whatever host a person came by."""
    return f"[{run_id}](/dags/{_path(dag_id)}/runs/{_path(run_id)})"


def _path(part: str) -> str:
    return quote(part, safe="")


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise AirflowUnavailable(f"Airflow's answer to {answer.request.url.path} is not JSON: is that address Airflow?")
    return value


def _detail(answer: httpx.Response) -> str:
    return answer.text[:300].replace("\n", " ")
