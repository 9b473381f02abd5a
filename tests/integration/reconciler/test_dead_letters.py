"""The row of the reconciler table about FAILED jobs that nobody's rejection put into the dead-letter queue."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from everest.errors import DocumentRefused
from everest.opname.workflow import POST_OPNAME
from everest.reconciler import rows
from everest.reconciler.settings import Limits
from everest.workflow import runner
from ingest_consumer import shadow as jobs
from ingest_consumer.delivery import DEAD_LETTER_HEADERS
from ingest_consumer.message import announces_same_run, decode, mismatch
from tests import builders
from tests.integration.reconciler.world import LONG_AGO, World

LATE = datetime(2026, 1, 1)


def test_a_failure_that_no_consumer_rejected_gets_its_letter_and_its_mark_together(world: World) -> None:
    ticket = world.failed(DocumentRefused("harga kosong"))
    world.age(timedelta(seconds=11))

    assert world.reconciler().round() == 1

    (letter,) = world.unsent()
    assert (letter["exchange"], letter["routing_key"]) == ("everest.jobs.dlx", "job.process")
    assert set(json.loads(letter["headers"])) & set(DEAD_LETTER_HEADERS)
    row = jobs.get(world.conn, ticket.shadow_id)
    message = decode(letter["body"].encode())
    assert row is not None
    assert row.dead_lettered_at is not None
    assert mismatch(message, row) is None
    assert announces_same_run(message, row)


def test_a_failure_of_an_hour_that_is_still_to_come_gets_its_letter_now(world: World) -> None:
    world.failed(DocumentRefused("harga kosong"))
    world.age(-timedelta(hours=1))

    assert world.reconciler().round() == 1


def test_a_handed_over_message_is_the_letter_as_it_came(world: World) -> None:
    ticket = world.claimed(world.sent())
    assert jobs.hand_over(world.conn, ticket.shadow_id, ticket.dag_run_id, '{"as": "it came"}')
    world.conn.commit()
    world.airflow.marked(ticket.dag_run_id, "failed", "sari")
    world.age(timedelta(seconds=30))
    reconciler = world.reconciler()

    assert reconciler.round() == 1
    world.age(timedelta(seconds=30))
    assert reconciler.round() == 1

    assert [letter["body"] for letter in world.unsent()] == ['{"as": "it came"}']


def test_a_job_that_nobody_ever_linked_gets_a_letter_in_the_foreign_form(world: World) -> None:
    shadow_id = builders.shadow_row(world.conn, 77, "SO-77", worker_status="FAILED")
    world.conn.commit()

    assert world.reconciler().round() == 1

    (letter,) = world.unsent()
    assert json.loads(letter["body"]) == {"transaksi_id": 77, "shadow_id": shadow_id, "nota": "SO-77"}


def test_a_consumer_that_holds_the_delivery_gets_its_time(world: World) -> None:
    world.failed(DocumentRefused("salah"))
    world.age(timedelta(seconds=5))

    assert world.reconciler().round() == 0


def test_a_letter_that_a_consumer_wrote_is_not_written_again(world: World) -> None:
    ticket = world.failed(DocumentRefused("salah"))
    assert jobs.mark_dead_lettered(world.conn, ticket.shadow_id, ticket.dag_run_id)
    world.conn.commit()
    world.age(LONG_AGO)

    assert world.reconciler().round() == 0


def test_a_refusal_by_a_person_is_nobodys_fault(world: World) -> None:
    world.failed(DocumentRefused("ditolak", code=403))
    world.age(LONG_AGO)

    assert world.reconciler().round() == 0
    assert world.unsent() == []


def test_only_the_carrier_of_a_failed_workflow_gets_a_letter(world: World) -> None:
    ticket = world.failed(DocumentRefused("salah"))
    run = world.run_of(ticket.shadow_id)
    builders.shadow_row(world.conn, None, None, worker_status="FAILED", workflow_id=run["id"])
    world.conn.commit()
    world.age(LONG_AGO)

    assert world.reconciler().round() == 1
    assert [letter["shadow_id"] for letter in world.unsent()] == [ticket.shadow_id]


def test_a_second_failure_after_a_rerun_gets_a_letter_of_its_own(world: World) -> None:
    ticket = world.failed(DocumentRefused("salah"))
    world.age(LONG_AGO)
    reconciler = world.reconciler()
    assert reconciler.round() == 1
    world.publish()
    with world.database.transaction() as tx:
        tx.runs.rerun(ticket.shadow_id, "sari", None)
    world.publish()
    again = world.claimed(ticket.shadow_id)
    world.airflow.marked(again.dag_run_id, "failed", "sari")
    world.age(timedelta(seconds=30))
    assert reconciler.round() == 1
    assert world.row(ticket.shadow_id)["dead_lettered_at"] is None
    world.age(timedelta(seconds=30))

    assert reconciler.round() == 1
    assert json.loads(world.unsent()[0]["body"])["n"] == 2


@pytest.mark.parametrize("rounds", [2, 5])
def test_more_rounds_write_no_more_letters(world: World, rounds: int) -> None:
    world.failed(DocumentRefused("salah"))
    world.age(LONG_AGO)
    reconciler = world.reconciler()

    assert [reconciler.round() for _ in range(rounds)] == [1] + [0] * (rounds - 1)
    assert len(world.unsent()) == 1


def test_the_look_for_missing_letters_costs_nothing_for_failures_that_have_theirs(world: World) -> None:
    """They wait for a person, some of them for years, and the look is made every few seconds."""
    has_its_own = {"worker_status": "FAILED", "error_code": 422, "worker_at": LATE, "dead_lettered_at": LATE}
    for number in range(400):
        builders.shadow_row(world.conn, number + 1, f"SO-{number}", **has_its_own)
    world.conn.commit()
    owed = world.failed(DocumentRefused("salah"))
    world.execute("UPDATE rabbit_publish_shadow SET worker_at = %s WHERE id = %s", LATE, owed.shadow_id)
    builders.rows(world.conn, "ANALYZE TABLE rabbit_publish_shadow")

    before = rows_read(world)
    (found,) = rows.without_dead_letter(world.conn, Limits(), rows.Page(100))

    assert found.shadow_id == owed.shadow_id
    assert rows_read(world) - before < 100


def rows_read(world: World) -> int:
    """By this session."""
    return sum(int(row["Value"]) for row in builders.rows(world.conn, "SHOW SESSION STATUS LIKE 'Handler_read%'"))


def test_a_second_job_that_was_parted_from_a_completed_document_gets_its_letter(world: World) -> None:
    document = builders.document(world.conn, nomer_nota="SO-1")
    first = world.claimed(document.shadow_id)
    runner.run_step(POST_OPNAME, first, "compute_variance", world.database.transaction, is_last_try=True)
    other = builders.shadow_row(world.conn, document.transaksi_id, "SO-2")
    second = world.claimed(other)
    runner.run_step(POST_OPNAME, second, "compute_variance", world.database.transaction, is_last_try=True)
    for step in POST_OPNAME.steps:
        runner.run_step(POST_OPNAME, first, step.name, world.database.transaction, is_last_try=True)
    assert (world.status(document.shadow_id), world.status(other)) == ("COMPLETED", "FAILED")
    world.age(LONG_AGO)

    assert world.reconciler().round() == 1
    assert [letter["shadow_id"] for letter in world.unsent()] == [other]
