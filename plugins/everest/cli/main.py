"""The command line of the operators: its commands, and one place where every error becomes a sentence and a number."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any, NoReturn

import click

from everest.cli import output
from everest.errors import (
    Conflict,
    DatabaseError,
    DocumentMissing,
    EverestError,
    Forbidden,
    SettingsError,
    TransientDatabaseError,
)
from everest.intake.files import FileRefused, FileUnreadable
from everest.settings import mysql_url
from everest.store.database import CUT_OFF, DENIED, UNREACHABLE
from everest.store.grants import GrantError
from everest.store.migrations import MigrationError
from everest.workflow.engine import Fenced
from ingest_consumer import exits
from ingest_consumer.errors import IngestError
from ingest_consumer.exits import FAILED, NOT_FOUND, NOT_POSSIBLE, NOT_READY

_EXITS: tuple[tuple[type[Exception], int], ...] = (
    (FileUnreadable, NOT_FOUND),
    (DocumentMissing, NOT_FOUND),
    (Conflict, NOT_POSSIBLE),
    (Forbidden, NOT_POSSIBLE),
    (Fenced, NOT_POSSIBLE),
    (GrantError, NOT_POSSIBLE),
    (MigrationError, NOT_POSSIBLE),
    (SettingsError, NOT_READY),
    (DatabaseError, NOT_READY),
    *exits.KINDS,
)
_NO_SUCH_TABLE = 1146

# Imported when asked for: the steps of a posting read their settings as soon as they are imported.
_COMMANDS = {
    "submit": "everest.cli.submit",
    "status": "everest.cli.status",
    "rerun": "everest.cli.jobs",
    "post": "everest.cli.jobs",
    "reverse": "everest.cli.reverse",
    "period": "everest.cli.period",
    "approvals": "everest.cli.approvals",
    "approve": "everest.cli.approvals",
    "reject": "everest.cli.approvals",
    "preview": "everest.cli.preview",
    "attempts": "everest.cli.attempts",
    "report": "everest.cli.report",
    "audit": "everest.cli.audit",
    "audit-log": "everest.cli.audit_log",
    "migrate": "everest.cli.schema",
    "grant": "everest.cli.schema",
    "workflow": "everest.cli.workflow",
    "purge": "everest.cli.purge",
}


class Commands(click.Group):
    """Knows its commands by name, and ends every one of them with an exit code that means something."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        try:
            command: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        except EverestError as error:
            _end(ctx, error)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (EverestError, IngestError) as error:
            _end(ctx, error)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=exits.TABLE,
)
def main() -> None:
    """Stock counts (opname): submit them, see what became of them, run them again. And every other workflow.

    A document is named by its nota, or by the number of its job as #7. Where the database is comes from
    EVEREST_MYSQL_URL; `source .local/stack.env` sets it for the local stack.

    Commands speak English. What is wrong with a file or a document is said in Indonesian, as its row keeps it.
    """


def _end(ctx: click.Context, error: Exception) -> NoReturn:
    """Prints what happened and leaves with the exit code of this kind of error."""
    code = next((code for kind, code in _EXITS if isinstance(error, kind)), FAILED)
    message = output.english(getattr(error, "message", str(error)))
    problems = getattr(error, "problems", ())
    if isinstance(error, DatabaseError) and error.number in UNREACHABLE | CUT_OFF | DENIED:
        message = f"the database cannot be reached or used: {message}; {exits.advice(_database_host())}"
    elif isinstance(error, TransientDatabaseError):
        message = f"the database was busy: {message}; try the same command again"
    elif isinstance(error, DatabaseError) and error.number == _NO_SUCH_TABLE:
        message = f"{message}: the schema is not up to date; run `python -m everest migrate`"
    if output.wants_json(ctx):
        number = getattr(error, "code", 409)
        output.print_json(output.error_answer(number, message, [problem.as_json() for problem in problems]))
    else:
        output.complain(message)
        if isinstance(error, FileRefused):
            output.print_problems([str(problem) for problem in error.problems])
        else:  # one that only repeats the message says nothing new
            said = [replace(one, pesan=output.english(one.pesan)) for one in problems]
            output.print_problems([output.problem_line(one.as_json()) for one in said if one.pesan not in message])
    ctx.exit(code)


def _database_host() -> str | None:
    try:
        return mysql_url().host
    except SettingsError:
        return None
