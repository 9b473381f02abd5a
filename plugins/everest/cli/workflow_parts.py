"""What the commands about workflows have in common: parameters, and how a run is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from everest import bootstrap
from everest.cli import output
from everest.errors import DocumentMissing
from everest.store import workflow_views
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import codec

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
MAX_AGE = timedelta(days=36_500)
"""Nothing here is older, and a calendar ends."""


class Age(click.ParamType[timedelta]):
    """90m, 12h or 7d."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is no age; write 90m, 12h or 7d", param, ctx)
        age = timedelta(**{_UNITS[found[2]]: int(found[1])})
        if age > MAX_AGE:
            self.fail(f"{value!r} is longer than {MAX_AGE.days}d", param, ctx)
        return age


class Payload(click.ParamType[dict[str, Any]]):
    """JSON, or @file with JSON; numbers with a point become exact decimals."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        try:
            text = Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value
            exact = json.loads(text, parse_float=lambda number: {"$decimal": number}, parse_constant=_refuse)
            payload = codec.loads(json.dumps(exact))
        except OSError as error:
            self.fail(f"{value[1:]} cannot be read: {error.strerror}", param, ctx)
        except (ValueError, ArithmeticError) as error:
            self.fail(f"not JSON: {error}", param, ctx)
        if not isinstance(payload, dict):
            self.fail('must be a JSON object like {"bulan": "2026-08"}', param, ctx)
        return payload


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")


RUN = click.argument("run")
REASON = click.option("--reason", help="Why, for the audit trail.")
PAYLOAD = click.option("--payload", type=Payload(), default="{}", help="A JSON object, or @FILE with one.")
QUESTION = click.option(
    "--question", type=int, help="Answer only this question; its number stands in `show`. Guards against a late answer."
)


def run_id_of(tx: UnitOfWork, target: str) -> int:
    """A number, or WORKFLOW:KEY. Raises DocumentMissing."""
    if target.isdecimal() and len(target) < 19:
        return int(target)
    name, _, key = target.partition(":")
    found = workflow_views.QUERIES.run_of_key(tx.conn, workflow=name, idempotency_key=key) if key else None
    if found is None:
        raise DocumentMissing(f"there is no workflow run {target}; name it by number, or as WORKFLOW:KEY")
    return int(found)


@contextmanager
def open_database() -> Iterator[Database]:
    database = bootstrap.database()
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_transaction() -> Iterator[UnitOfWork]:
    with open_database() as database, database.transaction() as tx:
        yield tx


def view_of(tx: UnitOfWork, run_id: int) -> workflow_views.RunView:
    view = workflow_views.status(tx.conn, run_id, bootstrap.deployed)
    if view is None:
        raise DocumentMissing(f"there is no workflow run {run_id}")
    return view


def sentence(message: str) -> str:
    return output.plain(f"{message[0].upper()}{message[1:]}.")
