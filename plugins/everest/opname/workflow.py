"""POST_OPNAME: the posting of a stock count, as a durable workflow of three steps."""

from __future__ import annotations

from everest.opname.steps import clean_duplicate_notas, compute_variance, post_jurnal, record_failure
from everest.settings import Settings
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition

DOC = """Posts one authorised stock count (nota) into the journal and the stock card.

Each task is one database transaction. Clearing a failed task tries it again; a task that has done its work is never
done twice. What a document's status is, and why, stands in `rabbit_publish_shadow`; `python -m everest status NOTA`
shows it.
"""


def post_opname(settings: Settings) -> Definition:
    """The definition for a site's settings (tries of a step, longest try)."""
    return (
        workflow("opname_posting", version="1", doc=DOC)
        .then(compute_variance, timeout=settings.step_timeout)
        .then(clean_duplicate_notas, timeout=settings.step_timeout)
        .then(post_jurnal, timeout=settings.step_timeout)
        .max_attempts(settings.max_attempts)
        # A document that is changed again and again while it is posted goes back about twenty times, then it fails.
        .max_transitions(60)
        .idempotency_key("{transaksi_id}")
        .on_failure(record_failure)
        .build()
    )


SETTINGS = Settings.from_environment()
POST_OPNAME = post_opname(SETTINGS)
