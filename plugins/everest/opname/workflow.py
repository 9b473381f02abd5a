"""POST_OPNAME and REVERSE_OPNAME: the posting of a stock count in three steps, and its reversal in one, as durable
workflows."""

from __future__ import annotations

from everest.opname.reversal import reverse_posting
from everest.opname.steps import clean_duplicate_notas, compute_variance, post_jurnal, record_failure
from everest.settings import Settings
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition

DOC = """Posts one authorised stock count (nota) into the journal and the stock card.

Each step is one database transaction, and a task of its own unless the site has them fused. Clearing a failed task
tries it again; a step that has done its work is never done twice. A count with late movements or values above the
limits ends its DAG run after the first step, green, and waits for a person (`python -m everest approvals`); the answer
begins the next DAG run. What a document's status is, and why, stands in `rabbit_publish_shadow`;
`python -m everest status NOTA` shows it.
"""

REVERSAL_DOC = """Reverses one posted stock count (nota): journal and stock card, mirrored, as a document of its own.

It is asked for with `python -m everest reverse NOTA --reason ...`; the original stays as it is. One task, one database
transaction. Clearing it after a failure tries again; a posting is reversed once, however often it is tried.
"""


def post_opname(settings: Settings) -> Definition:
    """The definition for a site's settings (tasks, tries of a step, longest try)."""
    return (
        workflow("opname_posting", version="1", doc=DOC)
        .then(compute_variance, timeout=settings.step_timeout)
        .then(clean_duplicate_notas, timeout=settings.step_timeout)
        .then(post_jurnal, timeout=settings.step_timeout)
        .tasks(settings.posting_tasks)
        .max_attempts(settings.max_attempts)
        # A document that is changed again and again while it is posted goes back about twenty times, then it fails;
        # whoever runs it again then has as many again.
        .max_transitions(60)
        .idempotency_key("{transaksi_id}")
        .on_failure(record_failure)
        .build()
    )


def reverse_opname(settings: Settings) -> Definition:
    """The same for the reversal. Its key names the posting that it reverses: `everest.reversal` gives it."""
    return (
        workflow("opname_reversal", version="1", doc=REVERSAL_DOC)
        .then(reverse_posting, timeout=settings.step_timeout)
        .max_attempts(settings.max_attempts)
        .on_failure(record_failure)
        .build()
    )


SETTINGS = Settings.from_environment()
POST_OPNAME = post_opname(SETTINGS)
REVERSE_OPNAME = reverse_opname(SETTINGS)
