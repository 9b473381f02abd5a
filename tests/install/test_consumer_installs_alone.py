"""The consumer installs into a clean environment and works there, without Airflow, pandas and everest."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_consumer.settings import Settings
from tests.fake_airflow import FakeAirflow
from tests.queue_rig import ROOT, Rows, Vhost, environment, until

FORBIDDEN = ("airflow", "pandas", "numpy", "everest", "MySQLdb")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment into which the project was installed from a copy, so that no build touches ours."""
    work = tmp_path_factory.mktemp("install")
    source = work / "source"
    shutil.copytree(ROOT / "ingest_consumer", source / "ingest_consumer", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", source)
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / "bin" / "python"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", str(source)], env=environ, cwd=work, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return python


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("EVEREST_", "PYTHON"))}
    return subprocess.run(
        [python, *arguments], env=environ, cwd=python.parent, capture_output=True, text=True, timeout=60
    )


def test_it_brings_neither_airflow_nor_pandas_nor_everest(clean: Path) -> None:
    code = f"import importlib.util as u; print([n for n in {FORBIDDEN!r} if u.find_spec(n)])"
    assert run(clean, "-c", code).stdout.strip() == "[]"


@pytest.mark.parametrize("words", [(), ("consume",), ("relay",), ("dead-letters",), ("dead-letters", "drop")])
def test_every_command_explains_itself(clean: Path, words: tuple[str, ...]) -> None:
    answer = run(clean, "-m", "ingest_consumer", *words, "--help")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("Usage:")


def test_its_script_stands_beside_python(clean: Path) -> None:
    answer = subprocess.run([clean.parent / "ingest-consumer", "--help"], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0
    assert "dead-letters" in answer.stdout


def test_without_settings_it_names_all_that_are_missing_and_shows_no_traceback(clean: Path) -> None:
    answer = run(clean, "-m", "ingest_consumer", "consume")
    assert answer.returncode == 5
    for name in ("EVEREST_MYSQL_URL", "EVEREST_AMQP_URL", "EVEREST_AIRFLOW_URL", "EVEREST_AIRFLOW_PASSWORD"):
        assert name in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.fixture
def installed(clean: Path, settings: Settings) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The installed relay and consumer, at work."""
    environ = {name: value for name, value in environment(settings).items() if name != "PYTHONPATH"}
    started = [
        subprocess.Popen([clean, "-m", "ingest_consumer", name], env=environ, cwd=clean.parent)
        for name in ("relay", "consume")
    ]
    yield started
    for one in started:
        one.terminate()
    for one in started:
        one.wait(30)


def test_it_carries_a_job_from_the_outbox_to_its_run(
    installed: list[subprocess.Popen[bytes]], vhost: Vhost, rows: Rows, airflow: FakeAirflow
) -> None:
    import json

    from ingest_consumer import shadow

    shadow_id = rows.ours(9001, publish_status="PENDING")
    with rows.database.transaction() as conn:
        shadow.enqueue(conn, shadow_id=shadow_id, workflow_id=None, body=json.dumps(rows.body(shadow_id)))

    until(lambda: rows.get(shadow_id)["dag_run_id"] in airflow.runs, "the run")
    rows.end(shadow_id, "COMPLETED")
    for one in installed:
        assert one.poll() is None
