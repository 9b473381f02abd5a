"""What `make check` says about secrets and known holes; where a tool needs a network, a stand-in answers."""

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
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return Layout(tmp_path)


def tool(layout: Layout, name: str, output: str, code: int = 0) -> None:
    file = layout.venv / "bin" / name
    # A shell's: the interpreter of an environment in a folder with a space can't stand behind #!.
    file.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(output)}\nexit {code}\n")
    file.chmod(0o755)


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
    found = shutil.which("detect-secrets-hook", path=str(Path(sys.executable).parent))
    assert found is not None
    (layout.venv / "bin" / "detect-secrets-hook").symlink_to(found)
    (layout.root / "clean.py").write_text("a = 1\n")
    assert checks._secrets(layout) is None
    assert "clean.py" in json.loads((layout.local / "secret-scan.json").read_text())

    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    (layout.root / "tests").mkdir()
    (layout.root / "tests" / "dirty.py").write_text(f"key = '{key}'\n")
    problem = checks._secrets(layout)
    assert problem is not None and "tests/dirty.py" in problem and key not in problem
