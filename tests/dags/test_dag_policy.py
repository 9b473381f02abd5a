"""House rules for every DAG file, checked on what Airflow really parses."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {path.parent.name for path in (ROOT / "plugins").glob("*/__init__.py")}
ALLOWED_TAGS = {"opname", "posting", "reversal", "audit", "example"}

# In a process of its own: Airflow wants its settings before its first import, and must not touch anybody's database.
PARSE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk
sys.modules.pop("pandas", None)
started = time.process_time()
bag = DagBag(sys.argv[1])

# And the posting as a site with EVEREST_POSTING_TASKS=fused has it.
from dataclasses import replace
from everest.opname.workflow import post_opname
from everest.settings import Settings
from everest.workflow.airflow_dag import to_dag
fused = replace(post_opname(Settings(posting_tasks="fused")), dag_id="fused")
print("\\n" + json.dumps({
    "errors": bag.import_errors,
    "pandas": "pandas" in sys.modules,
    "dags": [
        {
            "id": dag.dag_id,
            "doc": dag.doc_md,
            "tags": sorted(dag.tags),
            "paused": dag.is_paused_upon_creation,
            "schedule": dag.schedule,
            "timezone": str(getattr(dag.timezone, "name", dag.timezone)),
            "catchup": dag.catchup,
            "max_active_runs": dag.max_active_runs,
            "tasks": [
                {
                    "id": task.task_id,
                    "doc": task.doc_md,
                    "retries": task.retries,
                    "rule": getattr(task.trigger_rule, "value", task.trigger_rule),
                    "timeout": task.execution_timeout and task.execution_timeout.total_seconds(),
                    "upstream": sorted(task.upstream_task_ids),
                }
                for task in dag.tasks
            ],
        }
        for dag in [*bag.dags.values(), to_dag(fused, tags=("opname", "posting"))]
    ],
}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("airflow")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "EVEREST"))}
    env = clean | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}",
    }
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(ROOT / "dags")],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_every_dag_file_parses(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert {dag["id"] for dag in parsed["dags"]} >= {"opname_posting", "opname_reversal", "monthly_closing"}


def test_every_workflow_of_this_site_and_every_nested_one_has_its_dag(parsed: dict[str, Any]) -> None:
    from everest import bootstrap

    assert {dag["id"] for dag in parsed["dags"]} >= {one.dag_id for one in bootstrap.definitions().values()}


def test_parsing_imports_no_pandas(parsed: dict[str, Any]) -> None:
    assert not parsed["pandas"]


def test_every_dag_explains_itself_and_starts_unpaused(parsed: dict[str, Any]) -> None:
    for dag in parsed["dags"]:
        assert dag["doc"] and len(dag["doc"]) > 80, dag["id"]
        assert dag["tags"] and set(dag["tags"]) <= ALLOWED_TAGS, dag["id"]
        assert dag["paused"] is False, "a paused DAG takes triggers and keeps them silently"
        assert dag["catchup"] is False


def test_every_task_explains_itself_and_is_bounded(parsed: dict[str, Any]) -> None:
    for dag in parsed["dags"]:
        for task in dag["tasks"]:
            name = f"{dag['id']}.{task['id']}"
            assert task["doc"] and task["doc"].split("\n")[0].endswith("."), name
            assert task["retries"] >= 2, f"{name}: an API server that restarts burns a try"
            assert task["timeout"], f"{name}: a task without a timeout can hang for ever"


def test_the_posting_is_three_tasks_in_a_row(parsed: dict[str, Any]) -> None:
    (posting,) = [dag for dag in parsed["dags"] if dag["id"] == "opname_posting"]

    assert posting["schedule"] is None
    assert [(task["id"], task["upstream"]) for task in posting["tasks"]] == [
        ("compute_variance", []),
        ("clean_duplicate_notas", ["compute_variance"]),
        ("post_jurnal", ["clean_duplicate_notas"]),
    ]
    assert {task["rule"] for task in posting["tasks"]} == {"none_failed"}, "a skip before a step lets it pass"


def test_a_fused_posting_is_one_task_with_the_time_and_the_words_of_all_its_steps(parsed: dict[str, Any]) -> None:
    (posting,) = [dag for dag in parsed["dags"] if dag["id"] == "opname_posting"]
    (fused,) = [dag for dag in parsed["dags"] if dag["id"] == "fused"]

    (task,) = fused["tasks"]
    assert (task["id"], task["upstream"]) == ("compute_variance_to_post_jurnal", [])
    assert task["timeout"] == sum(one["timeout"] for one in posting["tasks"])
    assert all(one["doc"] in task["doc"] for one in posting["tasks"])
    assert all(f"**{one['id']}**" in task["doc"] for one in posting["tasks"])


def test_the_example_says_at_each_task_what_it_waits_for(parsed: dict[str, Any]) -> None:
    (closing,) = [dag for dag in parsed["dags"] if dag["id"] == "monthly_closing"]
    docs = {task["id"]: task["doc"] for task in closing["tasks"]}

    assert list(docs) == [
        "list_warehouses", "open_closing", "check_warehouse", "warehouse_head_approves", "finance_approves",
        "draft_report", "reviewer_decides", "until_accepted", "file_report", "finish_closing",
    ]  # fmt: skip
    assert "approval `keuangan`, at most 5 days" in docs["finance_approves"]
    assert docs["until_accepted"] == "Goes back to `draft_report` until its condition holds, at most 5 times."
    assert "`closing_report`" in docs["file_report"]


def test_each_invariant_of_the_books_is_a_task_of_its_own_that_explains_itself(parsed: dict[str, Any]) -> None:
    from everest.audit.invariants import INVARIANTS

    (audit,) = [dag for dag in parsed["dags"] if dag["id"] == "ledger_audit"]

    assert (audit["schedule"], audit["timezone"], audit["max_active_runs"]) == ("0 2 * * *", "Asia/Jakarta", 1)
    assert [task["id"] for task in audit["tasks"]] == [invariant.key for invariant in INVARIANTS]
    assert all(task["upstream"] == [] for task in audit["tasks"]), "one that is broken hides no other"
    assert all("What to do:" in task["doc"] for task in audit["tasks"])


@pytest.mark.parametrize("path", sorted((ROOT / "dags").glob("*.py")), ids=lambda path: path.name)
def test_dag_files_are_thin(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert ast.get_docstring(tree)
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    roots = {module.partition(".")[0] for module in modules | plain}
    assert roots <= PACKAGES, "never from another DAG file or a driver"
    assert not any(isinstance(node, ast.If) for node in ast.walk(tree)), "no decision about stock in a DAG file"
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60


def test_airflow_does_not_execute_the_package_file_by_file() -> None:
    ignored = (ROOT / "plugins" / ".airflowignore").read_text(encoding="utf-8").splitlines()

    assert {f"{package}/" for package in PACKAGES} <= set(ignored)
