"""Public cases that need the whole stack: many documents, a step that hangs, a broker without memory."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from everest.workflow.definition import Definition
from ingest_consumer.airflow_api import AirflowApi
from tests import builders
from tests.acceptance.counting import assert_posted_once, count, item
from tests.acceptance.guest import guest_dag
from tests.acceptance.live import Live, until
from tests.acceptance.workflows import HURRIED_POSTING, NEVER_IN_TIME, ONE_AT_A_TIME
from tests.builders import Document, Line


def statuses(live: Live, documents: Sequence[Document]) -> dict[str, int]:
    rows = live.rows(
        "SELECT worker_status, COUNT(*) AS n FROM rabbit_publish_shadow WHERE id IN %s GROUP BY worker_status",
        tuple(document.shadow_id for document in documents),
    )
    return {row["worker_status"]: row["n"] for row in rows}


def test_h02_a_document_of_another_warehouse_is_posted_while_one_of_20_000_lines_is_at_work(live: Live) -> None:
    mark = item()
    large = live.document(
        [Line(f"{mark}-{number}", "10", "11", "1500.25") for number in range(20_000)], gudang_kode=f"GD-{mark}"
    )
    other = live.document(count())
    with live.connection() as conn, conn.cursor() as cursor:
        # Somebody else's lock on its warehouse keeps the large one at work for as long as the test looks.
        cursor.execute("SELECT gudang_kode FROM gudang WHERE gudang_kode = %s FOR UPDATE", (f"GD-{mark}",))
        live.publish(large.message)
        live.task_process("%FROM gudang WHERE gudang_kode IN%FOR UPDATE%")

        live.publish(other.message)
        live.wait_for(other.shadow_id, "COMPLETED", "FAILED")
        assert live.shadow(large.shadow_id)["worker_status"] == "PROCESSING"
        conn.rollback()

    live.wait_for(large.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, other)
    assert assert_posted_once(live, large)["baris_selisih"] == 20_000


@pytest.mark.long
def test_h24_three_hundred_notas_four_at_a_time_on_the_same_items_and_accounts_all_complete(live: Live) -> None:
    """Each item in twenty warehouses, fifteen notas in each warehouse, all on the same three accounts."""
    mark = item()
    documents = [
        live.document(
            [Line(f"{mark}-{number // 20}-{line}", "10", "12", "1500") for line in range(3)],
            gudang_kode=f"GD-{mark}-{number % 20}",
        )
        for number in range(300)
    ]

    with live.channel() as channel:
        for document in documents:
            channel.basic_publish(
                "everest.jobs.x", "job.process", json.dumps(document.message).encode(), mandatory=True
            )

    until("all to be completed", lambda: statuses(live, documents) == {"COMPLETED": 300}, every=2, patience=1800)
    for document in documents:
        assert_posted_once(live, document)
    assert live.books_agree([document.nomer_nota for document in documents])
    assert {live.shadow(document.shadow_id)["n"] for document in documents} == {1}, "nobody had to run one again"
    assert not live.tried_again([document.nomer_nota for document in documents]), "a deadlock would have cost a try"


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param(NEVER_IN_TIME, id="asleep"),
        # A statement is not interrupted: each try ends when its lock wait does, after 20 s.
        pytest.param(HURRIED_POSTING, id="waiting for a lock", marks=pytest.mark.long),
    ],
)
def test_h25_a_step_that_never_ends_in_time_is_a_504_after_the_last_try_and_is_not_begun_again(
    live: Live, definition: Definition
) -> None:
    document = live.document(count())
    with guest_dag(live, definition) as guest, live.connection() as conn, conn.cursor() as cursor:
        cursor.execute("SELECT id FROM so_headers_staging WHERE id = %s FOR UPDATE", (document.header_id,))
        (document,) = guest.dispatch(document)

        row = live.wait_for(document.shadow_id, "FAILED", "COMPLETED")

        conn.rollback()
        assert (row["worker_status"], row["error_code"], row["response"]["code"]) == ("FAILED", 504, 504)
        assert "melewati batas waktu" in row["error"]
        until("its dead letter", lambda: live.dead_letters(document.shadow_id), every=1)
        with live.airflow() as airflow:
            url = f"/dags/{definition.name}/dagRuns/{row['dag_run_id']}"
            until("Airflow to end the run", lambda: airflow.get(url).json()["state"] == "failed")
            runs = airflow.get(f"/dags/{definition.name}/dagRuns").json()["dag_runs"]
            tasks = airflow.get(f"{url}/taskInstances").json()["task_instances"]
        assert [run["dag_run_id"] for run in runs] == [row["dag_run_id"]]
        first = min(tasks, key=lambda task: task["start_date"] or "9999")
        assert (first["task_id"], first["state"], first["try_number"]) == (definition.steps[0].name, "failed", 3)
        (step,) = live.rows("SELECT attempt, status FROM workflow_steps WHERE workflow_id = %s", row["workflow_id"])
        assert step == {"attempt": 3, "status": "failed"}
        assert live.shadow(document.shadow_id)["n"] == 1, "nobody begins it again by himself"
    assert live.postings(document.nomer_nota) == []


def test_h35_a_submit_during_a_memory_alarm_is_answered_and_published_when_the_alarm_is_over(
    live: Live, tmp_path: Path
) -> None:
    notas = [f"SO-{item()}" for _ in range(2)]
    with live.connection() as conn:
        builders.warehouse(conn, "GD-ALARM")
    with live.memory_alarm():
        # The broker tells a connection that it is blocked once that one publishes: the first document finds it out.
        rows = [submitted(live, tmp_path, nota) for nota in notas]
        time.sleep(3)  # twenty rounds of the relay
        for row in rows:
            row = live.shadow(row["id"])
            assert (row["publish_status"], row["worker_status"]) == ("PENDING", "PENDING")

    for row in rows:
        done = live.wait_for(row["id"], "COMPLETED", "FAILED")
        assert (done["publish_status"], done["worker_status"]) == ("PUBLISHED", "COMPLETED")
    assert [len(live.postings(nota)) for nota in notas] == [1, 1]
    assert live.books_agree(notas)


def submitted(live: Live, folder: Path, nota: str) -> dict[str, Any]:
    file = folder / f"{nota}.csv"
    file.write_text(f"kode_barang,qty_sistem,qty_fisik,harga_pokok\n{item()},10,12,1500\n")
    header = ("--nota", nota, "--gudang", "GD-ALARM", "--tanggal-opname", "2026-08-31")
    answer = json.loads(live.run("everest", "submit", str(file), *header, "--json").stdout)
    return live.shadow(answer["shadow_id"])


def test_h39_thirty_triggers_with_one_active_run_finish_one_by_one(live: Live) -> None:
    """All thirty wait in Airflow at once; their messages come as well, four at a time, and find them there."""
    documents = [live.document(count()) for _ in range(30)]
    with guest_dag(live, ONE_AT_A_TIME, max_active_runs=1) as guest:
        documents = guest.dispatch(*documents)
        env = live.env
        api = AirflowApi(env["EVEREST_AIRFLOW_URL"], env["EVEREST_AIRFLOW_USER"], env["EVEREST_AIRFLOW_PASSWORD"])
        with closing(api):
            for document in documents:
                row = live.shadow(document.shadow_id)
                ids = {name: row[name] for name in ("workflow_id", "transaksi_id", "n")} | {"shadow_id": row["id"]}
                api.trigger(guest.definition.name, row["dag_run_id"], ids)

        until("all to be completed", lambda: statuses(live, documents) == {"COMPLETED": 30}, every=1)

        with live.airflow() as airflow:
            runs = until("Airflow to end the last run", lambda: ended_runs(airflow, guest.definition.name, 30))
        for document in documents:
            assert_posted_once(live, document)
        assert {run["state"] for run in runs} == {"success"}
        assert {live.shadow(document.shadow_id)["n"] for document in documents} == {1}
        by_start = sorted(runs, key=lambda run: run["start_date"])
        assert all(run["end_date"] <= after["start_date"] for run, after in pairwise(by_start)), "one by one"


def ended_runs(airflow: httpx.Client, dag_id: str, how_many: int) -> list[dict[str, Any]] | None:
    runs: list[dict[str, Any]] = airflow.get(f"/dags/{dag_id}/dagRuns", params={"limit": 100}).json()["dag_runs"]
    assert len(runs) == how_many
    return runs if all(run["end_date"] for run in runs) else None
