"""The reversal of posted stock counts as an Airflow DAG. Its task and its rules: `everest.opname.workflow`."""

from everest.opname.workflow import REVERSE_OPNAME, SETTINGS
from everest.workflow.airflow_dag import to_dag

dag = to_dag(REVERSE_OPNAME, tags=("opname", "reversal"), max_active_runs=SETTINGS.max_active_runs)
