"""`everest workflow`: durable workflows of all modules: look at them, start them, clear them away.

What a person does to one run stands in `workflow_actions`. The rules are `everest.workflow.control`'s; what is shown
comes from `everest.store`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from everest import bootstrap
from everest.cli import output, workflow_actions, workflow_show
from everest.cli.workflow_parts import PAYLOAD, RUN, Age, open_database, open_transaction, run_id_of, sentence, view_of
from everest.errors import DocumentMissing
from everest.store import workflow_lists, workflow_trace, workflow_views
from everest.store.workflow_purge import MIN_AGE
from everest.store.workflow_purge import purge as purge_ended
from everest.workflow import control
from ingest_consumer.plurals import count as counted

STATUSES = ("running", "paused", "waiting_for_signal", "waiting_for_workflows", "completed", "failed", "cancelled")


class InOrder(click.Group):
    """Lists its commands as they are needed, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder)
def workflow() -> None:
    """Durable workflows: look at them, start them, answer them, stop them.

    A run is named by its number (7) or by its workflow and key (monthly_closing:2026-08). Times are WIB.

    \b
    What do I do with a run that ...
      waits for me          approve 7 | reject 7 --reason ... | input 7 --payload ...
      failed                show 7 tells why; then retry 7, or cancel 7
      must not go on now    pause 7, later resume 7
      is not wanted         cancel 7: what it did is undone, newest first
    """


# ------------------------------------------------------------------------------------------------------ looking


@workflow.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@click.option("--workflow", "name", help="Only of this workflow.")
@click.option("--older-than", type=Age(), help="Only those dispatched longer ago, like 90m, 12h or 7d.")
@click.option("--newer-than", type=Age(), help="Only those dispatched since.")
@click.option("--before", type=int, help="Page on: only numbers below this one.")
@click.option("--size", type=click.IntRange(1, 1000), default=workflow_lists.PAGE, show_default=True, help="Lines.")
@output.json_option
def list_(
    status: str | None,
    name: str | None,
    older_than: timedelta | None,
    newer_than: timedelta | None,
    before: int | None,
    size: int,
    as_json: bool,
) -> None:
    """List runs, newest first."""
    with open_transaction() as tx:
        runs = workflow_lists.page_of_runs(
            tx.conn,
            status,
            name,
            created_before=tx.now - older_than if older_than else None,
            created_since=tx.now - newer_than if newer_than else None,
            before_id=before,
            size=size,
        )
    following = runs[-1].id if len(runs) == size else None
    if as_json:
        output.print_json({"runs": workflow_views.plain(runs), "before": following})
    else:
        workflow_show.print_list(runs, following)


@workflow.command()
@RUN
@output.json_option
def show(run: str, as_json: bool) -> None:
    """Show where RUN stands, why, what it waits for, and what to do about it."""
    with open_transaction() as tx:
        found = view_of(tx, run_id_of(tx, run))
    if as_json:
        output.print_json(found.as_json())
    else:
        workflow_show.print_run(found)


@workflow.command()
@RUN
@click.option("--after", type=int, default=0, help="Page on: only lines with a number above this one.")
@click.option("--size", type=click.IntRange(1, 10_000), default=200, show_default=True, help="Lines.")
@output.json_option
def timeline(run: str, after: int, size: int, as_json: bool) -> None:
    """Tell the history of RUN, oldest first: every try, wait, answer and DAG run."""
    with open_transaction() as tx:
        run_id = run_id_of(tx, run)
        events = workflow_lists.timeline(tx.conn, run_id, after, size)
    if events is None:
        raise DocumentMissing(f"there is no workflow run {run}")
    following = events[-1].id if len(events) == size else None
    if as_json:
        output.print_json({"workflow_id": run_id, "events": workflow_views.plain(events), "after": following})
    else:
        workflow_show.print_timeline(run_id, events, following)


@workflow.command()
@RUN
@click.option("--step", help="Only the public state that this step left, in full.")
@click.option("--visit", type=click.IntRange(1, 2**31 - 1), help="With --step: of this pass. Default: the last.")
@click.option("--after", type=int, default=0, help="Page on: only lines with a number above this one.")
@click.option("--size", type=click.IntRange(1, 1000), default=workflow_trace.PAGE, show_default=True, help="Lines.")
@output.json_option
def trace(run: str, step: str | None, visit: int | None, after: int, size: int, as_json: bool) -> None:
    """Show each step of RUN: the state it was given, what it returned, the state it left."""
    if visit is not None and step is None:
        raise click.UsageError("--visit goes with --step")
    with open_transaction() as tx:
        run_id = run_id_of(tx, run)
        if step is not None:
            state = workflow_trace.state_at(tx.conn, run_id, step, visit)
            if state is None:
                passed = "" if visit is None else f" in pass {visit}"
                raise DocumentMissing(f"step {step} of workflow run {run} has not completed{passed}")
        steps = workflow_trace.trace(tx.conn, run_id, after, size) if step is None else []
    if steps is None:
        raise DocumentMissing(f"there is no workflow run {run}")
    following = steps[-1].id if len(steps) == size else None
    if step is not None:
        answer = {"workflow_id": run_id, "step": step, "visit": visit, "state": workflow_views.plain(state)}
        output.print_json(answer) if as_json else workflow_show.print_state(step, state or {})
    elif as_json:
        output.print_json({"workflow_id": run_id, "steps": workflow_views.plain(steps), "after": following})
    else:
        workflow_show.print_trace(run_id, steps, following)


# ------------------------------------------------------------------------------------- starting and clearing


@workflow.command()
@click.argument("name")
@PAYLOAD
@click.option("--key", help="The same key is the same run. Default: made from the payload, if the workflow says how.")
@output.json_option
def dispatch(name: str, payload: dict[str, Any], key: str | None, as_json: bool) -> None:
    """Start the workflow NAME.

    \b
      python -m everest workflow dispatch monthly_closing --payload '{"bulan": "2026-08"}'
      python -m everest workflow dispatch monthly_closing --payload @august.json --key 2026-08
    """
    known = bootstrap.definitions()
    if name not in known:
        raise DocumentMissing(f"this site runs no workflow {name}; it runs {', '.join(sorted(known))}")
    with open_transaction() as tx:
        actual_key = key if key is not None else known[name].key(payload)
        held = None if actual_key is None else tx.runs.find(name, actual_key)
        sent = control.dispatch(tx, known[name], payload, key, output.operator())
    words = "exists already with this key and payload; nothing was started" if held else "is on its way"
    message = f"workflow {sent.workflow_id} ({name}) {words}"
    if as_json:
        facts = {"workflow_id": sent.workflow_id, "shadow_id": sent.shadow_id, "dag_run_id": sent.dag_run_id}
        output.print_json({"status": "success", "code": 200, "message": message, "existed": held is not None, **facts})
    else:
        click.echo(f"{sentence(message)} Look: python -m everest workflow show {sent.workflow_id}")


for _action in workflow_actions.ACTIONS:
    workflow.add_command(_action)


@workflow.command()
@click.option("--older-than", type=Age(), default="90d", show_default=True, help="Ended that long ago; 1d at least.")
@click.option("--cancelled", is_flag=True, help="Cancelled ones, too.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@output.json_option
def purge(older_than: timedelta, cancelled: bool, dry_run: bool, as_json: bool) -> None:
    """Delete completed runs with their history, jobs and keys; a purged key can be used again.

    Documents of the books are never touched, nor what somebody still waits for or has to undo.
    """
    if older_than < MIN_AGE:
        raise click.UsageError("--older-than must be at least 1d")
    with open_database() as opened:
        count = purge_ended(opened.transaction, older_than, cancelled, output.operator(), dry_run)
    message = f"{counted(count, 'run')} {'would be purged' if dry_run else 'purged'}"
    if as_json:
        output.print_json({"status": "success", "code": 200, "message": message, "purged": count, "dry_run": dry_run})
    else:
        click.echo(sentence(message))


@workflow.command()
def queues() -> None:
    """Airflow's task queues that the workflows use, with commas: what all Celery workers together listen to.

    \b
    airflow celery worker --queues "$(python -m everest workflow queues)"
    """
    click.echo(",".join(bootstrap.task_queues()))
