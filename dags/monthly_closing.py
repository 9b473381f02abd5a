"""The example of another module: monthly closing, and the workflow that runs inside it. Steps: `closing_example`."""

from closing_example.workflow import CLOSING_REPORT, MONTHLY_CLOSING
from everest.workflow.airflow_dag import to_dag

dag = to_dag(MONTHLY_CLOSING, tags=("example",))
# A nested workflow has DAG runs of its own, so it needs its DAG.
report_dag = to_dag(CLOSING_REPORT, tags=("example",))
