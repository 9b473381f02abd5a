"""What `status` advises about a document that stands still: what helps, by its code and its facts."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime

import pytest

from everest.cli import advice
from everest.intake.lookup import Job

NOTHING = Job(**dict.fromkeys(field.name for field in fields(Job)))  # type: ignore[arg-type]
FAILED = replace(NOTHING, shadow_id=8, transaksi_id=5, nomer_nota="SO 1", workflow_id=3, worker_status="FAILED")
STALE = {"errors": [{"baris": 1, "kolom": "kode_barang", "pesan": "basi"}]}


def told(job: Job, watched: bool = False) -> str:
    return "\n".join(advice.next_steps(job, watched))


@pytest.mark.parametrize("code", [404, 409, 422, 423, 500, 503, 504])
def test_what_failed_with_a_fault_has_a_letter_that_can_be_dropped(code: int) -> None:
    assert "python -m ingest_consumer dead-letters drop --job 8 --reason" in told(replace(FAILED, error_code=code))


@pytest.mark.parametrize(
    "job",
    [
        replace(FAILED, error_code=403),
        replace(FAILED, error_code=500, dead_lettered_at=datetime(1970, 1, 1)),
        replace(FAILED, error_code=500, transaksi_id=None, nomer_nota=None),
    ],
)
def test_where_there_is_no_letter_or_no_document_the_workflow_is_cancelled_instead(job: Job) -> None:
    assert "drop" not in told(job)
    assert "python -m everest workflow cancel 3 --reason" in told(job)


def test_a_refused_document_is_asked_about_again_or_corrected_first() -> None:
    lines = told(replace(FAILED, error_code=403)).splitlines()
    assert lines[0] == "Ask again: python -m everest rerun '#8'"
    assert lines[1].startswith("Or correct it first: python -m everest submit FILE --replace --nota 'SO 1'")


def test_what_a_rerun_would_refuse_again_is_not_run_again() -> None:
    stale, posted = replace(FAILED, error_code=409, response=STALE), replace(FAILED, error_code=409, nota_posting_id=1)
    for job in (stale, posted):
        assert "would be refused again" in told(job)
        assert "everest rerun" not in told(job)
    assert "--rerun --snapshot-at" in told(stale)
    assert "under a new nota" in told(posted)
    assert "everest rerun '#8'" in told(replace(FAILED, error_code=409)), "an older system may be done with it by now"


def test_a_reversal_is_never_corrected_by_a_file() -> None:
    for code in (403, 409, 422, 423, 500):
        assert "submit FILE" not in told(replace(FAILED, error_code=code, membalik_nota="SO-0"))


def test_whoever_watches_a_document_that_waits_is_told_that_it_does_not_go_on_by_itself() -> None:
    waiting = replace(FAILED, worker_status="WAITING")
    asked = replace(waiting, response={"waiting": {"sequence": 2, "reasons": []}})
    assert "approve '#8' --question 2" in told(asked)
    assert "Ctrl-C" in told(asked, watched=True)
    assert "workflow show 3" in told(waiting)
    assert told(replace(waiting, worker_status="COMPLETED"), watched=True) == ""
