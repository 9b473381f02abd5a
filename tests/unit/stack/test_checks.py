"""What `make check` says about secrets, known holes and what else its tools look for: each is given something to find.
Where a tool needs a network, a stand-in answers."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stack import checks
from stack.layout import Layout

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A checkout of its own whose .venv has the tools that the test puts there."""
    (tmp_path / "requirements.txt").write_text("pika==1.0\n")
    (tmp_path / ".gitignore").write_text(".local/\n")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return Layout(tmp_path)


def tool(layout: Layout, name: str, output: str, code: int = 0) -> None:
    file = layout.venv / "bin" / name
    # A shell's: the interpreter of an environment in a folder with a space can't stand behind #!.
    file.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(output)}\nexit {code}\n")
    file.chmod(0o755)


def real(layout: Layout, name: str) -> None:
    """The tool itself."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is missing; `make setup` installs it"
    (layout.venv / "bin" / name).symlink_to(found)


def answer(**dependency: Any) -> str:
    return json.dumps({"dependencies": [{"name": "pika", "version": "1.0", **dependency}], "fixes": []})


def test_a_known_hole_is_named_with_the_version_that_mends_it(layout: Layout) -> None:
    tool(layout, "pip-audit", answer(vulns=[{"id": "PYSEC-1", "fix_versions": ["1.1"]}]), code=1)
    found = checks._holes(layout)
    assert found is not None and "pika 1.0: PYSEC-1, mended in 1.1" in found


@pytest.mark.parametrize("output", ["", "Connection refused", answer(skip_reason="not found on PyPI")])
def test_where_the_data_cannot_be_reached_that_is_said_and_nothing_fails(
    layout: Layout, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tool(layout, "pip-audit", output, code=1)
    assert checks._holes(layout) is None
    assert "were NOT looked for" in capsys.readouterr().out


def test_pins_without_holes_are_looked_up_once_a_day(layout: Layout) -> None:
    tool(layout, "pip-audit", answer(vulns=[]))
    assert checks._holes(layout) is None
    tool(layout, "pip-audit", answer(vulns=[{"id": "PYSEC-1", "fix_versions": []}]), code=1)
    assert checks._holes(layout) is None
    (layout.root / "requirements.txt").write_text("pika==1.1\n")
    assert checks._holes(layout) is not None, "other pins are looked up at once"


def test_a_secret_in_a_new_file_is_found_and_a_file_that_was_scanned_is_not_scanned_again(layout: Layout) -> None:
    real(layout, "detect-secrets-hook")
    (layout.root / "clean.py").write_text("a = 1\n")
    assert checks._secrets(layout) is None
    assert "clean.py" in json.loads((layout.local / "secret-scan.json").read_text())

    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    (layout.root / "tests").mkdir()
    (layout.root / "tests" / "dirty.py").write_text(f"key = '{key}'\n")
    problem = checks._secrets(layout)
    assert problem is not None and "tests/dirty.py" in problem and key not in problem


def test_a_secret_in_a_dashboard_is_found_and_measurements_are_not_looked_at(layout: Layout) -> None:
    real(layout, "detect-secrets-hook")
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    for name in ("deploy/board.json", "bench/results/today.json"):
        (layout.root / name).parent.mkdir(parents=True)
        (layout.root / name).write_text(json.dumps({"key": key}))
    problem = checks._secrets(layout)
    assert problem is not None and "deploy/board.json" in problem and "bench/results" not in problem


def test_a_dangerous_call_is_found(layout: Layout) -> None:
    real(layout, "bandit")
    file = layout.root / "stack" / "one.py"
    file.parent.mkdir()
    file.write_text("import subprocess\n\nsubprocess.run(['ls'], check=True)\n")
    assert checks._bandit(layout) is None, "of low severity"
    file.write_text("import subprocess\n\nsubprocess.run(input(), shell=True)\n")
    problem = checks._bandit(layout)
    assert problem is not None and "B602" in problem and "one.py" in problem


def test_an_import_that_no_line_of_the_requirements_brings_is_found(layout: Layout) -> None:
    real(layout, "deptry")
    shutil.copy(ROOT / "deptry.toml", layout.root)
    (layout.root / "pyproject.toml").write_text("")
    (layout.root / "requirements.in").write_text("pika\n")
    (layout.root / "requirements-dev.in").write_text("pytest\n")
    (layout.root / "one.py").write_text("import pika\n")
    clean = checks._deptry(layout)
    (layout.root / "one.py").write_text("import pika\nimport undeclared_thing\n")
    problem = checks._deptry(layout)
    assert clean is None
    assert problem is not None and "DEP001" in problem and "undeclared_thing" in problem


def test_an_image_of_any_version_is_found(layout: Layout) -> None:
    real(layout, "hadolint")
    file = layout.root / "docker" / "one.Dockerfile"
    file.parent.mkdir()
    file.write_text("FROM debian:12.5\nUSER 10001\n")
    assert checks._images(layout) is None
    file.write_text("FROM debian:latest\nUSER 10001\n")
    problem = checks._images(layout)
    assert problem is not None and "DL3007" in problem


def test_a_container_that_may_do_everything_is_found(layout: Layout) -> None:
    real(layout, "compose-lint")
    shutil.copytree(ROOT / "docker", layout.root / "docker")
    file = layout.root / "docker" / "compose.yaml"
    text = file.read_text(encoding="utf-8")
    assert checks._compose(layout) is None
    file.write_text(text.replace("  read_only: true\n", "  privileged: true\n", 1), encoding="utf-8")
    problem = checks._compose(layout)
    assert problem is not None and "privileged" in problem
