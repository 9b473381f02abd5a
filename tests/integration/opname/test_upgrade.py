"""Documents that are on their way when another version is deployed (docs/operations.md, "Upgrade")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everest.opname.steps import clean_duplicate_notas, compute_variance, post_jurnal, record_failure
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl
from everest.workflow.builder import Builder, workflow
from everest.workflow.definition import Definition
from tests import builders
from tests.builders import Document
from tests.integration.opname.deciding import approve, surprising
from tests.integration.opname.walk import Walker


def look_again(state: dict[str, Any], step: Any) -> dict[str, Any]:
    """A step that the next version has."""
    return {}


def three_steps(made: Builder) -> Builder:
    return made.then(compute_variance).then(clean_duplicate_notas).then(post_jurnal)


def finished(made: Builder) -> Definition:
    return made.max_transitions(60).idempotency_key("{transaksi_id}").on_failure(record_failure).build()


NEXT = finished(
    workflow("opname_posting", version="2")
    .then(compute_variance)
    .then(look_again)
    .then(clean_duplicate_notas)
    .then(post_jurnal)
)
BESIDE = finished(three_steps(workflow("opname_posting", version="1", dag_id="opname_posting_v1")))
"""The present version, as it is deployed beside the next one."""

Deployed = Callable[..., Walker]


@pytest.fixture
def deployed(database: MysqlUrl) -> Iterator[Deployed]:
    """A walker of a definition, with an older one beside it or not."""
    walkers: list[Walker] = []

    def deploy(definition: Definition, older: Definition | None = None) -> Walker:
        walkers.append(Walker(database, definition=definition, older=older))
        return walkers[-1]

    yield deploy
    for walker in walkers:
        walker.close()


def run_of(connection: Any, document: Document) -> dict[str, Any]:
    chosen = "SELECT version, dag_id FROM workflow_runs WHERE idempotency_key = %s"
    (row,) = builders.rows(connection, chosen, str(document.transaksi_id))
    return row


def test_the_version_beside_is_the_present_one() -> None:
    assert BESIDE.definition_hash == POST_OPNAME.definition_hash != NEXT.definition_hash


def test_a_document_that_waits_for_a_person_goes_on_in_the_older_version_that_is_deployed_beside(
    deployed: Deployed, connection: Any
) -> None:
    document = surprising(connection)
    assert deployed(POST_OPNAME).post(document.shadow_id) == "WAITING"

    upgraded = deployed(NEXT, BESIDE)
    approve(upgraded, document.nomer_nota)
    upgraded.dag_run(upgraded.claim(document.shadow_id))
    assert run_of(connection, document) == {"version": "1", "dag_id": "opname_posting_v1"}
    assert builders.shadow(connection, document.shadow_id)["dag_id"] == "opname_posting_v1"
    assert deployed(BESIDE).post(document.shadow_id) == "COMPLETED"
    assert builders.books(connection).postings == 1


def test_without_it_the_document_fails_with_a_sentence_and_posts_once_it_is_deployed(
    deployed: Deployed, connection: Any
) -> None:
    document = surprising(connection)
    assert deployed(POST_OPNAME).post(document.shadow_id) == "WAITING"
    upgraded = deployed(NEXT)
    approve(upgraded, document.nomer_nota)
    assert upgraded.post(document.shadow_id) == "FAILED"
    job = builders.shadow(connection, document.shadow_id)
    assert "began with another definition of opname_posting (version 1)" in job["error"]
    assert builders.books(connection) == builders.NOTHING_POSTED

    upgraded = deployed(NEXT, BESIDE)
    with upgraded.database.transaction() as tx:
        tx.runs.rerun(document.shadow_id, "rina", None)
    upgraded.dag_run(upgraded.claim(document.shadow_id))
    assert deployed(BESIDE).post(document.shadow_id) in ("COMPLETED", "WAITING")
    if builders.shadow(connection, document.shadow_id)["worker_status"] == "WAITING":
        approve(upgraded, document.nomer_nota)
        assert deployed(BESIDE).post(document.shadow_id) == "COMPLETED"
    assert builders.books(connection).postings == 1


def test_a_job_that_another_program_wrote_before_the_upgrade_begins_in_the_new_version(
    deployed: Deployed, connection: Any
) -> None:
    document = builders.document(connection)
    assert deployed(NEXT).post(document.shadow_id) == "COMPLETED"
    assert run_of(connection, document)["version"] == "2"


def test_a_posting_that_stands_between_two_steps_is_ended_by_the_same_definition_with_newer_code(
    deployed: Deployed, connection: Any
) -> None:
    """What a step does may change at any time; the hash is over what the definition says."""
    document = builders.document(connection)
    before = deployed(POST_OPNAME)
    ticket = before.claim(document.shadow_id)
    before.step(ticket, "compute_variance")
    after = deployed(finished(three_steps(workflow("opname_posting", version="1"))))
    after.step(ticket, "clean_duplicate_notas")
    after.step(ticket, "post_jurnal")
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "COMPLETED"
