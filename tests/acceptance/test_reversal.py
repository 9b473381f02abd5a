"""A posted document taken back from the keyboard, through the whole running stack."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from tests.acceptance.counting import assert_posted_once, count
from tests.acceptance.live import Live, until
from tests.builders import Document

HOLDS_WAREHOUSES = "%FROM gudang WHERE gudang_kode IN%FOR UPDATE%"


def posted(live: Live) -> Document:
    document = live.document(count(), gudang_kode=f"GD-REV-{time.time_ns()}")
    live.publish(document.message)
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
    return document


def reverse(live: Live, nota: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(live.run("everest", "reverse", nota, "--reason", "salah rak", "--json").stdout)
    return answer


def assert_reversed_once(live: Live, document: Document, reversal: dict[str, Any]) -> None:
    row = live.shadow(reversal["shadow_id"])
    assert (row["worker_status"], row["response"].get("membalik_nota")) == ("COMPLETED", document.nomer_nota)
    notas = (document.nomer_nota, reversal["nomer_nota"])
    original, mirror = live.rows("SELECT * FROM posting_sets WHERE nomer_nota IN (%s, %s) ORDER BY id", *notas)
    assert (mirror["jenis"], mirror["membalik_id"]) == ("PEMBALIKAN", original["id"])
    pair = (original["id"], mirror["id"])
    accounts = live.rows(
        "SELECT kode_akun, SUM(debet - kredit) AS sisa FROM jurnal WHERE posting_id IN (%s, %s) GROUP BY kode_akun",
        *pair,
    )
    items = live.rows(
        "SELECT kode_barang, SUM(masuk - keluar) AS sisa, COUNT(*) AS n FROM kartu_stok WHERE posting_id IN (%s, %s)"
        " GROUP BY kode_barang",
        *pair,
    )
    assert len(accounts) == 3
    assert {account["sisa"] for account in accounts} == {Decimal("0.00")}
    assert [(item["sisa"], item["n"]) for item in items] == [(0, 2), (0, 2)]
    assert live.books_agree(notas)


def test_a_completed_document_is_reversed_through_the_queue(live: Live) -> None:
    document = posted(live)

    reversal = reverse(live, document.nomer_nota)
    again = live.run("everest", "reverse", document.nomer_nota, "--reason", "lain", check=False)

    row = live.wait_for(reversal["shadow_id"], "COMPLETED", "FAILED")
    assert_reversed_once(live, document, reversal)
    assert (again.returncode, document.nomer_nota in again.stderr) == (3, True)
    assert row["dag_run_id"].startswith("opname_reversal__")
    with live.airflow() as airflow:
        url = f"/dags/opname_reversal/dagRuns/{row['dag_run_id']}/taskInstances"
        tasks = airflow.get(url).raise_for_status().json()["task_instances"]
    assert [task["task_id"] for task in tasks] == ["reverse_posting"]
    status = json.loads(live.run("everest", "status", document.nomer_nota, "--json").stdout)
    assert (status["worker_status"], status["dibalik_nota"]) == ("COMPLETED", reversal["nomer_nota"])


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_reversal_whose_task_process_is_killed_posts_once(live: Live, moment: str) -> None:
    """A lock of the test holds the task inside its transaction; there it dies, or right behind its commit."""
    document = posted(live)
    with live.connection() as conn, conn.cursor() as cursor:
        cursor.execute(
            "SELECT gudang_kode FROM gudang WHERE gudang_kode ="
            " (SELECT gudang_kode FROM so_headers_staging WHERE id = %s) FOR UPDATE",
            (document.header_id,),
        )
        reversal = reverse(live, document.nomer_nota)
        pid = live.task_process(HOLDS_WAREHOUSES)
        if moment == "before the commit":
            os.kill(pid, signal.SIGKILL)
            conn.rollback()
        else:
            conn.rollback()
            until("its commit", lambda: live.shadow(reversal["shadow_id"])["worker_status"] == "COMPLETED", every=0.002)
            with suppress(ProcessLookupError):  # it was quicker; the outcome must be the same
                os.kill(pid, signal.SIGKILL)

    live.wait_for(reversal["shadow_id"], "COMPLETED", "FAILED")
    assert_reversed_once(live, document, reversal)
    assert live.dead_letters(reversal["shadow_id"]) == []


def test_a_reversal_that_failed_is_replayed_from_its_dead_letter(live: Live) -> None:
    """It fails because somebody touched the original's journal, which is what no reversal may build on."""
    document = posted(live)
    (original,) = live.postings(document.nomer_nota)

    def touch(by: int) -> None:
        with live.connection() as conn, conn.cursor() as cursor:
            changed = "UPDATE jurnal SET debet = debet + %s WHERE posting_id = %s AND urutan = 1"
            cursor.execute(changed, (by, original["id"]))
            conn.commit()

    touch(1)
    reversal = reverse(live, document.nomer_nota)
    row = live.wait_for(reversal["shadow_id"], "FAILED", "COMPLETED")
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 500)
    until("its dead letter", lambda: live.dead_letters(reversal["shadow_id"]))
    touch(-1)

    live.run("ingest_consumer", "dead-letters", "replay", reversal["nomer_nota"])

    live.wait_for(reversal["shadow_id"], "COMPLETED")
    assert_reversed_once(live, document, reversal)
    live.run("ingest_consumer", "dead-letters", "settle")
    assert live.dead_letters(reversal["shadow_id"]) == []
