"""The posting of stock counts as an Airflow DAG. Its tasks and their rules: `everest.opname.workflow`."""

from everest.opname.workflow import POST_OPNAME, SETTINGS
from everest.workflow.airflow_dag import to_dag

dag = to_dag(POST_OPNAME, tags=("opname", "posting"), max_active_runs=SETTINGS.max_active_runs)
