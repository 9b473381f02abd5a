"""MONTHLY_CLOSING and the workflow nested in it: what happens in which order, and what happens when it does not."""

from __future__ import annotations

from datetime import timedelta

from closing_example import handlers
from everest.workflow.builder import workflow

CLOSING_DOC = """Closes a month: looks at every warehouse, asks two people, drafts a report until a reviewer accepts it.

Started by `python -m everest workflow dispatch monthly_closing --payload '{"bulan": "2026-08"}'`. It waits for people
between its DAG runs, never inside one: a green run that ends early is a closing that waits. Who is to answer what:
`python -m everest workflow show monthly_closing:2026-08`.
"""
REPORT_DOC = """Numbers and files the report of a closing. It runs as a part of `monthly_closing`, never by itself.

`python -m everest workflow list --workflow closing_report` lists its runs.
"""

TRY = timedelta(minutes=5)
"""Longest one try of a step may take."""

CLOSING_REPORT = (
    workflow("closing_report", version="1", doc=REPORT_DOC)
    .then(handlers.number_report, timeout=TRY)
    .then(handlers.file_report, timeout=TRY, compensate_with=handlers.void_report)
    .build()
)

MONTHLY_CLOSING = (
    workflow("monthly_closing", version="1", doc=CLOSING_DOC)
    .idempotency_key("{bulan}")
    .then(handlers.list_warehouses, timeout=TRY)
    .then(handlers.open_closing, timeout=TRY, compensate_with=handlers.withdraw_closing)
    .for_each(
        "gudang",
        handlers.check_warehouse,
        result_key="pemeriksaan",
        reducer=handlers.summarise,
        concurrency=4,
        timeout=TRY,
    )
    .wait_for_approval(
        "kepala_gudang", name="warehouse_head_approves", result_key="kepala_gudang", timeout=timedelta(days=5)
    )
    .wait_for_approval("keuangan", name="finance_approves", result_key="keuangan", timeout=timedelta(days=5))
    .then(handlers.draft_report, timeout=TRY)
    .wait_for_decision("tinjauan", name="reviewer_decides", result_key="tinjauan", timeout=timedelta(days=5))
    .repeat_until("draft_report", condition=handlers.is_accepted, max_iterations=5, name="until_accepted")
    # Once the nested workflow is completed it is this step's to undo; while it runs, a cancel takes it along.
    .run_workflow(CLOSING_REPORT, name="file_report", compensate_with=handlers.void_report)
    .then(handlers.finish_closing, timeout=TRY)
    .on_cancel(handlers.tell_cancelled)
    .build()
)
