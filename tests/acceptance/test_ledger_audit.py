"""The nightly audit on the running stack: green where the books are in order, and a violation fails its own task."""

from __future__ import annotations

from typing import Any

from everest.audit.invariants import BY_KEY
from tests.acceptance.counting import count
from tests.acceptance.live import Live, until

OF_THE_BOOKS = {
    "posting_is_balanced",
    "inventory_equals_stock_card",
    "completed_is_posted_once",
    "rows_belong_to_their_posting",
    "reversal_mirrors_original",
    "closed_month_stays_closed",
}


def audited(live: Live) -> dict[str, str]:
    """Triggers the DAG and waits for its end; the state of each task."""
    with live.airflow() as airflow:
        sent = airflow.post("/dags/ledger_audit/dagRuns", json={"logical_date": None}).raise_for_status().json()
        run = f"/dags/ledger_audit/dagRuns/{sent['dag_run_id']}"

        def ended() -> dict[str, Any] | None:
            answer: dict[str, Any] = airflow.get(run).raise_for_status().json()
            return answer if answer["state"] in ("success", "failed") else None

        until("the audit to end", ended)
        tasks = airflow.get(f"{run}/taskInstances").raise_for_status().json()["task_instances"]
        return {task["task_id"]: task["state"] for task in tasks}


def test_a_violation_in_the_books_fails_its_own_task_and_no_other(live: Live) -> None:
    document = live.document(count())
    live.publish(document.message)
    live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    (posting,) = live.postings(document.nomer_nota)

    before = audited(live)
    assert set(before) == set(BY_KEY)
    assert {key: before[key] for key in OF_THE_BOOKS} == dict.fromkeys(OF_THE_BOOKS, "success")

    gain = "kode_akun = '7010150'"
    with live.connection() as conn, conn.cursor() as cursor:
        assert cursor.execute(
            f"UPDATE jurnal SET kredit = kredit + 1 WHERE posting_id = %s AND {gain}", (posting["id"],)
        )
        conn.commit()
    try:
        after = audited(live)
    finally:
        with live.connection() as conn, conn.cursor() as cursor:
            cursor.execute(f"UPDATE jurnal SET kredit = kredit - 1 WHERE posting_id = %s AND {gain}", (posting["id"],))
            conn.commit()

    assert after == {**before, "posting_is_balanced": "failed"}
    (finding,) = live.rows(
        "SELECT * FROM audit_findings WHERE resolved_at IS NULL AND invariant = 'posting_is_balanced'"
    )
    assert document.nomer_nota in finding["pesan"]
    assert live.run("everest", "audit", "--only", "posting_is_balanced").stdout.count("holds") == 1
    assert (
        live.rows("SELECT * FROM audit_findings WHERE resolved_at IS NULL AND invariant = 'posting_is_balanced'") == []
    )
