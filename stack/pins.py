"""requirements.in -> requirements.txt: compiled by uv, and a mark by which `make check` sees, offline, that it was."""

from __future__ import annotations

import hashlib
import os
import subprocess

from stack.layout import Layout, StackError

FILES = {"requirements": ["requirements.in"], "requirements-dev": ["requirements.in", "requirements-dev.in"]}
MARK = "# compiled from inputs with SHA-256 "


def recompile(layout: Layout) -> None:
    """Pins that still fit are kept; `UV_UPGRADE=1 make requirements` takes the newest of all."""
    for name in FILES:
        uv = str(layout.venv / "bin" / "uv")
        command = [uv, "pip", "compile", "--quiet", "--python-version", "3.11", f"{name}.in"]
        done = subprocess.run(
            [*command, "--output-file", f"{name}.txt"],
            cwd=layout.root,
            env=os.environ | {"UV_CUSTOM_COMPILE_COMMAND": "make requirements"},
            check=False,
        )
        if done.returncode:
            raise StackError(f"{name}.in could not be compiled")
        output = layout.root / f"{name}.txt"
        lines = [line for line in output.read_text(encoding="utf-8").splitlines() if not line.startswith(MARK)]
        output.write_text("\n".join([*lines, MARK + _digest(layout, name)]) + "\n", encoding="utf-8")


def check(layout: Layout) -> None:
    """Raises StackError when an input was changed after its output was compiled."""
    for name in FILES:
        text = (layout.root / f"{name}.txt").read_text(encoding="utf-8")
        if MARK + _digest(layout, name) not in text.splitlines():
            raise StackError(f"{name}.txt is older than its .in file; run `make requirements`")


def _digest(layout: Layout, name: str) -> str:
    digest = hashlib.sha256()
    for file in FILES[name]:
        digest.update((layout.root / file).read_bytes())
    return digest.hexdigest()
