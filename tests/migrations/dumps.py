"""The dump that docs/operations.md describes, and loading it: what an operator types, with the database's clients."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from everest.settings import MysqlUrl

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def dump(url: MysqlUrl, folder: Path, *further: str) -> bytes:
    """folder: for the file with the login. further: options beside the documented ones."""
    documented = re.search(r"^mariadb-dump (.*) SCHEMA >", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    assert documented
    take = [_client("mariadb-dump", "mysqldump"), _login(url, folder), *documented[1].split(), *further, url.schema]
    return subprocess.run(take, capture_output=True, check=True).stdout


def load(url: MysqlUrl, content: bytes, folder: Path) -> None:
    """Into the schema of `url`, which is empty."""
    command = [_client("mariadb", "mysql"), _login(url, folder), "--default-character-set=utf8mb4", url.schema]
    subprocess.run(command, input=content, check=True, capture_output=True)


def _login(url: MysqlUrl, folder: Path) -> str:
    file = folder / "login.cnf"
    login = f'host={url.host}\nport={url.port}\nuser={url.user}\npassword="{url.password}"\n'
    file.write_text(f"[client]\n{login}")
    return f"--defaults-extra-file={file}"


def _client(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(names)} is installed; `make setup` brings the database's clients")
    return found
