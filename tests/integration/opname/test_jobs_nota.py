"""A job posts the nota that it names, and no other: several jobs of one document, and several documents of one nota."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from everest.opname.workflow import post_opname
from everest.settings import Settings
from everest.workflow import runner
from tests import builders
from tests.builders import Line
from tests.integration.opname.posting import NOON, post
from tests.integration.opname.walk import Walker


def test_another_document_with_a_posted_nota_is_a_conflict(walker: Walker, connection: Any) -> None:
    post(walker, connection, Line("A"), nomer_nota="SO-1")
    before = builders.books(connection)

    row, _ = post(walker, connection, Line("A"), nomer_nota="SO-1")

    assert (row["worker_status"], row["error_code"]) == ("FAILED", 409)
    assert "SO-1" in row["error"]
    assert builders.books(connection) == before


def test_a_job_that_names_another_nota_than_its_document_posts_nothing(walker: Walker, connection: Any) -> None:
    """It would be COMPLETED, and whoever asks for its nota would be told that it is posted."""
    document = builders.document(connection, nomer_nota="SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET nomer_nota = 'SO-2' WHERE id = %s", (document.shadow_id,))
    connection.commit()

    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert row["error_code"] == 409
    assert "menyebut nota SO-2" in row["error"] and "adalah nota SO-1" in row["error"]
    assert builders.books(connection).postings == 0


@pytest.mark.parametrize("nota", [None, "", "SO-1  "])
def test_a_job_without_a_nota_or_with_blanks_behind_it_is_the_documents(
    walker: Walker, connection: Any, nota: str | None
) -> None:
    document = builders.document(connection, nomer_nota="SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET nomer_nota = %s WHERE id = %s", (nota, document.shadow_id))
    connection.commit()

    assert walker.post(document.shadow_id) == "COMPLETED"


@pytest.mark.parametrize("tasks", ["per_step", "fused"])
@pytest.mark.parametrize(
    ("nota", "carriers", "ends"),
    [("SO-2", "SO-1", "FAILED"), ("SO-2", None, "FAILED"), ("SO-1 ", "SO-1", "COMPLETED"), (None, "SO-1", "COMPLETED")],
)
def test_a_second_job_that_came_while_the_document_was_at_work_is_completed_only_for_its_own_nota(
    walker: Walker,
    connection: Any,
    tasks: Literal["per_step", "fused"],
    nota: str | None,
    carriers: str | None,
    ends: str,
) -> None:
    document = builders.document(connection, [Line("A")], nomer_nota="SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET nomer_nota = %s WHERE id = %s", (carriers, document.shadow_id))
    second = builders.shadow_row(connection, document.transaksi_id, nota)
    connection.commit()
    definition = post_opname(Settings(posting_tasks=tasks))
    steps = [one.name for one in definition.steps]
    ticket = walker.claim(document.shadow_id)
    runner.run_task(definition, ticket, steps[:1], walker.database.transaction, is_last_try=True)
    assert walker.post(second) == "WAITING"

    for task in [steps] if tasks == "fused" else [[one] for one in steps]:
        runner.run_task(definition, ticket, task, walker.database.transaction, is_last_try=True)

    row, first = builders.shadow(connection, second), builders.shadow(connection, document.shadow_id)
    assert (row["worker_status"], first["worker_status"]) == (ends, "COMPLETED")
    assert builders.books(connection).postings == 1
    if ends == "COMPLETED":
        assert (row["response"], row["workflow_id"]) == (first["response"], first["workflow_id"])
        return
    late = builders.shadow_row(connection, document.transaksi_id, nota)
    connection.commit()
    walker.post(late)
    after = builders.shadow(connection, late)
    told = ("workflow_id", "current_step", "error_code", "error", "response")
    assert [row[name] for name in told] == [after[name] for name in told]  # as one that comes after the end
    assert (row["error_code"], row["workflow_id"], row["response"]["message"]) == (409, None, row["error"])
    assert "dengan nota SO-1; nota SO-2 tidak bisa" in row["error"]


def test_a_job_that_was_refused_for_its_nota_stays_so_when_one_with_the_documents_posts_it(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, [Line("A")], nomer_nota="SO-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET nomer_nota = 'SO-2' WHERE id = %s", (document.shadow_id,))
    second = builders.shadow_row(connection, document.transaksi_id, "SO-1")
    connection.commit()
    assert walker.post(document.shadow_id) == "FAILED"

    assert walker.post(second) == "COMPLETED"

    row = builders.shadow(connection, document.shadow_id)
    assert (row["worker_status"], row["error_code"], row["workflow_id"]) == ("FAILED", 409, None)


def change(connection: Any, sql: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
    connection.commit()


def test_a_job_that_takes_a_failed_document_over_after_its_first_step_posts_its_own_nota_only(
    walker: Walker, connection: Any
) -> None:
    """The carrier names none, so nobody but the last step can tell."""
    document = builders.document(connection, nomer_nota="SO-1", diotorisasi_at=NOON)
    change(connection, "UPDATE rabbit_publish_shadow SET nomer_nota = NULL WHERE id = %s", document.shadow_id)

    def close_the_month(step: str) -> None:
        if step == "post_jurnal":
            builders.period(connection, "2026-03", "CLOSED")
            connection.commit()

    assert walker.post(document.shadow_id, close_the_month) == "FAILED"
    change(connection, "UPDATE periode_akuntansi SET status = 'OPEN' WHERE periode = '2026-03'")
    other = builders.shadow_row(connection, document.transaksi_id, "SO-2")
    connection.commit()
    walker.post(other)

    assert builders.shadow(connection, other)["worker_status"] == "FAILED"
    assert builders.books(connection) == builders.NOTHING_POSTED


@pytest.mark.parametrize("word", ["COMPLETED", "Completed"])
def test_a_nota_that_an_older_system_completed_is_settled_untouched(walker: Walker, connection: Any, word: str) -> None:
    builders.shadow_row(connection, 77, "SO-OLD", worker_status=word)

    row, _ = post(walker, connection, Line("A"), nomer_nota="SO-OLD")

    assert row["worker_status"] == "COMPLETED"
    assert "sistem lama" in row["response"]["message"]
    assert builders.books(connection) == builders.NOTHING_POSTED
