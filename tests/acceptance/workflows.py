"""Workflows that only acceptance tests run: real work under limits that production never has.

`Live.dag` shows one of them to the stack's Airflow for the time of a test; Airflow's processes import this module.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

from everest.opname.steps import Step, clean_duplicate_notas, compute_variance, post_jurnal
from everest.opname.workflow import post_opname
from everest.settings import Settings
from everest.workflow.builder import workflow

TIMEOUT = timedelta(seconds=3)
"""Of one try; a step that is not in trouble needs a fraction of it."""


def post_at_once(state: dict[str, Any], step: Step) -> dict[str, Any]:
    """The three steps of a posting in one transaction: one task for each document."""
    for part in (compute_variance, clean_duplicate_notas, post_jurnal):
        state = {**state, **part(state, step)}
    return state


def oversleep(state: dict[str, Any], step: Step) -> dict[str, Any]:
    """Is never done in time."""
    time.sleep(600)
    return {}


ONE_AT_A_TIME = workflow("test_one_at_a_time").then(post_at_once).idempotency_key("{transaksi_id}").build()
NEVER_IN_TIME = (
    workflow("test_never_in_time").then(oversleep, timeout=TIMEOUT).idempotency_key("{transaksi_id}").build()
)
HURRIED_POSTING = replace(
    post_opname(Settings(step_timeout=TIMEOUT)), name="test_hurried_posting", dag_id="test_hurried_posting"
)
FUSED_POSTING = replace(post_opname(Settings(posting_tasks="fused")), dag_id="test_fused_posting")
"""The posting itself, as a site with EVEREST_POSTING_TASKS=fused has it, in a DAG beside the stack's."""

WORKFLOWS = {
    definition.dag_id: definition for definition in (ONE_AT_A_TIME, NEVER_IN_TIME, HURRIED_POSTING, FUSED_POSTING)
}
