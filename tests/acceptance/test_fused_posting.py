"""The main paths of a posting once more where a site has its steps in one task (EVEREST_POSTING_TASKS=fused)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.acceptance.counting import assert_posted_once, count
from tests.acceptance.guest import Guest, guest_dag
from tests.acceptance.live import Live, until
from tests.acceptance.surprising import everest, late, tasks_of
from tests.acceptance.workflows import FUSED_POSTING

DAG = FUSED_POSTING.dag_id
TASK = "compute_variance_to_post_jurnal"


@pytest.fixture(scope="module")
def fused(live: Live) -> Iterator[Guest]:
    with guest_dag(live, FUSED_POSTING) as guest:
        yield guest


def test_one_task_posts_a_document_in_its_three_steps(live: Live, fused: Guest) -> None:
    (document,) = fused.dispatch(live.document(count()))

    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")

    assert str(assert_posted_once(live, document)["total_debet"]) == "8001.00"
    until("a green run of one task", lambda: tasks_of(live, row["dag_run_id"], DAG) == {TASK: "success"})
    steps = live.rows("SELECT step, status FROM workflow_steps WHERE workflow_id = %s ORDER BY id", row["workflow_id"])
    assert [step["step"] for step in steps] == ["compute_variance", "clean_duplicate_notas", "post_jurnal"]
    assert {step["status"] for step in steps} == {"completed"}


def test_a_count_that_waits_for_a_person_ends_its_run_and_goes_on_in_the_next(live: Live, fused: Guest) -> None:
    (document,) = fused.dispatch(late(live))
    waiting = live.wait_for(document.shadow_id, "WAITING", "COMPLETED", "FAILED")
    assert waiting["worker_status"] == "WAITING"
    first = waiting["dag_run_id"].removesuffix("__2") + "__1"
    until("the first run to end, green", lambda: tasks_of(live, first, DAG) == {TASK: "success"})

    everest(live, "approve", document.nomer_nota, "--reason", "barang datang pagi")

    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
    assert (row["n"], "disetujui oleh" in row["response"]["message"]) == (2, True)
    until("the second run to end, green", lambda: tasks_of(live, row["dag_run_id"], DAG) == {TASK: "success"})


def test_a_refused_count_is_dead_lettered_with_its_note_and_posts_after_its_correction(
    live: Live, fused: Guest
) -> None:
    lines = count(cost=None)
    (document,) = fused.dispatch(live.document(lines))
    failed = live.wait_for(document.shadow_id, "FAILED", "COMPLETED")
    assert (failed["worker_status"], failed["error_code"]) == ("FAILED", 422)
    until("its dead letter", lambda: live.dead_letters(document.shadow_id), every=1)
    with live.airflow() as airflow:
        url = f"/dags/{DAG}/dagRuns/{failed['dag_run_id']}"
        until("the note on its run", lambda: "FAILED" in (airflow.get(url).json()["note"] or ""))

    live.correct(document, [replace(line, harga_pokok="1500") for line in lines])
    everest(live, "rerun", document.nomer_nota)

    row = live.wait_for(document.shadow_id, "COMPLETED", "FAILED")
    assert_posted_once(live, document)
    assert (row["n"], row["dag_id"]) == (2, DAG)
