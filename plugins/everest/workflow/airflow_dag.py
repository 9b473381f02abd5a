"""A workflow definition as an Airflow DAG: tasks with the steps' names and docs.

The only module of everest that imports Airflow. A DAG run only walks forward: a step that finds nothing (more) to do
here, because the workflow waits, jumped back or belongs to a newer DAG run, skips the rest of the run, green.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

from airflow.sdk import DAG, BaseOperator, Connection, TaskGroup
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout, DownstreamTasksSkipped
from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded
from airflow.sdk.log import mask_secret
from airflow.secrets.environment_variables import EnvironmentVariablesBackend

from everest.errors import DefinitionError
from everest.workflow import definition as d
from everest.workflow.definition import PRIORITY_WEIGHT, Definition, Step
from everest.workflow.ticket import Fenced, Leave, Result, Ticket

CONNECTION_ID = "everest_mysql"
RETRY_DELAY = timedelta(seconds=2)
MAX_RETRY_DELAY = timedelta(seconds=30)
DECISION_TIMEOUT = timedelta(minutes=5)
"""Of a task that only looks at rows: a wait, a loop, a hand-off."""

_DEFINITIONS: dict[str, Definition] = {}
"""By dag_id. Every task process parses the DAG file, so its own definition is there; operators keep plain text only,
because what they hold is stored with the DAG and must be the same at every parse."""


def to_dag(definition: Definition, tags: tuple[str, ...] = (), max_active_runs: int = 64) -> DAG:
    """The DAG of a definition. It has no schedule: the queue starts it.

    max_active_runs: DAG runs at work at once; more wait in Airflow's queue.
    """
    _DEFINITIONS[definition.dag_id] = definition
    with DAG(
        dag_id=definition.dag_id,
        schedule=None,
        catchup=False,
        max_active_runs=max_active_runs,
        is_paused_upon_creation=False,
        doc_md=definition.doc,
        tags=list(tags),
    ) as dag:
        for earlier, later in pairwise([_render(definition, steps) for steps in definition.grouped()]):
            earlier >> later
    return dag


def _render(definition: Definition, steps: list[Step]) -> Any:
    step = steps[0]
    if len(steps) > 1:
        doc = "\n\n".join(f"**{one.name}**: {one.doc}" for one in steps)
        timeouts = [one.timeout for one in steps if one.timeout]
        limit = sum(timeouts, timedelta()) if len(timeouts) == len(steps) else None
        return _operator(definition, definition.task_of(step.name), [one.name for one in steps], doc, limit)
    match step:
        case d.Parallel():
            with TaskGroup(step.name, tooltip=step.doc) as group:
                for branch in step.branches:
                    doc = (branch.handler.__doc__ or step.doc).strip()
                    _operator(definition, branch.name, [step.name], doc, step.timeout, branch.name)
            return group
        case d.ForEach():
            fixed = _arguments(definition, step.name, step.doc, step.timeout)
            slots = [str(slot) for slot in range(step.concurrency)]
            return StepOperator.partial(**fixed, dag_key=definition.dag_id, steps=[step.name]).expand(branch=slots)
        case _:
            limit = DECISION_TIMEOUT if step.waits or not hasattr(step, "handler") else step.timeout
            return _operator(definition, step.name, [step.name], step.doc, limit)


def _operator(
    definition: Definition, task_id: str, steps: list[str], doc: str, timeout: timedelta | None, branch: str = ""
) -> StepOperator:
    arguments = _arguments(definition, task_id, doc, timeout)
    return StepOperator(**arguments, dag_key=definition.dag_id, steps=steps, branch=branch)


def _arguments(definition: Definition, task_id: str, doc: str, timeout: timedelta | None) -> dict[str, Any]:
    options = definition.options
    queue = {} if options.queue is None else {"queue": options.queue}
    return {
        "task_id": task_id,
        "doc_md": doc,
        "retries": options.max_attempts - 1,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": True,
        "max_retry_delay": MAX_RETRY_DELAY,
        "execution_timeout": timeout,
        "priority_weight": PRIORITY_WEIGHT[options.priority],
        "weight_rule": "absolute",
        # A replayed or skipped step before this one must not stop it.
        "trigger_rule": "none_failed",
        **queue,
    }


def _log_ids(ticket: Ticket, conf: Mapping[str, Any], database: Any) -> dict[str, Any]:
    nota, workflow_id = conf.get("nota"), ticket.workflow_id
    if nota is None or workflow_id is None:
        job = None
        with suppress(Exception), database.transaction() as tx:  # a line without its nota is better than no try
            job = tx.runs.shadow(ticket.shadow_id)
        # A message of another program names no run of ours; its row does, once the first step has begun one.
        nota, workflow_id = nota or (job and job.nomer_nota), workflow_id or (job and job.workflow_id)
    ids = {
        "shadow_id": ticket.shadow_id,
        "transaksi_id": ticket.transaksi_id,
        "nota": nota,
        "workflow_id": workflow_id,
        "dag_run_id": ticket.dag_run_id,
        "n": ticket.n,
    }
    return {name: value for name, value in ids.items() if value is not None}


def _instances(definition: Definition, task_ids: Iterable[str]) -> list[str | tuple[str, int]]:
    """These tasks as Airflow skips them: the slots of a for_each each by its number; its bare name would skip none."""
    slots = {step.name: step.concurrency for step in definition.steps if isinstance(step, d.ForEach)}
    found: list[str | tuple[str, int]] = []
    for one in sorted(task_ids):
        found += [(one, slot) for slot in range(slots[one])] if one in slots else [one]
    return found


class _Known(Connection):
    """Airflow's own reads its extra anew each time it is asked, and tells the task's supervisor each time what to mask
    in it. The hook asks eight times."""

    @cached_property
    def extra_dejson(self) -> dict[str, Any]:
        try:
            found = json.loads(self.extra or "{}")
        except ValueError:
            return {}  # as Airflow has it
        return found if isinstance(found, dict) else {}


def _from_environment() -> _Known | None:
    """The connection, where the environment is the first place in which Airflow would look for it; else None, and the
    hook looks as ever. What it holds is masked in one message to the supervisor instead of eleven."""
    first = ensure_secrets_backend_loaded()[0]
    value = first.get_conn_value(CONNECTION_ID) if isinstance(first, EnvironmentVariablesBackend) else None
    if not value:
        return None
    is_json = value.lstrip().startswith("{")
    found = _Known.from_json(value, CONNECTION_ID) if is_json else _Known.from_uri(value, CONNECTION_ID)
    mask_secret([found.password, found.extra, found.extra_dejson])
    return found  # type: ignore[return-value]


def open_connection(**arguments: Any) -> Any:
    """A connection of Airflow's everest_mysql, with more of the driver's arguments than an Airflow connection holds."""
    from airflow.providers.mysql.hooks.mysql import MySqlHook

    class Hook(MySqlHook):
        def _get_conn_config_mysql_client(self, conn: Any) -> dict[str, Any]:
            return super()._get_conn_config_mysql_client(conn) | arguments

    return Hook(mysql_conn_id=CONNECTION_ID, connection=_from_environment()).get_conn()


class StepOperator(BaseOperator):
    """Runs one try of its steps. All rules are the engine's; this only translates its answers."""

    ui_color = "#e8f0fe"

    def __init__(self, *, dag_key: str, steps: list[str], branch: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dag_key = dag_key
        self.steps = steps
        self.branch = branch

    def execute(self, context: Any) -> None:
        from structlog.contextvars import bound_contextvars

        from everest import bootstrap

        definition = _DEFINITIONS.get(self.dag_key)
        if definition is None:
            raise DefinitionError(f"DAG {self.dag_key} has no workflow definition in this process")
        dag_run = context["dag_run"]
        conf = dag_run.conf or {}
        ticket = Ticket.from_conf(dag_run.run_id, conf, dag_run.clear_number or 0)
        # Airflow ends a task by a signal, and no signal reaches a process that waits in the driver for a server that
        # will never answer: only the socket's own patience ends that wait.
        database = bootstrap.database_from(open_connection, answer_within=self.execution_timeout)
        try:
            # every line of this task, whoever writes it, carries the ids by which the other logs name the job
            with bound_contextvars(**_log_ids(ticket, conf, database)):
                self.log.info("Steps of this task: %s", ", ".join(self.steps))
                result = self._try(context, definition, ticket, database)
            if isinstance(result, Leave):
                self._skip_the_rest()
        finally:
            database.close()

    def _try(self, context: Any, definition: Definition, ticket: Ticket, database: Any) -> Result:
        from everest import bootstrap
        from everest.workflow import runner

        instance = context["ti"]
        try:
            result = runner.run_task(
                definition,
                ticket,
                self.steps,
                database.transaction,
                is_last_try=instance.try_number > instance.max_tries,
                timeout_error=AirflowTaskTimeout,
                branch=self.branch,
                deployed=bootstrap.deployed,
            )
        except Fenced as fenced:
            raise AirflowFailException(fenced.message) from fenced
        except Exception as error:
            if runner.is_recorded(error):
                raise AirflowFailException(str(error)) from error
            raise
        if isinstance(result, Leave):
            self.log.info("Nothing more to do in this DAG run: %s", result.reason)
        return result

    def _skip_the_rest(self) -> None:
        rest = _instances(_DEFINITIONS[self.dag_key], self.get_flat_relative_ids(upstream=False))
        if rest:
            raise DownstreamTasksSkipped(tasks=rest)  # type: ignore[no-untyped-call]
