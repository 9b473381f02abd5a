"""A count that a person has to decide about, through the whole running stack and the commands of an operator."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from tests.acceptance.counting import QUEUE, assert_posted_once
from tests.acceptance.live import Live, until
from tests.acceptance.surprising import everest, surprising, tasks_of


def nothing_is_held(live: Live) -> bool:
    vhost = unquote(urlsplit(live.env["EVEREST_AMQP_URL"]).path[1:]) or "/"
    listed = live.rabbitmqctl("list_queues", "--vhost", vhost, "name", "messages_ready", "messages_unacknowledged")
    return [QUEUE, "0", "0"] in [line.split() for line in listed.splitlines()]


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
