"""The logs of consumer, relay and reconciler: one line each, as text or as JSON, with the same ids everywhere.

Whoever works on a job says so once (`about`), and every line written meanwhile, by whatever module, carries its ids.
Passwords of the settings never get into a line, whatever a library puts into its messages. Nor does anything that other
programs write into a message or a row begin a line, or end one: what no line may hold is written as an escape.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO
from urllib.parse import quote, unquote, urlsplit

from ingest_consumer.errors import SettingsError
from ingest_consumer.secret_files import resolved

IDS = ("shadow_id", "transaksi_id", "nota", "workflow_id", "dag_run_id", "n")
"""The names by which a job is found, the same in tables, messages and logs."""
FORMATS = ("text", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
HIDDEN = "***"
SECRET_MIN = 6
"""Shorter ones would hide half of every line; a password like that is no secret."""

_about: ContextVar[Mapping[str, Any] | None] = ContextVar("everest_log_ids", default=None)


@contextmanager
def about(**ids: Any) -> Iterator[None]:
    """Lines written inside carry these ids; what is None is left out."""
    token = _about.set({**(_about.get() or {}), **{name: value for name, value in ids.items() if value is not None}})
    try:
        yield
    finally:
        _about.reset(token)


def ids() -> dict[str, Any]:
    """Of the job at work, in one order."""
    known = _about.get() or {}
    return {name: known[name] for name in IDS if name in known}


def one_line(text: str) -> str:
    """With every character that ends a line, moves the cursor, or turns the direction of reading as an escape."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _shown(value: Any) -> str:
    """An id behind its name: quoted where it would read as more than one."""
    text = one_line(str(value))
    return '"' + text.replace('"', r"\"") + '"' if set(text) & set(' "[]=') else text


class _Formatter(logging.Formatter):
    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__(TEXT_FORMAT)
        self._secrets = sorted({secret for secret in secrets if len(secret) >= SECRET_MIN}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        return self._clean(self._line(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        return one_line(super().formatMessage(record))

    def _line(self, record: logging.LogRecord) -> str:
        line, *trace = super().format(record).split("\n")
        # what a message says itself is not said twice
        known = (f"{name}={_shown(value)}" for name, value in ids().items())
        missing = " ".join(one for one in known if one not in line)
        first = f"{line} [{missing}]" if missing else line
        return "\n".join(
            [first, *(f"    {one_line(part)}" for part in trace)]
        )  # so that none looks like a line of ours

    def _clean(self, line: str) -> str:
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        return line


class _JsonFormatter(_Formatter):
    def __init__(self, program: str, secrets: Iterable[str]) -> None:
        super().__init__(secrets)
        self._program = program

    def _line(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "program": self._program,
            "thread": record.threadName,
            "logger": record.name,
            "message": record.getMessage(),
            **ids(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        # JSON has escapes for a few of them only, and a reader may take any for the end of a line
        return (
            text if text.isprintable() else "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)
        )


def set_up(program: str, env: Mapping[str, str]) -> None:
    """From here on this process logs to stderr as the settings say. Raises SettingsError."""
    level = env.get("EVEREST_LOG_LEVEL", "INFO").upper()
    problems = [] if level in LEVELS else [f"EVEREST_LOG_LEVEL={level!r}: must be one of {', '.join(LEVELS)}"]
    form = env.get("EVEREST_LOG_FORMAT", "text").lower()
    problems += [] if form in FORMATS else [f"EVEREST_LOG_FORMAT={form!r}: must be text or json"]
    if problems:
        raise SettingsError("; ".join(problems))
    logging.basicConfig(level=level, handlers=[handler(program, form, env, sys.stderr)])
    logging.getLogger("httpx").setLevel(logging.WARNING)


def handler(program: str, form: str, env: Mapping[str, str], stream: TextIO) -> logging.Handler:
    """Writes our lines to `stream`, without the passwords that stand in `env`."""
    made = logging.StreamHandler(stream)
    secrets = _secrets(env)
    made.setFormatter(_JsonFormatter(program, secrets) if form == "json" else _Formatter(secrets))
    return made


def _secrets(env: Mapping[str, str]) -> set[str]:
    """The passwords among our settings, from files as well, as they are and as a URL would hold them."""
    env = resolved(env, [])  # what is wrong with a file is said by whoever reads the settings
    plain = {value for name, value in env.items() if name.startswith("EVEREST_") and name.endswith("PASSWORD")}
    for name, value in env.items():
        if name.startswith("EVEREST_") and name.endswith("_URL"):
            plain |= {unquote(part) for part in [_password(value)] if part}
    return {form for secret in plain for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1])}


def _password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None
