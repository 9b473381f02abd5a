"""A count that a person has to decide about, through the whole running stack and the commands of an operator."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from tests import builders
from tests.acceptance.live import Live, until
from tests.acceptance.test_flow import QUEUE, assert_posted_once, count
from tests.builders import Document


def late(live: Live) -> Document:
    """Nothing is published yet; a receipt dated before its snapshot was entered behind it."""
    lines = count()
    now = datetime.now(UTC)
    snapshot = now - timedelta(hours=2)
    document = live.document(lines, snapshot_at=snapshot, diotorisasi_at=now)
    with live.connection() as conn:
        dated = (snapshot - timedelta(hours=1)).astimezone(builders.WIB).replace(tzinfo=None)
        kode = str(lines[0].kode_barang)
        builders.movement(conn, kode, masuk="4", nomer_nota="BELI-77", sumber="BELI", tanggal_wib=dated, created_at=now)
    return document


def surprising(live: Live) -> Document:
    """The same, announced by a foreign message."""
    document = late(live)
    live.publish(document.message)
    return document


def nothing_is_held(live: Live) -> bool:
    vhost = unquote(urlsplit(live.env["EVEREST_AMQP_URL"]).path[1:]) or "/"
    listed = live.rabbitmqctl("list_queues", "--vhost", vhost, "name", "messages_ready", "messages_unacknowledged")
    return [QUEUE, "0", "0"] in [line.split() for line in listed.splitlines()]


def everest(live: Live, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(live.run("everest", *words, "--json").stdout)
    return answer


def tasks_of(live: Live, dag_run_id: str, dag: str = "opname_posting") -> dict[str, str]:
    with live.airflow() as airflow:
        url = f"/dags/{dag}/dagRuns/{dag_run_id}/taskInstances"
        found = airflow.get(url).raise_for_status().json()["task_instances"]
    return {task["task_id"]: task["state"] for task in found}


def test_a_late_movement_waits_without_holding_a_delivery_until_a_person_approves(live: Live) -> None:
    document = surprising(live)

    row = live.wait_for(document.shadow_id, "WAITING", "COMPLETED", "FAILED")
    assert row["worker_status"] == "WAITING", row
    assert "BELI-77" in row["response"]["waiting"]["reasons"][0]["pesan"]
    until("the queue to be empty and no delivery held", lambda: nothing_is_held(live))
    first_run = f"opname_posting__{document.transaksi_id}__{document.shadow_id}__1"
    until("the DAG run to end, green", lambda: set(tasks_of(live, first_run).values()) == {"success", "skipped"})
    pending = {one["nomer_nota"]: one for one in everest(live, "approvals")["pending"]}
    assert pending[document.nomer_nota]["details"]["mutasi"][0]["nomer_nota"] == "BELI-77"

    everest(live, "approve", document.nomer_nota, "--reason", "barang datang pagi")

    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
    assert "disetujui oleh" in row["response"]["message"]
    tasks = tasks_of(live, row["dag_run_id"])
    assert set(tasks) == {"compute_variance", "clean_duplicate_notas", "post_jurnal"}


def test_a_rejected_count_fails_without_a_dead_letter_and_a_rerun_asks_again(live: Live) -> None:
    document = surprising(live)
    live.wait_for(document.shadow_id, "WAITING", "COMPLETED", "FAILED")

    everest(live, "reject", document.nomer_nota, "--reason", "rak belum dihitung")

    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 403)
    assert "rak belum dihitung" in row["error"]
    until("the queue to be empty and no delivery held", lambda: nothing_is_held(live))
    assert live.dead_letters(document.shadow_id) == []

    everest(live, "rerun", document.nomer_nota)

    row = live.wait_for(document.shadow_id, "WAITING", "COMPLETED", "FAILED")
    assert (row["worker_status"], row["response"]["waiting"]["sequence"]) == ("WAITING", 2)
    assert (live.postings(document.nomer_nota), row["dead_lettered_at"]) == ([], None)
    everest(live, "approve", document.nomer_nota, "--reason", "sekarang sudah")
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
