"""The calls to Airflow's REST API, against a server that speaks HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from ingest_consumer.airflow_api import NOTE_MAX, AirflowApi, DagRun, DagState, Triggered
from ingest_consumer.errors import AirflowDown, AirflowRefused, AirflowUnavailable
from tests.fake_airflow import PASSWORD, USER, FakeAirflow
from tests.queue_rig import until

DAG, RUN = "opname_posting", "opname_posting__1001__7__1"


@pytest.fixture
def api(airflow: FakeAirflow) -> Iterator[AirflowApi]:
    made = AirflowApi(airflow.url + "/", USER, PASSWORD, 2)
    yield made
    made.close()


def test_a_run_is_created_once_and_then_exists(api: AirflowApi, airflow: FakeAirflow) -> None:
    assert api.trigger(DAG, RUN, {"shadow_id": 7, "n": 1}) is Triggered.CREATED
    assert api.trigger(DAG, RUN, {"shadow_id": 7, "n": 1}) is Triggered.EXISTS

    assert airflow.runs[RUN]["conf"] == {"shadow_id": 7, "n": 1}
    assert airflow.count("token") == 1


@pytest.mark.parametrize(
    ("dag", "state"),
    [
        ({}, DagState.READY),
        ({"is_paused": True}, DagState.PAUSED),
        ({"is_stale": True}, DagState.MISSING),
        (None, DagState.MISSING),
        ({"has_import_errors": True, "is_paused": True}, DagState.BROKEN),
    ],
)
def test_a_dag_is_ready_paused_missing_or_broken(
    api: AirflowApi, airflow: FakeAirflow, dag: dict[str, bool] | None, state: DagState
) -> None:
    airflow.dags[DAG] = dag
    assert api.dag_state(DAG) is state


def test_a_run_that_is_not_there_is_none(api: AirflowApi) -> None:
    assert api.dag_run(DAG, RUN) is None


def test_a_run_says_who_marked_it_and_a_later_clear_makes_the_mark_void(api: AirflowApi, airflow: FakeAirflow) -> None:
    airflow.runs[RUN] = {"state": "failed"}
    assert api.dag_run(DAG, RUN) == DagRun("failed")

    note = {"event": "patch_dag_run", "owner": "consumer", "extra": '{"note": "x"}'}
    mark = {"event": "patch_dag_run", "owner": "budi", "extra": '{"state": "failed"}'}
    airflow.event_logs = [note, mark]
    assert api.dag_run(DAG, RUN) == DagRun("failed", marked_by="budi")

    airflow.event_logs = [{"event": "clear_dag_run", "owner": "budi", "extra": "{}"}, mark]
    assert api.dag_run(DAG, RUN) == DagRun("failed")


def test_a_running_run_is_not_asked_who_marked_it(api: AirflowApi, airflow: FakeAirflow) -> None:
    airflow.runs[RUN] = {"state": "running"}
    airflow.event_logs = [{"event": "patch_dag_run", "owner": "budi", "extra": '{"state": "queued"}'}]
    assert api.dag_run(DAG, RUN) == DagRun("running")


def test_a_note_is_cut_to_what_airflow_takes(api: AirflowApi, airflow: FakeAirflow) -> None:
    airflow.runs[RUN] = {"state": "failed"}
    api.set_note(DAG, RUN, "x" * 5000)
    assert len(airflow.notes[RUN]) == NOTE_MAX


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500, 502, 503, 504])
def test_not_this_time_is_told_apart_from_our_own_bug(api: AirflowApi, airflow: FakeAirflow, status: int) -> None:
    airflow.script("trigger", status)
    with pytest.raises(AirflowUnavailable, match=str(status)) as trouble:
        api.trigger(DAG, RUN, {})
    assert trouble.value.retryable

    airflow.script("trigger", 422)
    with pytest.raises(AirflowRefused, match="422") as refusal:
        api.trigger(DAG, RUN, {})
    assert not refusal.value.retryable


def test_a_token_that_expired_is_replaced_once_within_the_call(api: AirflowApi, airflow: FakeAirflow) -> None:
    assert api.dag_state(DAG) is DagState.READY
    airflow.expire_tokens()
    assert api.dag_state(DAG) is DagState.READY
    assert airflow.count("token") == 2


class CountedLock:
    """Knows how many threads have come for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.comers = 0

    def __enter__(self) -> None:
        self.comers += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_who_waits_for_a_login_that_fails_fails_with_it_and_the_next_call_tries_again(
    airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another they would wait for a silent server, and the broker for their heartbeats."""
    lock = CountedLock()
    with closing(AirflowApi(airflow.url, USER, PASSWORD, 30)) as api, ThreadPoolExecutor(5) as workers:
        monkeypatch.setattr(api, "_lock", lock)
        airflow.script("token", "hang")
        calls = [workers.submit(api.dag_state, DAG) for _ in range(5)]
        until(lambda: lock.comers == len(calls), "all of them wait")
        airflow.release.set()

        assert {type(call.exception(60)) for call in calls} == {AirflowDown}
        assert airflow.count("token") == 1
        assert api.dag_state(DAG) is DagState.READY


def test_a_wrong_login_is_trouble_that_never_shows_the_password(airflow: FakeAirflow) -> None:
    api = AirflowApi(airflow.url, USER, "wrong one", 2)
    with pytest.raises(AirflowUnavailable) as trouble:
        api.dag_state(DAG)
    assert "wrong one" not in trouble.value.message
    assert USER in trouble.value.message
    api.close()


def test_a_server_that_does_not_answer_or_is_not_there_is_not_this_time(airflow: FakeAirflow) -> None:
    api = AirflowApi(airflow.url, USER, PASSWORD, 0.2)
    airflow.script("token", "hang")
    with pytest.raises(AirflowUnavailable, match="did not answer"):
        api.dag_state(DAG)
    api.close()
    nowhere = AirflowApi("http://127.0.0.1:1", USER, PASSWORD, 1)
    with pytest.raises(AirflowUnavailable, match="did not answer"):
        nowhere.dag_state(DAG)
    nowhere.close()


def test_names_are_quoted_so_that_no_id_reaches_another_path(api: AirflowApi, airflow: FakeAirflow) -> None:
    airflow.dags["a/b?c"] = {"is_paused": True}
    assert api.dag_state("a/b?c") is DagState.PAUSED
