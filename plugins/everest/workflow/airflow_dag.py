"""A workflow definition as an Airflow DAG: one task per step, with its name and its docstring.

The only module of everest that imports Airflow. A DAG run only walks forward: a step that finds nothing (more) to do
here, because the workflow waits, jumped back or belongs to a newer DAG run, skips the rest of the run, green.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout, DownstreamTasksSkipped

from everest.workflow import engine
from everest.workflow.definition import Definition, Step

CONNECTION_ID = "everest_mysql"
RETRY_DELAY = timedelta(seconds=2)
MAX_RETRY_DELAY = timedelta(seconds=30)


def to_dag(definition: Definition, tags: tuple[str, ...] = (), max_active_runs: int = 64) -> DAG:
    """The DAG of a definition; its id is the workflow's name. It has no schedule: the queue starts it.

    max_active_runs: DAG runs at work at once; more wait in Airflow's queue.
    """
    with DAG(
        dag_id=definition.name,
        schedule=None,
        catchup=False,
        max_active_runs=max_active_runs,
        is_paused_upon_creation=False,
        doc_md=definition.doc,
        tags=list(tags),
    ) as dag:
        tasks = [StepOperator(definition=definition, step=step) for step in definition.steps]
        for earlier, later in pairwise(tasks):
            earlier >> later
    return dag


class StepOperator(BaseOperator):
    """Runs one try of one step. All rules are the engine's; this only translates its answers for Airflow."""

    ui_color = "#e8f0fe"

    def __init__(self, *, definition: Definition, step: Step, **kwargs: Any) -> None:
        super().__init__(
            task_id=step.name,
            doc_md=step.doc,
            retries=definition.max_attempts - 1,
            retry_delay=RETRY_DELAY,
            retry_exponential_backoff=True,
            max_retry_delay=MAX_RETRY_DELAY,
            execution_timeout=step.timeout,
            # A replayed or skipped step before this one must not stop it.
            trigger_rule="none_failed",
            **kwargs,
        )
        self._definition = definition
        self._step = step

    def execute(self, context: Any) -> None:
        from airflow.providers.mysql.hooks.mysql import MySqlHook

        from everest import bootstrap
        from everest.workflow import runner

        instance = context["ti"]
        dag_run = context["dag_run"]
        ticket = engine.Ticket.from_conf(dag_run.run_id, dag_run.conf or {})
        database = bootstrap.database_from(MySqlHook(mysql_conn_id=CONNECTION_ID).get_conn)
        try:
            result = runner.run_step(
                self._definition,
                ticket,
                self._step.name,
                database.transaction,
                is_last_try=instance.try_number > instance.max_tries,
                timeout_error=AirflowTaskTimeout,
            )
        except engine.Fenced as fenced:
            raise AirflowFailException(fenced.message) from fenced
        except Exception as error:
            if runner.is_recorded(error):
                raise AirflowFailException(str(error)) from error
            raise
        finally:
            database.close()
        if isinstance(result, engine.Leave):
            self.log.info("Nothing more to do in this DAG run: %s", result.reason)
            rest = sorted(self.get_flat_relative_ids(upstream=False))
            if rest:
                raise DownstreamTasksSkipped(tasks=rest)  # type: ignore[no-untyped-call]
