"""The DAG of P6: three tasks, the second of which needs pandas. The same file in both environments.

The operators are the lightest there are; pandas is imported where it is used, as anybody would write it.
"""

from typing import Any

from airflow.sdk import DAG, BaseOperator


class Nothing(BaseOperator):
    def execute(self, context: Any) -> None:
        return None


class Sum(BaseOperator):
    def execute(self, context: Any) -> int:
        import pandas

        return int(pandas.DataFrame({"value": range(10)})["value"].sum())


with DAG(
    dag_id="bench_three",
    schedule=None,
    catchup=False,
    max_active_runs=64,
    is_paused_upon_creation=False,
    tags=["benchmark"],
) as dag:
    Nothing(task_id="one", retries=2) >> Sum(task_id="two", retries=2) >> Nothing(task_id="three", retries=2)
