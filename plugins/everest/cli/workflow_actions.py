"""What a person does to one run: pause, resume, retry, signal, approve, reject, input, cancel, compensate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from everest import bootstrap
from everest.cli import output
from everest.cli.workflow_parts import (
    PAYLOAD,
    QUESTION,
    REASON,
    RUN,
    Payload,
    open_database,
    open_transaction,
    run_id_of,
    sentence,
    view_of,
)
from everest.errors import Conflict, DocumentMissing
from everest.store import workflow_views
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import control, deployment
from everest.workflow.definition import Definition
from ingest_consumer.exits import FAILED


@click.command()
@RUN
@REASON
@output.json_option
def pause(run: str, reason: str | None, as_json: bool) -> None:
    """Stop RUN after the step that is at work; nothing further starts until `resume`."""
    _act(run, lambda tx, definition, one: control.pause(tx, definition, one, output.operator(), reason), "is paused")


@click.command()
@RUN
@output.json_option
def resume(run: str, as_json: bool) -> None:
    """Let the paused RUN go on where it stands, or wait on for what it waits for."""
    _act(run, lambda tx, known, one: control.resume(tx, _needed(known, one), one, output.operator()), "is resumed")


@click.command()
@RUN
@REASON
@output.json_option
def retry(run: str, reason: str | None, as_json: bool) -> None:
    """Run the failed step of RUN again; what is done already is not done again."""
    _act(run, lambda tx, definition, one: control.retry(tx, definition, one, output.operator(), reason), "runs again")


@click.command()
@RUN
@click.argument("name")
@PAYLOAD
@click.option("--correlation", help="The value of the wait's correlation key.")
@output.json_option
def signal(run: str, name: str, payload: dict[str, Any], correlation: str | None, as_json: bool) -> None:
    """Send RUN the signal NAME. One that comes before its wait is kept for it."""

    def send(tx: UnitOfWork, known: Definition | None, one: int) -> None:
        control.signal(tx, _needed(known, one), one, name, payload, correlation, output.operator())

    _act(run, send, f"has the signal {name}")


@click.command()
@RUN
@REASON
@PAYLOAD
@QUESTION
@output.json_option
def approve(run: str, reason: str | None, payload: dict[str, Any], question: int | None, as_json: bool) -> None:
    """Say yes to the approval or decision that RUN waits for."""

    def say(tx: UnitOfWork, known: Definition | None, one: int) -> None:
        control.approve(tx, _needed(known, one), one, output.operator(), reason, payload, question)

    _act(run, say, "has its answer: approved")


@click.command()
@RUN
@click.option("--reason", required=True, help="Why; it is shown to whoever asked.")
@PAYLOAD
@QUESTION
@output.json_option
def reject(run: str, reason: str, payload: dict[str, Any], question: int | None, as_json: bool) -> None:
    """Say no: a decision goes on with the outcome `rejected`, an approval fails RUN with code 403."""

    def say(tx: UnitOfWork, known: Definition | None, one: int) -> None:
        control.reject(tx, _needed(known, one), one, output.operator(), reason, payload, question)

    _act(run, say, "has its answer: rejected")


@click.command("input")
@RUN
@click.option("--payload", type=Payload(), required=True, help="What it asks for: a JSON object, or @FILE with one.")
@QUESTION
@output.json_option
def input_(run: str, payload: dict[str, Any], question: int | None, as_json: bool) -> None:
    """Give RUN the values that it waits for."""

    def say(tx: UnitOfWork, known: Definition | None, one: int) -> None:
        control.submit_input(tx, _needed(known, one), one, output.operator(), payload, question)

    _act(run, say, "has its input")


@click.command()
@RUN
@REASON
@output.json_option
@click.pass_context
def cancel(ctx: click.Context, run: str, reason: str | None, as_json: bool) -> None:
    """End RUN and the runs nested in it, and undo what they did, newest first.

    A step at work cannot commit any more. Exit code 1: it is cancelled, but undoing something failed; `show` says
    what, and `compensate` tries again.
    """
    with open_database() as database:
        with database.transaction() as tx:
            run_id = run_id_of(tx, run)
            control.cancel(tx, _deployed(tx, run_id), run_id, output.operator(), reason)
        _undo(ctx, database, run_id, "is cancelled", as_json)


@click.command()
@RUN
@output.json_option
@click.pass_context
def compensate(ctx: click.Context, run: str, as_json: bool) -> None:
    """Try again to undo what RUN did, after a compensation that failed. Exit code 1 if it fails again."""
    with open_database() as database:
        with database.transaction() as tx:
            run_id = run_id_of(tx, run)
            family = sorted((run_id, *workflow_views.nested(tx.conn, run_id)))
            stuck = [one for one in family if (found := tx.runs.get(one)) and found.compensation == "failed"]
            for one in stuck or [run_id]:
                control.compensate(tx, None, one, output.operator())
        _undo(ctx, database, run_id, "is cleared up", as_json)


ACTIONS = (pause, resume, retry, cancel, signal, approve, reject, input_, compensate)


# ------------------------------------------------------------------------------------------------------ helpers


def _deployed(tx: UnitOfWork, run_id: int) -> Definition | None:
    """Looks without a lock: `control` takes its locks by ascending id."""
    run = tx.runs.get(run_id)
    if run is None:
        raise DocumentMissing(f"there is no workflow run {run_id}")
    return deployment.of_run(bootstrap.deployed, run)


def _needed(definition: Definition | None, run_id: int) -> Definition:
    """For what asks the run's own steps. Raises Conflict."""
    if definition is None:
        raise Conflict(
            f"the definition of workflow {run_id} is not deployed here (EVEREST_WORKFLOWS names the modules); pause,"
            " retry and cancel work without it"
        )
    return definition


def _act(run: str, action: Callable[[UnitOfWork, Definition | None, int], Any], done: str) -> None:
    """One control function in one transaction, and where the run stands then."""
    with open_transaction() as tx:
        run_id = run_id_of(tx, run)
        action(tx, _deployed(tx, run_id), run_id)
        view = view_of(tx, run_id)
    _tell(view, f"workflow {run_id} ({view.workflow}) {done}")


def _undo(ctx: click.Context, database: Database, run_id: int, done: str, as_json: bool) -> None:
    """Runs the compensations of a run and of those nested in it, the nested ones first, and says how it went."""
    with database.transaction() as tx:
        family = [*workflow_views.nested(tx.conn, run_id), run_id]
    for one in family:
        control.compensate_all(database.transaction, one, bootstrap.deployed)
    with database.transaction() as tx:
        views = [view_of(tx, one) for one in family]
    view = views[-1]
    # A nested run that had completed is undone by its parent's step; its own list stays as it is.
    asked = [one for each in views if each.compensation is not None for one in each.compensations]
    undone = [str(one["step"]) for one in asked if one["status"] == "done"]
    left = [one for one in asked if one["status"] != "done"]
    words = f"undone, in this order: {', '.join(undone)}" if undone else "there was nothing to undo"
    nested = f" with {len(family) - 1} nested" if len(family) > 1 else ""
    message = f"workflow {run_id} ({view.workflow}) {done}{nested}; {words}"
    if all(one["status"] != "failed" for one in left):
        # The reconciler may have been faster; it goes on by itself.
        at_work = ", ".join(one["step"] for one in left)
        _tell(view, f"{message}; still being undone by the reconciler: {at_work}" if left else message)
        return
    reasons = [f"{one['step']}: {(one['error'] or {}).get('message', one['status'])}" for one in left]
    message = f"{message}; NOT undone: {'; '.join(reasons)}. Then: python -m everest workflow compensate {run_id}"
    if as_json:
        facts = {"workflow_id": run_id, "workflow_status": view.status, "compensation": view.compensation}
        output.print_json({**output.error_answer(500, message), **facts})
    else:
        output.complain(message)
    ctx.exit(FAILED)


def _tell(view: workflow_views.RunView, message: str) -> None:
    if output.wants_json(click.get_current_context()):
        facts = {"workflow_id": view.id, "workflow_status": view.status, "current_step": view.current_step}
        output.print_json({"status": "success", "code": 200, "message": message, **facts})
        return
    click.echo(sentence(message))
    if view.status not in ("completed", "cancelled"):
        is_answered = view.status == "waiting_for_signal" and view.waiting is not None and not view.waiting.remaining
        now = (
            f"goes on by itself from {view.current_step}"
            if is_answered
            else f"is {view.status}, at {view.current_step}"
        )
        click.echo(f"It {now}. Look: python -m everest workflow show {view.id}")
