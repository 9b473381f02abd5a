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


def test_a_scheduler_has_imported_what_a_task_uses_first_and_has_counted_a_line(tmp_path: Path) -> None:
    path = f"{ROOT}:{ROOT / 'plugins'}:{ROOT / 'config'}"
    environment = {"PYTHONPATH": path, "AIRFLOW_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["missing []", "counted 1 3000.00"]
