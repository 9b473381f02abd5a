"""`everest purge`: what nobody needs any more goes by age, in small batches, audited."""

from __future__ import annotations

from datetime import timedelta

import click

from everest.cli import output
from everest.cli.workflow_parts import Age, open_database
from everest.store.outbox_purge import purge_outbox
from everest.store.workflow_purge import MIN_AGE
from everest.store.workflow_purge import purge as purge_workflows


@click.command()
@click.option("--older-than", type=Age(), default="90d", show_default=True, help="Sent or ended that long ago.")
@click.option("--cancelled", is_flag=True, help="Cancelled workflows, too.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@output.json_option
def purge(older_than: timedelta, cancelled: bool, dry_run: bool, as_json: bool) -> None:
    """Delete sent messages of jobs that are done, and completed workflows of other modules.

    Never the books, a document, its lines, attempts or history, nor the audit log.
    """
    if older_than < MIN_AGE:
        raise click.UsageError("--older-than must be at least 1d")
    with open_database() as opened:
        messages = purge_outbox(opened.transaction, older_than, output.operator(), dry_run)
        workflows = purge_workflows(opened.transaction, older_than, cancelled, output.operator(), dry_run)
    words = f"{messages} messages and {workflows} workflows {'would be purged' if dry_run else 'purged'}"
    if as_json:
        facts = {"messages": messages, "workflows": workflows, "dry_run": dry_run}
        output.print_json({"status": "success", "code": 200, "message": words, **facts})
    else:
        click.echo(words)
