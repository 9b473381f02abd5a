"""`everest attempts`: what was tried with a document, and what changed from one attempt to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import click
from rich.console import Group
from rich.text import Text

from everest import attempts as store
from everest import bootstrap
from everest.attempts import Attempt, Change, History
from everest.cli import output
from everest.errors import Problem

SHOWN = 20
"""Problems or changed lines of one attempt on the screen; --json has all."""

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@click.command()
@click.argument("nota")
@output.json_option
def attempts(nota: str, as_json: bool) -> None:
    """Show every attempt at the document NOTA (or #JOB), and what changed between them.

    Which lines a correction changed, which problems went away and which are new, who asked for the rerun; and for a
    posted document that another run of it changes nothing. Times are WIB.
    """
    with closing(bootstrap.database()) as database, database.transaction() as tx:
        found = store.history(tx, nota)
    if as_json:
        output.print_json(found.as_json())
    else:
        output.console().print(Group(*(Text(output.plain(line)) for line in _lines(found))))


def _lines(found: History) -> Iterator[str]:
    yield f"{found.nomer_nota} · transaksi {found.transaksi_id} · job #{found.shadow_id} ({found.worker_status})"
    for attempt in found.attempts:
        yield from _attempt(attempt)
    if not found.attempts:
        yield "  no attempt yet"
    if found.pending:
        yield "corrected since, not tried yet:"
        yield from _changes(found.pending)
    yield output.english(found.rerun)


def _attempt(attempt: Attempt) -> Iterator[str]:
    when = f"{output.wib(attempt.created_at)}, DAG run {attempt.dag_run_id or '-'}"
    yield f"attempt {attempt.number}: {attempt.outcome} {attempt.code or ''} · {when}"
    for asked in attempt.asked_by:
        yield f"  by {asked.actor}: {asked.action}" + (f" ({asked.reason})" if asked.reason else "")
    if attempt.changes is None:
        yield "  its content was changed by another program, which kept no old lines"
    yield from _changes(attempt.changes or ())
    if attempt.number > 1 and not attempt.is_other_content and not attempt.changes:
        yield "  the same content as before"
    yield from _problems("gone", attempt.gone)
    yield from _problems("new" if attempt.number > 1 else "problem", attempt.new)
    still = [problem for problem in attempt.problems if problem not in set(attempt.new)]
    yield from _problems("still", still)


def _changes(changes: tuple[Change, ...]) -> Iterator[str]:
    for change in changes[:SHOWN]:
        where = "header" if change.baris is None else f"line {change.baris}"
        yield f"  {_SIGNS[change.kind]} {where}: {_columns(change)}"
    if len(changes) > SHOWN:
        yield f"    and {len(changes) - SHOWN} more; --json has all"


def _columns(change: Change) -> str:
    if change.kind == "changed":
        pairs = ((name, change.before[name], change.after[name]) for name in change.after)
        return ", ".join(f"{name} {_value(old)} → {_value(new)}" for name, old, new in pairs)
    line = change.after or change.before
    return ", ".join(f"{name} {value}" for name, value in line.items() if name != "baris" and value is not None)


def _value(text: str | None) -> str:
    return "(empty)" if text is None else text


def _problems(word: str, problems: tuple[Problem, ...] | list[Problem]) -> Iterator[str]:
    for problem in problems[:SHOWN]:
        yield f"  {word}: {output.problem_line(problem.as_json())}"
    if len(problems) > SHOWN:
        yield f"    and {len(problems) - SHOWN} more; --json has all"
