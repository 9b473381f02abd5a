"""Imported by Airflow when a component starts: what the scheduler imports here, every task inherits by fork.

Without it each task process imports pandas, the driver and Airflow's task code anew: a burst of one-task runs that use
pandas went from 1.4 to 4.8 runs a second. The DAG processor forks as well, one child per file it parses.
Found through PYTHONPATH (config/ is on it) or as $AIRFLOW_HOME/config.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress

from airflow.configuration import conf

from everest.errors import EverestError

# Nothing here is a setting; without this Airflow would copy every name below into its own.
__all__: list[str] = []

_FOR_PARSING = (
    "airflow.sdk.definitions.dag",
    "airflow.sdk.definitions.decorators",
    "airflow.dag_processing.dagbag",
    "everest.workflow.airflow_dag",
    "everest.audit.airflow_dag",
)
_FOR_TASKS = (
    *_FOR_PARSING,
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.sdk.execution_time.cache",
    # imported by the first task with a limit of time
    "airflow.sdk.execution_time.timeout",
    "airflow.providers.mysql.hooks.mysql",
    "MySQLdb.connections",
    # imported by the first connection
    "MySQLdb.converters",
    "MySQLdb.cursors",
    # an operator's template environment imports these by name, in each task
    "jinja2.ext",
    "pandas",
    "everest.audit.run",
    "everest.bootstrap",
    "everest.opname.reversal",
    "everest.opname.steps",
    "everest.opname.variance",
    "everest.workflow.builder",
    "everest.workflow.runner",
)
# What reads the site's settings as it is imported: a wrong one is told as an error of the DAG, not by a scheduler that
# does not start.
_WITH_SETTINGS = "everest.opname.workflow"
# Components that fork: `airflow scheduler` (LocalExecutor), `airflow celery worker`, `airflow dag-processor`.
_FORKS_TASKS = conf.get("core", "executor") == "LocalExecutor"
_PRELOADS = {"scheduler": _FOR_TASKS if _FORKS_TASKS else (), "celery": _FOR_TASKS, "dag-processor": _FOR_PARSING}

_preloaded = _PRELOADS.get(sys.argv[1] if len(sys.argv) > 1 else "", ())
for _name in _preloaded:
    importlib.import_module(_name)
if _preloaded and _preloaded is _FOR_TASKS:
    from airflow.sdk.listener import get_listener_manager

    import airflow_shortcuts
    import airflow_warm

    airflow_shortcuts.apply()
    # Each task would walk through plugins/ for listeners.
    get_listener_manager()
    airflow_warm.count_one_line()
    with suppress(EverestError):
        importlib.import_module(_WITH_SETTINGS)
