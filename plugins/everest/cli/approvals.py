"""`everest approvals`, `approve` and `reject`: the documents that wait for a person, and the answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime

import click
from rich.console import Group
from rich.text import Text

from everest import approvals as waiting
from everest import bootstrap
from everest.approvals import Answered, Pending
from everest.cli import output
from everest.store.unit_of_work import UnitOfWork

SHOWN = 20
"""Reasons of one document on the screen; --json has all."""

_NOTA = click.argument("nota")
_REASON = click.option("--reason", required=True, help="Why, for the audit trail and for whoever submitted it.")
_QUESTION = click.option(
    "--question",
    type=int,
    help="Answer only this question; `approvals` shows its number. Guards against late answers.",
)


@click.command()
@output.json_option
def approvals(as_json: bool) -> None:
    """List the documents that wait for a person's decision, with the reasons. Times are WIB."""
    with closing(bootstrap.database()) as database, database.transaction() as tx:
        found = waiting.pending(tx)
    if as_json:
        output.print_json({"status": "success", "code": 200, "pending": [one.as_json() for one in found]})
    elif found:
        output.console().print(Group(*(Text(output.plain(line)) for one in found for line in _lines(one))))
    else:
        click.echo("No document waits for a decision.")


@click.command()
@_NOTA
@_REASON
@_QUESTION
@output.json_option
def approve(nota: str, reason: str, question: int | None, as_json: bool) -> None:
    """Let the waiting document NOTA (or #JOB) post as it is.

    It goes on by itself, and asks again if by then something else is true than what you approved. By default nobody
    approves a document that they submitted.
    """
    _answer(lambda tx: waiting.approve(tx, nota, output.operator(), reason, question), as_json)


@click.command()
@_NOTA
@_REASON
@_QUESTION
@output.json_option
def reject(nota: str, reason: str, question: int | None, as_json: bool) -> None:
    """Refuse the waiting document NOTA (or #JOB): it fails with code 403, your name and the reason.

    It gets no dead letter. `rerun` asks again.
    """
    _answer(lambda tx: waiting.reject(tx, nota, output.operator(), reason, question), as_json)


def _answer(say: Callable[[UnitOfWork], Answered], as_json: bool) -> None:
    with closing(bootstrap.database()) as database, database.transaction() as tx:
        answered = say(tx)
    message = f"{answered.nomer_nota} (job #{answered.shadow_id}) is {answered.outcome} by {answered.by}"
    if as_json:
        output.print_json({"status": "success", "code": 200, "message": message, **vars(answered)})
    else:
        click.echo(output.plain(f"{message}. Follow it: python -m everest status '#{answered.shadow_id}' --watch"))


def _lines(one: Pending) -> Iterator[str]:
    paused = ", paused" if one.is_paused else ""
    yield (
        f"{one.nomer_nota} · job #{one.shadow_id} · warehouse {one.gudang_kode or '-'} · {output.rupiah(one.nilai)}"
        f" · question {one.sequence}{paused}"
    )
    until = f", until {output.wib(_naive(one.until))}" if one.until else ""
    yield f"  {one.message} (since {output.wib(_naive(one.asked_at))}{until})"
    for reason in one.reasons[:SHOWN]:
        yield f"    {output.problem_line(reason.as_json())}"
    if len(one.reasons) > SHOWN:
        yield f"    and {len(one.reasons) - SHOWN} more; --json shows all"
    if one.was_raised:
        limits = ", ".join(
            f"{what} {'no limit' if limit is None else output.rupiah(limit)}"
            for what, limit in (("document", one.batas_dokumen_kini), ("line", one.batas_baris_kini))
        )
        yield f"  the limits are higher by now ({limits}), which decides nothing: approve it, or reject and rerun it"
    people = f"submitted by {one.dibuat_oleh or '-'}, authorised by {one.diotorisasi_oleh or '-'}"
    barred = f"; not to be decided by {', '.join(one.not_by)}" if one.not_by else ""
    yield f"  {people}{barred}"
    yield f"  python -m everest approve {shlex.quote(one.nomer_nota)} --reason ...   (or: reject)"


def _naive(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)
