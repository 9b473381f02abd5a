"""What the scheduler has done before it forks a task (config/airflow_local_settings.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# As `airflow scheduler` imports it; in a process of its own, because it changes Airflow for good.
PROBE = """
import sys
sys.argv = ["airflow", "scheduler"]
import airflow_local_settings, airflow_warm

first_uses = ("MySQLdb.converters", "airflow.sdk.execution_time.timeout", "pandas", "everest.opname.workflow")
print("missing", [name for name in first_uses if name not in sys.modules])
summary = airflow_warm.count_one_line()
print("counted", summary.baris_selisih, summary.surplus)
"""


CELERYS = """
import sys
sys.argv = ["airflow", "scheduler"]
import airflow_local_settings

print("loaded", [name for name in ("pandas", "everest.opname.steps", "airflow_warm") if name in sys.modules])
"""


def run(probe: str, home: Path) -> list[str]:
    path = f"{ROOT}:{ROOT / 'plugins'}:{ROOT / 'config'}"
    environment = {"PYTHONPATH": path, "AIRFLOW_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_scheduler_has_imported_what_a_task_uses_first_and_has_counted_a_line(tmp_path: Path) -> None:
    assert run(PROBE, tmp_path)[-2:] == ["missing []", "counted 1 3000.00"]


def test_a_scheduler_whose_tasks_run_on_celery_workers_carries_nothing_of_them(tmp_path: Path) -> None:
    """As docker/airflow.cfg says it: in the file, not by the environment."""
    (tmp_path / "airflow.cfg").write_text("[core]\nexecutor = CeleryExecutor\n")
    assert run(CELERYS, tmp_path)[-1] == "loaded []"
