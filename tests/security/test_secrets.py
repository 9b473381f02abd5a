"""Passwords come from the environment or from files, and are nowhere else: no log, repr, traceback or process list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from everest.audit.settings import AuditSettings
from everest.pages.settings import PageSettings
from everest.reconciler.settings import ReconcilerSettings
from everest.settings import mysql_url
from ingest_consumer.secret_files import LONGEST_BYTES, SECRETS
from ingest_consumer.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
SECRET = "geheim7Kq"
PLAIN = {
    "EVEREST_MYSQL_URL": f"mysql://u:{SECRET}@127.0.0.1:1/books",
    "EVEREST_AMQP_URL": f"amqp://u:{SECRET}@127.0.0.1:1/v",
    "EVEREST_AIRFLOW_PASSWORD": SECRET,
    "EVEREST_RABBIT_MANAGEMENT_PASSWORD": SECRET,
}
REST = {
    "EVEREST_AIRFLOW_URL": "http://127.0.0.1:1",
    "EVEREST_AIRFLOW_USER": "u",
    "EVEREST_RABBIT_MANAGEMENT_URL": "http://127.0.0.1:1",
    "EVEREST_RABBIT_MANAGEMENT_USER": "u",
}
PROGRAMS: dict[str, Callable[[Mapping[str, str]], Any]] = {
    "consumer": lambda env: Settings.from_environment(env, airflow=True),
    "reconciler": ReconcilerSettings.from_environment,
    "commands": mysql_url,
    "audit": AuditSettings.from_environment,
    "pages": lambda env: PageSettings.from_environment("pages", None, env),
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The same settings with every secret in a file, as container platforms hand them over."""
    named = dict(REST)
    for name in SECRETS:
        file = tmp_path / name.lower()
        file.write_text(PLAIN[name] + "\n")
        named[f"{name}_FILE"] = str(file)
    return named


@pytest.fixture(params=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Callable[[Mapping[str, str]], Any]:
    return PROGRAMS[str(request.param)]


def test_every_program_takes_its_secrets_from_files(
    program: Callable[[Mapping[str, str]], Any], files: dict[str, str]
) -> None:
    assert program(files) == program(PLAIN | REST)


def test_no_secret_shows_when_settings_are_printed(program: Callable[[Mapping[str, str]], Any]) -> None:
    settings = program(PLAIN | REST)
    assert SECRET not in f"{settings!r} {settings}"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"EVEREST_MYSQL_URL": f"mysql://u:a/{SECRET}@h/books"}, id="a slash in the password"),
        pytest.param({"EVEREST_MYSQL_URL": f"mysql://u:{SECRET}\uff0f@h/books"}, id="a character that hides a slash"),
        pytest.param({"EVEREST_MYSQL_URL": f"mysql://u:{SECRET}@h:{SECRET}/books"}, id="no number for a port"),
        pytest.param({"EVEREST_MYSQL_URL": f"postgresql://u:{SECRET}@h/books"}, id="another server"),
        pytest.param({"EVEREST_MYSQL_URL": f"mysql://u:{SECRET}@h/books?ssl_ca="}, id="an empty ssl_ca"),
        pytest.param(
            {"EVEREST_MYSQL_URL_FILE": "/nowhere", "EVEREST_MYSQL_URL": PLAIN["EVEREST_MYSQL_URL"]}, id="both"
        ),
    ],
)
def test_what_is_wrong_with_a_setting_is_said_without_the_setting(changes: dict[str, str]) -> None:
    for name in ("consumer", "reconciler", "commands"):
        with pytest.raises(Exception, match="EVEREST_MYSQL_URL") as caught:
            PROGRAMS[name](PLAIN | REST | changes)
        told = "".join(traceback.format_exception(caught.value)) + str(caught.value)
        assert SECRET not in told, name


def test_a_secret_file_that_cannot_be_read_is_named_and_one_that_is_no_secret_is_not_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    huge.write_bytes(b"x" * (LONGEST_BYTES + 1))
    env = {**REST, "EVEREST_MYSQL_URL_FILE": "/nowhere", "EVEREST_AMQP_URL_FILE": str(huge)}
    with pytest.raises(Exception, match="EVEREST_MYSQL_URL_FILE: /nowhere cannot be read") as caught:
        Settings.from_environment(env)
    assert f"EVEREST_AMQP_URL_FILE: {huge} is not a text" in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "ingest_consumer", "relay"],
        ["-m", "ingest_consumer", "consume", "--workers", "1"],
        ["-m", "ingest_consumer", "dead-letters", "list"],
        ["-m", "everest.reconciler"],
        ["-m", "everest", "status", "X"],
    ],
    ids=lambda command: " ".join(command[1:]),
)
def test_a_program_that_reaches_no_server_says_so_and_never_its_password(
    command: list[str], files: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}",
        "EVEREST_LOG_LEVEL": "DEBUG",
        **files,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=env,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        listed = b""
        give_up_at = time.monotonic() + 60
        while process.poll() is None and not log.stat().st_size and time.monotonic() < give_up_at:
            listed += Path(f"/proc/{process.pid}/cmdline").read_bytes()
            listed += Path(f"/proc/{process.pid}/environ").read_bytes()
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)
    told = log.read_text(errors="replace")
    assert told.strip(), "it said nothing at all"
    assert SECRET not in told
    assert SECRET.encode() not in listed, "with files, not even the environment holds it"
