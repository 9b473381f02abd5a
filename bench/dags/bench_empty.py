"""The floor of P4 and P5: an Airflow DAG of three tasks that do nothing, as many as a posting has.

The lightest operator that runs a task process: what remains is what Airflow itself costs. Same retries, same settings.
"""

from typing import Any

from airflow.sdk import DAG, BaseOperator


class Nothing(BaseOperator):
    def execute(self, context: Any) -> None:
        return None


with DAG(
    dag_id="bench_empty",
    schedule=None,
    catchup=False,
    max_active_runs=64,
    is_paused_upon_creation=False,
    tags=["benchmark"],
) as dag:
    Nothing(task_id="one", retries=2) >> Nothing(task_id="two", retries=2) >> Nothing(task_id="three", retries=2)
