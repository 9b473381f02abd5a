"""Which Python is needed is said by one that is too old itself, in a sentence."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_what_is_read_before_the_check_can_be_read_by_any_python_3(name: str) -> None:
    tree = ast.parse((ROOT / "stack" / name).read_text(encoding="ascii"), feature_version=(3, 4))
    later = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Match)
    assert not [node for node in ast.walk(tree) if isinstance(node, later)]
    imported = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = [node.names[0].name for node in imported if isinstance(node, ast.Import)]
    assert first in ([], ["sys"])
    assert all(isinstance(node, ast.Import) or node.module == "stack.commands" for node in imported)


@pytest.mark.parametrize(("version", "command"), [((3, 9, 2), "setup"), ((3, 13, 0), "setup"), ((3, 6, 8), "down")])
def test_a_python_that_does_not_fit_is_told_which_one_does(version: tuple[int, int, int], command: str) -> None:
    words = ".".join(map(str, version))
    pretend = (
        f"import runpy, sys; sys.version_info = {(*version, 'final', 0)}; sys.version = '{words} x';"
        f" sys.argv = ['stack', '{command}']; runpy.run_module('stack', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", pretend], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("stack: Python 3.11 or 3.12 is needed, ")
    assert f" is {words}; name one that is here: `make PYTHON=python3.11 ...`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
