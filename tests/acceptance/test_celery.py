"""Tasks on Celery workers of their own: the whole flow, and a worker, the broker and the scheduler that die in it.

Switches the stack over and back again, so each test here begins with workers that have done nothing yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stack import manager
from stack.layout import Layout
from stack.programs import Stack
from stack.up import up
from tests.acceptance.counting import assert_posted_once, count, open_ones
from tests.acceptance.live import Live, until

WORKERS = 2
OTHERS = 6


@pytest.fixture(scope="module")
def celery(live: Live) -> Iterator[Live]:
    before = Stack.open(Layout.here()).shape
    up(Layout.here(), shape=replace(before, executor="celery", workers=WORKERS))
    yield live
    up(Layout.here(), shape=before)


def worker_of(pid: int) -> str:
    """Which program of the stack a process belongs to; children inherit the mark."""
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    prefix = b"EVEREST_STACK_PROGRAM="
    return next(one.removeprefix(prefix).decode() for one in variables if one.startswith(prefix))


@pytest.mark.long
def test_a_worker_killed_in_the_middle_of_a_posting_posts_once_and_holds_up_nobody(celery: Live) -> None:
    victim = celery.document(count(), gudang_kode=f"GD-CELERY-{time.time_ns()}")
    others = [celery.document(count()) for _ in range(OTHERS)]
    with celery.connection() as conn, conn.cursor() as cursor:
        cursor.execute("SELECT gudang_kode FROM so_headers_staging WHERE id = %s", (victim.header_id,))
        cursor.execute("SELECT gudang_kode FROM gudang WHERE gudang_kode = %s FOR UPDATE", cursor.fetchone())
        celery.publish(victim.message)
        worker = worker_of(celery.task_process("%FROM gudang WHERE gudang_kode IN%FOR UPDATE%"))
        assert worker in [f"airflow-worker-{number}" for number in range(1, WORKERS + 1)]

        killed = celery.kill(worker)
        for document in others:
            celery.publish(document.message)
        until("the others to be completed", lambda: not open_ones(celery, others))
        assert celery.shadow(victim.shadow_id)["worker_status"] == "PROCESSING", "it is not given up meanwhile"
        conn.rollback()

    celery.wait_until_back(worker, killed)
    celery.wait_for(victim.shadow_id, "COMPLETED", "FAILED")
    for document in (victim, *others):
        assert_posted_once(celery, document)
        assert celery.dead_letters(document.shadow_id) == []
    assert celery.books_agree([document.nomer_nota for document in (victim, *others)])


@pytest.mark.long
@pytest.mark.parametrize("program", ["rabbitmq", "airflow-scheduler", "airflow-worker-1"])
def test_documents_outlive_the_death_of_what_hands_tasks_over(celery: Live, program: str) -> None:
    documents = [celery.document(count()) for _ in range(8)]
    for document in documents:
        celery.publish(document.message)
    until("documents at work", lambda: open_ones(celery, documents).get("PROCESSING"))

    pid = celery.kill(program)

    celery.wait_until_back(program, pid)
    until("all to be completed", lambda: not open_ones(celery, documents), every=1, patience=480)
    for document in documents:
        assert_posted_once(celery, document)
        assert celery.dead_letters(document.shadow_id) == []


@pytest.mark.long
def test_a_broker_that_is_away_for_half_a_minute_costs_no_document_a_try(celery: Live) -> None:
    """Airflow hands its tasks to that broker, too: it has to keep them until it is back."""
    layout = Layout.here()
    broker = Stack.open(layout).program("rabbitmq")
    documents = [celery.document(count()) for _ in range(6)]
    for document in documents:
        celery.publish(document.message)
    until("documents at work", lambda: open_ones(celery, documents).get("PROCESSING"))

    manager.stop_program(layout, broker)
    time.sleep(30)
    manager.start_program(layout, broker)

    until("all to be completed", lambda: not open_ones(celery, documents), every=1, patience=480)
    with celery.airflow() as airflow:
        for document in documents:
            assert_posted_once(celery, document)
            run = celery.shadow(document.shadow_id)["dag_run_id"]
            tasks = airflow.get(f"/dags/opname_posting/dagRuns/{run}/taskInstances").raise_for_status().json()
            assert {task["try_number"] for task in tasks["task_instances"]} == {1}
            assert run.endswith("__1"), "and none was begun again"
