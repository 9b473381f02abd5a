"""The posting of stock counts as EVEREST_POSTING_TASKS=fused makes it, under a name of its own beside the stack's."""

from dataclasses import replace

from everest.opname.workflow import SETTINGS, post_opname
from everest.workflow.airflow_dag import to_dag

FUSED = replace(post_opname(replace(SETTINGS, posting_tasks="fused")), dag_id="bench_fused")

dag = to_dag(FUSED, tags=("benchmark",), max_active_runs=SETTINGS.max_active_runs)
